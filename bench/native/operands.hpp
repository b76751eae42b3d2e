// The operands of a case in memory, aligned to cache lines as the wasm side has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "case_table.hpp"
#include "sdpa/attention.hpp"

namespace sdpa::bench {

struct AlignedDelete {
  void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{kWorkspaceAlignment}); }
};

template <class T>
using AlignedArray = std::unique_ptr<T[], AlignedDelete>;

template <class T>
AlignedArray<T> make_aligned(std::size_t count) {
  return AlignedArray<T>(static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{kWorkspaceAlignment})));
}

// Unit normal query, key and value, the case's option, and the output. One case at a time: a pass over long16k and
// dec-gpt2-32k at once would need a quarter of a gigabyte.
class Operands {
 public:
  explicit Operands(const cases::Case& c);
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  AttentionTensors tensors;
  AttentionOptions options;

 private:
  AlignedArray<float> query_, key_, value_, out_, bias_;
  AlignedArray<std::uint8_t> mask_;
};

}  // namespace sdpa::bench
