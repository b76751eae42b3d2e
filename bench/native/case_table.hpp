// The shapes that tests and benches share, with their names, FLOPs and tolerance.
//
// A name says the shape: attention/prefill/causal/B:1/H:12/Hkv:12/Sq:1024/Skv:1024/D:64. The JavaScript benches use the
// same names, so that two runs can be put side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sdpa::cases {

// The option that a case switches on. One at a time: a case answers what that option costs.
enum class Option { kDense, kCausal, kMask, kBias, kSoftcap, kWindow };

constexpr std::string_view name(Option option) {
  constexpr std::array<std::string_view, 6> kNames{"dense", "causal", "mask", "bias", "softcap", "window"};
  return kNames[static_cast<std::size_t>(option)];
}

// Keys to the left of the query's own that Option::kWindow leaves visible; none to the right.
inline constexpr std::int64_t kWindowLeft = 255;
inline constexpr float kSoftcap = 30.0F;

struct Case {
  std::string_view nickname;  // where the shape comes from
  Option option;
  std::size_t batch;
  std::size_t num_heads;
  std::size_t num_kv_heads;
  std::size_t seqlen_q;
  std::size_t seqlen_kv;
  std::size_t head_dim;

  bool decode() const { return seqlen_q == 1; }

  std::string name() const {
    const auto field = [](const char* key, std::size_t value) { return std::string(key) + std::to_string(value); };
    return std::string("attention/") + (decode() ? "decode/" : "prefill/") + std::string(cases::name(option)) +
           field("/B:", batch) + field("/H:", num_heads) + field("/Hkv:", num_kv_heads) + field("/Sq:", seqlen_q) +
           field("/Skv:", seqlen_kv) + field("/D:", head_dim);
  }

  // Pairs of query and key that have to be computed, per head. Causal counts half of the square, as the field does (the
  // exact count is (S + 1) / 2S of it); a window counts the cells in the band.
  double pairs() const {
    const double all = static_cast<double>(seqlen_q) * static_cast<double>(seqlen_kv);
    if (option == Option::kCausal) return all / 2;
    if (option != Option::kWindow) return all;
    double cells = 0;
    for (std::size_t i = 0; i < seqlen_q; ++i) {
      const auto position = static_cast<std::int64_t>(i + seqlen_kv - seqlen_q);
      cells += static_cast<double>(position < kWindowLeft ? position + 1 : kWindowLeft + 1);
    }
    return cells;
  }

  // 2 D for Q K^T and 2 D for P V, a multiplication and an addition each; exp is not counted.
  double flops() const {
    return 4 * static_cast<double>(batch) * static_cast<double>(num_heads) * static_cast<double>(head_dim) * pairs();
  }

  // float32 operands and result, each counted once: what has to move at the least.
  double bytes() const {
    const double q = static_cast<double>(batch * num_heads * seqlen_q * head_dim);
    const double kv = static_cast<double>(batch * num_kv_heads * seqlen_kv * head_dim);
    return 4 * (2 * q + 2 * kv);
  }

  // Largest absolute error against double on unit normal data.
  double tolerance() const { return 2e-6; }
};

inline constexpr std::array kCases{
    Case{"bert128", Option::kDense, 1, 12, 12, 128, 128, 64},
    Case{"bert512", Option::kDense, 1, 12, 12, 512, 512, 64},
    Case{"vit197", Option::kDense, 1, 12, 12, 197, 197, 64},
    Case{"swin", Option::kDense, 64, 3, 3, 49, 49, 32},
    Case{"sd-d40", Option::kDense, 1, 8, 8, 256, 256, 40},
    Case{"gpt2-1024-dense", Option::kDense, 1, 12, 12, 1024, 1024, 64},
    Case{"gpt2-1024", Option::kCausal, 1, 12, 12, 1024, 1024, 64},
    Case{"llama512-dense", Option::kDense, 1, 32, 8, 512, 512, 128},
    Case{"llama512", Option::kCausal, 1, 32, 8, 512, 512, 128},
    Case{"long4k", Option::kDense, 1, 1, 1, 4096, 4096, 64},
    Case{"long4k-causal", Option::kCausal, 1, 1, 1, 4096, 4096, 64},
    Case{"long16k", Option::kCausal, 1, 1, 1, 16384, 16384, 64},
    Case{"bert512-mask", Option::kMask, 1, 12, 12, 512, 512, 64},
    Case{"bert512-bias", Option::kBias, 1, 12, 12, 512, 512, 64},
    Case{"bert512-softcap", Option::kSoftcap, 1, 12, 12, 512, 512, 64},
    Case{"gpt2-1024-window", Option::kWindow, 1, 12, 12, 1024, 1024, 64},
    Case{"dec-gpt2", Option::kDense, 1, 12, 12, 1, 1024, 64},
    Case{"dec-llama", Option::kDense, 1, 32, 8, 1, 2048, 128},
    Case{"dec-gpt2-32k", Option::kDense, 1, 12, 12, 1, 32768, 64},
};

}  // namespace sdpa::cases
