#include "core/dispatch.hpp"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

TEST(Dispatch, EveryProcessorRunsAtLeastTheScalarKernels) {
  const auto tables = core::available_kernels();
  ASSERT_FALSE(tables.empty());
  EXPECT_STREQ(tables.back()->name, "scalar");
}

TEST(Dispatch, WiderVectorsComeFirst) {
  const auto tables = core::available_kernels();
  for (std::size_t n = 1; n < tables.size(); ++n) EXPECT_GE(tables[n - 1]->width, tables[n]->width);
}

TEST(Dispatch, NamesAreDistinct) {
  std::set<std::string> names;
  for (const KernelTable* table : core::available_kernels())
    EXPECT_TRUE(names.insert(table->name).second) << table->name;
}

TEST(Dispatch, BlocksHoldWholeVectorsAndWorkspacesWholeCacheLines) {
  for (const KernelTable* table : core::available_kernels()) {
    EXPECT_EQ(table->rows_per_block % table->width, 0U) << table->name;
    EXPECT_GT(table->keys_per_tile, 0U) << table->name;
  }
}

TEST(Dispatch, WorkspaceDoesNotGrowWithTheNumberOfKeys) {
  for (const KernelTable* table : core::available_kernels()) {
    std::vector<std::size_t> bytes;
    for (const std::size_t keys : {1000, 2000, 8000}) {
      const Arguments arguments(make_causal({.seqlen_q = 500, .seqlen_kv = keys, .head_dim = 16}), {});
      const WorkspaceSize size = core::attention_workspace_bytes(*table, arguments.tensors, arguments.options);
      ASSERT_TRUE(size.status.ok());
      bytes.push_back(size.bytes);
    }
    EXPECT_EQ(bytes[0], bytes[1]) << table->name;
    EXPECT_EQ(bytes[0], bytes[2]) << table->name;
    EXPECT_LT(bytes[0], std::size_t{1} << 20) << table->name;
  }
}

}  // namespace
}  // namespace sdpa::testing
