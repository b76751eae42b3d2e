#include "core/dispatch.hpp"

#include <array>

#include "core/kernel_list.hpp"

namespace sdpa::core {
namespace {

struct Found {
  std::array<const kernels::KernelTable*, kKernelList.size()> tables{};
  std::size_t count = 0;
};

Found find() {
  Found found;
  for (const KernelEntry& entry : kKernelList) {
    if (entry.runs_here()) found.tables[found.count++] = entry.table;
  }
  return found;
}

}  // namespace

std::span<const kernels::KernelTable* const> available_kernels() {
  static const Found found = find();
  return {found.tables.data(), found.count};
}

}  // namespace sdpa::core
