// Matrix products against sums in double, in every form of the operands, on every kernel table.
#include "sdpa/gemm.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include "core/dispatch.hpp"
#include "support/kernels.hpp"
#include "support/random.hpp"

namespace sdpa::testing {
namespace {

constexpr float kUntouched = 12345.0F;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Sizes {
  std::size_t rows;
  std::size_t columns;
  std::size_t inner;
};

std::string text(const Sizes& s) {
  return std::to_string(s.rows) + " x " + std::to_string(s.columns) + ", inner " + std::to_string(s.inner);
}

// The numbers of a product, row by row.
struct Product {
  Sizes sizes;
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> bias;  // empty: none
  std::vector<float> c;     // empty: overwritten, else added to
};

struct Forms {
  MatrixForm a = MatrixForm::kRows;
  MatrixForm b = MatrixForm::kRows;
  std::size_t gap = 0;  // floats between rows or columns of an operand, and of c
};

Product make_product(const Sizes& s, std::uint64_t seed, bool with_bias, bool adds) {
  Random random(seed);
  Product p{s, random.normals(s.rows * s.inner), random.normals(s.inner * s.columns), {}, {}};
  if (with_bias) p.bias = random.normals(s.columns);
  if (adds) p.c = random.normals(s.rows * s.columns);
  return p;
}

class AlignedFloats {
 public:
  explicit AlignedFloats(std::size_t bytes)
      : data_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kWorkspaceAlignment}))), bytes_(bytes) {
    std::fill_n(reinterpret_cast<float*>(data_), bytes / sizeof(float), kNaN);
  }
  ~AlignedFloats() { ::operator delete (data_, std::align_val_t{kWorkspaceAlignment}); }
  AlignedFloats(const AlignedFloats&) = delete;
  AlignedFloats& operator=(const AlignedFloats&) = delete;

  std::span<std::byte> bytes() { return {data_, bytes_}; }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

// (rows, columns) in rows or columns with gaps of NaN.
std::vector<float> laid(const std::vector<float>& from, std::size_t rows, std::size_t columns, bool in_columns,
                        std::size_t gap) {
  const std::size_t stride = (in_columns ? rows : columns) + gap;
  std::vector<float> to((in_columns ? columns : rows) * stride, kNaN);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      to[in_columns ? j * stride + i : i * stride + j] = from[i * columns + j];
    }
  }
  return to;
}

// c of the product, row by row. Fails where anything but c was written.
std::vector<float> multiply(const KernelTable& table, const Product& p, const Forms& forms) {
  const auto [rows, columns, inner] = p.sizes;
  const bool a_in_columns = forms.a == MatrixForm::kColumns;
  const std::vector<float> a = laid(p.a, rows, inner, a_in_columns, forms.gap);
  const bool packed = forms.b == MatrixForm::kPacked || forms.b == MatrixForm::kPackedColumns;
  const bool b_in_columns = forms.b == MatrixForm::kColumns || forms.b == MatrixForm::kPackedColumns;
  std::vector<float> b = laid(p.b, inner, columns, b_in_columns, forms.gap);
  MatrixView b_view{b.data(), (b_in_columns ? inner : columns) + forms.gap,
                    b_in_columns ? MatrixForm::kColumns : MatrixForm::kRows};
  std::vector<float> panels;
  if (packed) {
    // What is kept packed is the matrix whose transpose is asked for.
    const std::size_t pack_inner = b_in_columns ? columns : inner;
    const std::size_t pack_columns = b_in_columns ? inner : columns;
    const WorkspaceSize size = core::gemm_packed_bytes(table, pack_inner, pack_columns);
    EXPECT_TRUE(size.status.ok());
    panels.assign(size.bytes / sizeof(float), kNaN);
    const MatrixView plain{b.data(), pack_columns + forms.gap, MatrixForm::kRows};
    EXPECT_TRUE(core::gemm_pack(table, plain, pack_inner, pack_columns, panels).ok());
    b_view = {panels.data(), 0, forms.b};
  }
  const std::size_t c_stride = columns + forms.gap;
  std::vector<float> c(rows * c_stride, kUntouched);
  for (std::size_t i = 0; i < rows && !p.c.empty(); ++i) {
    std::copy_n(&p.c[i * columns], columns, &c[i * c_stride]);
  }
  const GemmArguments arguments{{a.data(), (a_in_columns ? rows : inner) + forms.gap, forms.a},
                                b_view,
                                p.bias.empty() ? nullptr : p.bias.data(),
                                c.data(),
                                c_stride,
                                !p.c.empty(),
                                rows,
                                columns,
                                inner};
  const WorkspaceSize size = core::gemm_workspace_bytes(table, arguments);
  EXPECT_TRUE(size.status.ok()) << size.status.name();
  AlignedFloats workspace(size.bytes);
  const Status status = core::gemm(table, arguments, workspace.bytes());
  EXPECT_TRUE(status.ok()) << status.name();
  std::vector<float> result;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) result.push_back(c[i * c_stride + j]);
    for (std::size_t j = columns; j < c_stride; ++j) EXPECT_EQ(c[i * c_stride + j], kUntouched);
  }
  return result;
}

struct Element {
  double exact;
  float plain;  // one float32 sum from the first term to the last
  double largest_term;
};

Element element(const Product& p, std::size_t i, std::size_t j) {
  const auto [rows, columns, inner] = p.sizes;
  const float start = !p.bias.empty() ? p.bias[j] : !p.c.empty() ? p.c[i * columns + j] : 0.0F;
  Element e{0, 0.0F, std::abs(static_cast<double>(start))};
  for (std::size_t k = 0; k < inner; ++k) {
    const float a = p.a[i * inner + k];
    const float b = p.b[k * columns + j];
    const double term = static_cast<double>(a) * b;
    e.exact += term;
    e.plain += a * b;
    e.largest_term = std::max(e.largest_term, std::abs(term));
  }
  e.exact += start;
  e.plain += start;
  return e;
}

// Errors are at most twice the largest that plain float32 sums of the same problem make. A few terms may add up exactly
// in one order and not in another: hence the second part, two roundings of the result and of a term.
void expect_close_to_exact(const Product& p, const std::vector<float>& got) {
  const auto [rows, columns, inner] = p.sizes;
  ASSERT_EQ(got.size(), rows * columns);
  std::vector<Element> elements;
  double plain_error = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      elements.push_back(element(p, i, j));
      plain_error = std::max(plain_error, std::abs(elements.back().plain - elements.back().exact));
    }
  }
  constexpr double kU = 0x1p-24;
  for (std::size_t n = 0; n < elements.size(); ++n) {
    const Element& e = elements[n];
    const double bound = 2 * plain_error + 2 * kU * (std::abs(e.exact) + e.largest_term);
    ASSERT_NEAR(got[n], e.exact, bound) << "row " << n / columns << ", column " << n % columns;
  }
}

constexpr MatrixForm kFormsOfA[] = {MatrixForm::kRows, MatrixForm::kColumns};
constexpr MatrixForm kFormsOfB[] = {MatrixForm::kRows, MatrixForm::kColumns, MatrixForm::kPacked,
                                    MatrixForm::kPackedColumns};

class Gemm : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, Gemm, ::testing::ValuesIn(every_kernel()), kernel_name);

// In every form: close to the exact sums, and the same bits as in rows.
void check_forms(const KernelTable& table, const Product& p) {
  const std::vector<float> plain = multiply(table, p, {});
  expect_close_to_exact(p, plain);
  std::size_t gap = 0;
  for (const MatrixForm a : kFormsOfA) {
    for (const MatrixForm b : kFormsOfB) {
      EXPECT_TRUE(same_bits(multiply(table, p, {a, b, gap}), plain))
          << "forms " << static_cast<int>(a) << ", " << static_cast<int>(b) << ", gap " << gap;
      gap = 3 - gap;
    }
    gap = 3;  // each form with and without
  }
}

TEST_P(Gemm, MatchesSumsInDoubleAroundTheSizesOfTilesPanelsAndPieces) {
  std::uint64_t seed = 1;
  for (const std::size_t rows : {1, 2, 3, 4, 5, 6, 7, 12, 13, 47, 48, 49, 97}) {
    for (const std::size_t columns : {1, 7, 8, 9, 31, 33, 64, 70}) {
      for (const std::size_t inner : {1, 5, 255, 256, 257, 515}) {
        if (rows * columns * inner > 100'000 && inner != 257) continue;
        SCOPED_TRACE(text({rows, columns, inner}));
        ++seed;
        check_forms(table(), make_product({rows, columns, inner}, seed, seed % 2 == 0, false));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST_P(Gemm, MatchesSumsInDoubleOnRandomSizes) {
  Random random(99);
  for (std::uint64_t n = 0; n < 120; ++n) {
    const auto size = [&](std::int64_t most) { return static_cast<std::size_t>(random.integer(1, most)); };
    const Sizes s{size(60), size(90), size(n % 8 == 0 ? 700 : 60)};
    SCOPED_TRACE(text(s));
    const bool adds = random.chance(0.4);
    check_forms(table(), make_product(s, n, !adds && random.chance(0.5), adds));
    if (::testing::Test::HasFailure()) return;
  }
}

// One column more than whole panels, two pieces and a bit: what the larger shapes of a layer have.
TEST_P(Gemm, OfALayersShapeMatchesSumsInDouble) {
  const Product p = make_product({130, 257, 770}, 5, true, false);
  expect_close_to_exact(p, multiply(table(), p, {MatrixForm::kRows, MatrixForm::kPacked, 0}));
}

TEST_P(Gemm, LongSumsAreInPiecesAndBetterThanPlainOnesForIt) {
  const Product p = make_product({8, 32, 16384}, 11, false, false);
  const std::vector<float> got = multiply(table(), p, {});
  double error = 0;
  double plain_error = 0;
  for (std::size_t n = 0; n < got.size(); ++n) {
    const Element e = element(p, n / 32, n % 32);
    error += std::pow(got[n] - e.exact, 2);
    plain_error += std::pow(e.plain - e.exact, 2);
  }
  EXPECT_LT(std::sqrt(error), std::sqrt(plain_error) / 2);
}

TEST_P(Gemm, ARowHasTheSameBitsWhateverRowsAreBesideIt) {
  const Product all = make_product({101, 75, 300}, 3, true, false);
  const std::vector<float> together = multiply(table(), all, {});
  for (const std::size_t count : {1, 2, 3, 5, 6, 7, 50}) {
    std::vector<float> cut;
    for (std::size_t first = 0; first < all.sizes.rows; first += count) {
      const std::size_t rows = std::min<std::size_t>(count, all.sizes.rows - first);
      Product part = all;
      part.sizes.rows = rows;
      part.a.assign(&all.a[first * 300], &all.a[first * 300] + rows * 300);
      const std::vector<float> c = multiply(table(), part, {MatrixForm::kRows, MatrixForm::kPacked, 0});
      cut.insert(cut.end(), c.begin(), c.end());
    }
    EXPECT_TRUE(same_bits(cut, together)) << count << " rows at a time";
  }
}

TEST_P(Gemm, AColumnHasTheSameBitsWhateverColumnsAreBesideIt) {
  const Product all = make_product({7, 75, 300}, 4, true, false);
  const std::vector<float> together = multiply(table(), all, {});
  for (const std::size_t count : {1, 7, 8, 40}) {
    for (std::size_t first = 0; first < 75; first += count) {
      const std::size_t columns = std::min<std::size_t>(count, 75 - first);
      Product part{{7, columns, 300}, all.a, {}, {}, {}};
      for (std::size_t k = 0; k < 300; ++k) {
        for (std::size_t j = 0; j < columns; ++j) part.b.push_back(all.b[k * 75 + first + j]);
      }
      for (std::size_t j = 0; j < columns; ++j) part.bias.push_back(all.bias[first + j]);
      const std::vector<float> c = multiply(table(), part, {});
      for (std::size_t i = 0; i < 7; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(c[i * columns + j]),
                    std::bit_cast<std::uint32_t>(together[i * 75 + first + j]));
        }
      }
    }
  }
}

TEST_P(Gemm, ANaNStaysInItsRowOrColumn) {
  Product p = make_product({13, 21, 40}, 6, false, false);
  p.a[5 * 40 + 7] = kNaN;
  p.b[11 * 21 + 18] = std::numeric_limits<float>::infinity();
  for (const MatrixForm b : kFormsOfB) {
    const std::vector<float> c = multiply(table(), p, {MatrixForm::kRows, b, 0});
    for (std::size_t i = 0; i < 13; ++i) {
      for (std::size_t j = 0; j < 21; ++j) EXPECT_EQ(std::isfinite(c[i * 21 + j]), i != 5 && j != 18) << i << ", " << j;
    }
  }
}

TEST_P(Gemm, OfNoTermsIsTheBiasOrWhatWasThere) {
  const Product biased = make_product({5, 11, 0}, 7, true, false);
  const std::vector<float> c = multiply(table(), biased, {});
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 11; ++j) EXPECT_EQ(c[i * 11 + j], biased.bias[j]);
  }
  EXPECT_EQ(multiply(table(), make_product({5, 11, 0}, 7, false, false), {}), std::vector<float>(55, 0.0F));
  const Product adds = make_product({5, 11, 0}, 7, false, true);
  EXPECT_EQ(multiply(table(), adds, {}), adds.c);
}

TEST_P(Gemm, OfNoRowsOrNoColumnsDoesNothing) {
  EXPECT_TRUE(multiply(table(), make_product({0, 9, 4}, 8, true, false), {}).empty());
  EXPECT_TRUE(multiply(table(), make_product({9, 0, 4}, 8, false, false), {}).empty());
}

}  // namespace
}  // namespace sdpa::testing
