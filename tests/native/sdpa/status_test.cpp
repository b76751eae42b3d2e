#include "sdpa/status.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace sdpa {
namespace {

TEST(StatusTable, EntriesStandAtTheIndexOfTheirCode) {
  for (std::size_t n = 0; n < kStatusTable.size(); ++n) EXPECT_EQ(static_cast<std::size_t>(kStatusTable[n].code), n);
}

TEST(StatusTable, NamesAreDistinctSnakeCase) {
  std::set<std::string> names;
  for (const StatusEntry& entry : kStatusTable) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(std::string(entry.name).find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos)
        << entry.name;
  }
}

TEST(StatusTable, EveryErrorHasAJavaScriptCodeAndOkHasNone) {
  for (const StatusEntry& entry : kStatusTable)
    EXPECT_EQ(std::string(entry.error).empty(), entry.code == StatusCode::kOk);
}

TEST(Status, IsOkByDefaultAndKnowsItsName) {
  EXPECT_TRUE(Status().ok());
  EXPECT_FALSE(Status(StatusCode::kMaskShape).ok());
  EXPECT_STREQ(Status(StatusCode::kMaskShape).name(), "mask_shape");
  EXPECT_EQ(Status(StatusCode::kMaskShape), Status(StatusCode::kMaskShape));
}

}  // namespace
}  // namespace sdpa
