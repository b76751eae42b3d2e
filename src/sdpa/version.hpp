// The library's version; package.json says the same, and a test compares the two.
#pragma once

namespace sdpa {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace sdpa
