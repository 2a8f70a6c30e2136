// What attention does to Q, K and V before the scores: rotary positions, keys appended to the cache, a cache in fp8
// (docs/kernels/decode.md); and the scales of Q, K and V in fp8. Private to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "generator/expr/expr.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen::attention {

/// Checks --rotary, --append, --kv-dtype and what belongs to them, and removes choices that are the default. All other
/// dims are known.
Result<void> complete_prologue(Problem& problem);

/// Whether a problem has appended keys: KvCache needs no more.
inline bool appends(const Problem& problem) {
  const auto at = problem.flags.find("append");
  return at != problem.flags.end() && at->second;
}

/// Whether it has rotary positions, appended keys or e4m3.
bool has_prologue(const Problem& problem);

class Prologue {
 public:
  /// For a problem that complete() accepted; nullptr without has_prologue(). Equal ones are one object, while it is
  /// remembered.
  static std::shared_ptr<const Prologue> of(const Problem& problem);

  explicit Prologue(const Problem& problem);

  const std::string& rotary() const { return rotary_; }    ///< "half", "interleaved", or "": none
  int64_t rotary_dim() const { return 2 * pairs_; }        ///< columns that are rotated; 0: none
  bool has_table() const { return table_; }                ///< cos and sin come from rotary_table
  bool rotates_keys() const { return rotates_keys_; }      ///< all of K is stored unrotated
  bool append() const { return append_; }                  ///< the last L keys of each sequence are in K_new and V_new
  bool kv_fp8() const { return kv_fp8_; }                  ///< K and V hold e4m3
  bool scale_per_head() const { return scale_per_head_; }  ///< of K/V heads; else one scale for each tensor

  /// rotary_table, q_scale, k_scale and v_scale.
  std::vector<Buffer> buffers() const;
  /// Fills rotary_table; false for other buffers.
  bool fill(const std::string& buffer, uint64_t offset, std::span<std::byte> out) const;
  /// The names of the scope, without strides.
  expr::Map scope() const;

  /// The columns of pair i of rotary_dim / 2.
  std::pair<int64_t, int64_t> columns(int64_t i) const {
    return interleaved_ ? std::pair{2 * i, 2 * i + 1} : std::pair{i, i + pairs_};
  }
  /// Rotates a row of d elements by its position, `back`: by minus its position. Without rounding; with a table by its
  /// fp32 values.
  void rotate(int64_t position, double* row, bool back = false) const;

 private:
  /// Cosine and sine of the angle of pair i at a position.
  std::pair<double, double> angle(int64_t position, int64_t i) const;
  /// base^(-2i / rotary_dim): radians per position.
  long double frequency(int64_t i) const;

  std::string rotary_;
  int64_t pairs_ = 0, kv_len_, kv_heads_;
  double base_;
  bool interleaved_, table_, rotates_keys_ = false, append_, kv_fp8_, q_fp8_, scale_per_head_;
  /// cos, sin of [position / kFine][pair] from the lowest position on, and of [position % kFine][pair].
  int64_t first_block_ = 0;
  std::vector<std::pair<double, double>> coarse_, fine_;
};

/// The largest error of an element that a kernel rotates in fp32, before it is rounded, over the norm of its pair: two
/// products and their sum, cos.approx and sin.approx (2^-20.5 each), and an angle of 2^-29 turns.
inline constexpr double kRotationError = 0x1p-19;

}  // namespace roofgen::attention
