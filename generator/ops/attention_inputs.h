// The contents of Q, K and V: pure functions of (pattern, tensor, batch, head, row, column). A reduced problem and a
// slice of a large one therefore hold the same numbers, and nothing is stored.
#pragma once

#include <cstdint>
#include <span>

#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

enum class Tensor { kQ, kK, kV, kGiven };

/// The values of attention in the order of their computation. Scores are scaled products after the score expression.
enum class Value { kInputs, kProducts, kScores, kMasked, kProbabilities, kOutput };

class Inputs {
 public:
  Inputs(const Numbers& shape, InputPattern pattern);

  /// The d elements of one row of one head as they are in memory: bits of dtype_of(). The row of a key that is appended
  /// is in K_new or V_new.
  void row(Tensor tensor, int64_t batch, int64_t head, int64_t row, uint16_t* out) const;
  /// The same, as numbers; e4m3 without its scale.
  void row(Tensor tensor, int64_t batch, int64_t head, int64_t row, double* out) const;
  /// The format of a row in memory.
  DType dtype_of(Tensor tensor, int64_t batch, int64_t row) const;
  /// The row that the products of attention use: rotated and rounded to the problem's dtype, and of e4m3 times its
  /// scale. New keys and values of a cache in fp8 are those that the cache holds afterwards. `variance` (nullptr: not
  /// needed): the square of the largest error of a correct kernel's operand, which differs only near ties.
  void operand(Tensor tensor, int64_t batch, int64_t head, int64_t row, double* out, double* variance) const;
  /// The scale of e4m3 of a K/V head (of Q: of the query heads that share it), an fp32 number. Powers of two where
  /// results are exact.
  double fp8_scale(Tensor tensor, int64_t kv_head) const;
  /// The e4m3 number that a cache holds for a new element x, rotated, of scale `scale`. `doubt`: the spacing of e4m3
  /// where x is within `error` of a tie, else 0.
  static double stored_fp8(double x, double error, double scale, double* doubt);

  /// kNormal: how the rows of a tensor are made.
  Recipe recipe(Tensor tensor, bool appended) const;

  /// kOneHot: the largest |Q K^T|.
  double largest_product() const;
  /// The generated input of a kernel that is verified alone: values of one row of one head from key `first` on, of the
  /// usual magnitude. Hidden scores are -inf and hidden probabilities 0. Elements that no kernel may read are NaN: keys
  /// past the end, and keys that --causal hides when there is a mask as well. kGrowing, kOneHot: products and scores of
  /// which the last ones, or one, are larger.
  void given(Value value, int64_t batch, int64_t head, int64_t row, int64_t first, std::span<double> out) const;
  /// The bytes of a buffer of such rows.
  void fill_given(Value value, uint64_t offset, std::span<std::byte> out) const;

  /// kOneHot: the key that a row attends to.
  int64_t target(int64_t batch, int64_t head, int64_t row) const;
  /// kOneKey: the visible key of a row with another value than zero; it differs between rows, heads and batches. -1:
  /// none.
  int64_t one_key(int64_t batch, int64_t head, int64_t row) const;

 private:
  void normal(Tensor tensor, int64_t batch, int64_t head, int64_t row, uint16_t* out) const;
  /// The row that the pattern asks for: what the products use, apart from roundings.
  void pattern_row(Tensor tensor, int64_t batch, int64_t head, int64_t row, uint16_t* out) const;
  /// fp8_scale of a tensor's own head; 1 where elements have no scale.
  double scale_of(Tensor tensor, int64_t head) const;
  bool is_new(Tensor tensor, int64_t batch, int64_t row) const;
  /// Whether memory holds the row unrotated.
  bool is_unrotated(Tensor tensor, int64_t batch, int64_t row) const;
  /// kGrowing: the score that column 0 adds for a key, at most 0, and the factor of it in a row.
  double level(int64_t key) const;
  double growth(int64_t batch, int64_t kind) const;
  /// The same for column 3: a growth in the last keys that a row sees.
  double late(int64_t batch, int64_t key) const;
  double late_factor(int64_t batch, int64_t row, int64_t kind) const;
  int64_t block_from_end(int64_t batch, int64_t kind) const;  ///< of 64 rows
  static bool grows_alone(int64_t kind);
  static double offset_factor(int64_t kind);
  /// The unscaled score of an exact row in its last keys; 0: another row.
  double exact_growth(int64_t batch, int64_t kind) const;
  bool grows_exactly(int64_t key) const;
  /// The row whose growth, offset and target a row has. With few queries heads and batches differ in it too.
  int64_t kind(int64_t batch, int64_t head, int64_t row) const;
  void code(int64_t key, uint16_t magnitude, uint16_t* out) const;
  double value_of_one_key(Value value) const;
  void small_integers(int64_t batch, int64_t head, int64_t row, uint16_t* out) const;
  double large_value(int64_t key) const;

  Numbers shape_;
  InputPattern pattern_;
  int code_bits_;                       ///< kOneHot: bits of the longest key number
  uint16_t q_magnitude_, k_magnitude_;  ///< kOneHot: |element| of Q and of K
  double growing_query_;                ///< kGrowing: column 0 of Q, a power of two
  double product_magnitude_;            ///< about sqrt d, a power of two
};

/// kGrowing: the largest score, in magnitude, that column 0 adds. A maximum from before the first step is
/// too small by more than e^x can represent.
inline constexpr double kDeepest = 128;
/// kGrowing: the factor of V for keys before the last step, and of all V. Sums of p v on the way exceed fp16 and, in
/// bf16, so do values of O.
inline constexpr double kGrowingValue = 64;
inline double growing_unit(const Numbers& shape) { return shape.fp8() ? 1 : shape.dtype == DType::kFp16 ? 256 : 65536; }
/// kGrowing: after as many rows, all kinds of growth have occurred.
inline constexpr int64_t kGrowingRows = 256;
/// Up to as many queries of a head, which show few kinds of growth and few targets, heads differ in them.
inline constexpr int64_t kFewRows = 16;
/// kGrowing: columns 1 and 2 add this, or a part of it, to all scores of some rows and subtract it in others. exp(100)
/// overflows fp32. The largest part that is subtracted: a maximum that grows below zero.
inline constexpr double kOffset = 100, kLowest = -2;
/// kGrowing: rows of this kind, of 16, see scores that are lower by far; fp16 holds no unscaled product below -56000.
/// Their other columns of Q are 0, so that their sums of products are exact.
inline constexpr int64_t kLowestKind = 11;
double lowest_score(const Numbers& shape);  ///< 0: a score expression, a prologue or the scale forbids it
/// kGrowing: these columns raise the maximum of some rows, whose other columns of Q are 0, by exactly these exponents
/// of two at four of the last keys, where no other row of their warp grows: the most that a kernel may leave without a
/// rescaling, and the least that fp16 cannot represent (2^15.9998 rounds to infinity). Three columns hold the 24 bits
/// of the fp32 product.
inline constexpr int kExactColumns[] = {4, 5, 6};
inline constexpr float kExactGrowth[] = {8, 15.9998F};
/// kGrowing: what column 3 adds for the last key that a row sees; e times less for each kLateKeys before it.
inline constexpr double kLate = 192, kLateKeys = 32;
/// The most that it adds for a hidden key, e^2 times as much.
inline constexpr double kLateHidden = 1420;
/// kZeroQuery: added to V in the first half of the keys and subtracted in the second, so that the sum of p v is much
/// larger on the way than at the end: a narrow accumulator overflows or loses the end.
inline constexpr double kLargeValue = 64;

/// kOneHot: the least difference between the score of the key and all others.
inline constexpr double kGap = 128;
/// kOneHot: V of odd keys in fp16, so that its numbers are below the smallest normal one, 2^-14.
inline constexpr double kSubnormal = 0x1p-18;

/// The key of [begin, end) that a row attends to under kOneHot.
int64_t one_hot_target(int64_t row, int64_t begin, int64_t end);

}  // namespace roofgen::attention
