// The public entry: what a C++ user calls.
#include "sdpa/attention.hpp"

#include <fstream>
#include <iterator>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include "sdpa/version.hpp"
#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

TEST(Attention, GivesTheBitsOfTheFastestKernelsOfThisMachine) {
  const Problem p =
      make_causal({.seqlen_q = 50, .seqlen_kv = 130, .head_dim = 20, .batch = 2, .num_heads = 4, .num_kv_heads = 2});
  const Actual expected = run(*core::available_kernels().front(), p);
  const Arguments arguments(p, {});
  const WorkspaceSize size = attention_workspace_bytes(arguments.tensors, arguments.options);
  ASSERT_TRUE(size.status.ok());
  auto* memory = static_cast<std::byte*>(::operator new (size.bytes, std::align_val_t{kWorkspaceAlignment}));
  EXPECT_TRUE(attention(arguments.tensors, arguments.options, {memory, size.bytes}).ok());
  EXPECT_TRUE(same_bits(arguments.out(), expected.out));
  EXPECT_TRUE(same_bits(arguments.lse(), expected.lse));
  ::operator delete (memory, std::align_val_t{kWorkspaceAlignment});
}

TEST(Attention, AnswersAStatusForBadArguments) {
  Arguments arguments(make_problem({.seqlen_q = 2, .seqlen_kv = 3, .head_dim = 4}), {});
  arguments.options.causal = true;
  EXPECT_EQ(attention_workspace_bytes(arguments.tensors, arguments.options).status, Status(StatusCode::kAlignRequired));
  EXPECT_EQ(attention(arguments.tensors, arguments.options, {}), Status(StatusCode::kAlignRequired));
}

TEST(Version, IsThatOfThePackage) {
  std::ifstream file(SDPA_PACKAGE_JSON);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("\"version\": \"" + std::string(kVersion) + '"'), std::string::npos) << kVersion;
}

}  // namespace
}  // namespace sdpa::testing
