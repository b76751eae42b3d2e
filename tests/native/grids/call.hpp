// A problem in memory as a setting says, and calls of it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "grids/setting.hpp"
#include "support/arguments.hpp"
#include "support/kernels.hpp"

namespace sdpa::grids {

using testing::KernelTable;

// Outputs of a call, each with NaN before it.
struct Outputs {
  std::vector<float> out;  // (B, Hq, L, Dv) in the order of `strides`
  std::vector<float> lse;  // (B, Hq, L)
  Strides strides{};

  const float* row(std::size_t b, std::size_t h, std::size_t i) const {
    return out.data() + b * strides[0] + h * strides[1] + i * strides[2];
  }
};

class Call {
 public:
  // `problem` holds numbers that the storage type holds. It is kept by reference, and as it is.
  Call(Problem& problem, const Setting& setting);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Scratch memory is full of NaN before the call. Fails the test where the status is not kOk. May run on several
  // threads at once.
  Outputs run(const KernelTable& table) const;

 private:
  // A copy of contiguous (B, H, rows, columns) values in rows that lie apart by the strides.
  InputView lay_out(const std::vector<float>& values, const Extents& extents, const Strides& strides, std::size_t size);
  void lay_out_all(const Setting& setting);
  void lay_out_packed(std::size_t tensors, const Setting& setting);
  void lay_out_pages(std::size_t page_size);

  const Problem& problem_;
  std::vector<std::vector<std::byte>> buffers_;
  std::unique_ptr<testing::Arguments> arguments_;  // options, and the inputs' views
  std::vector<std::int32_t> pages_;
  DType dtype_;
  Layout layout_;
};

}  // namespace sdpa::grids
