// Modifications of the scores between Q K^T and the softmax (softcap, score expression, mask) and the lengths of packed
// sequences (docs/kernels/attention-modifiers.md). Private to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "generator/expr/expr.h"
#include "generator/ops/op.h"
#include "generator/pointwise/formula.h"
#include "generator/pointwise/interval.h"

namespace roofgen::attention {

class Modifiers {
 public:
  /// For a problem with all dims. Errors: Exit::kUsage with a caret.
  static Result<std::shared_ptr<const Modifiers>> parse(const Problem& problem);
  /// For a problem that was accepted before; nullptr without modifiers. Equal modifiers
  /// are one object, while it is remembered.
  static std::shared_ptr<const Modifiers> of(const Problem& problem);

  bool has_score() const { return has_score_; }  ///< a softcap is one too
  bool has_mask() const { return mask_.has_value(); }
  bool depends_on(const std::string& index) const;

  /// Lengths of packed sequences, and the first token of each, [batch + 1]; empty without --lengths.
  const std::vector<int64_t>& lengths() const { return lengths_; }
  const std::vector<int64_t>& first_tokens() const { return first_tokens_; }

  std::vector<Buffer> buffers() const;
  /// The template's `formula`: the keys of Formula, and has_score, has_mask, bounds. `score`, `mask`: the parts that
  /// the kernel applies.
  expr::Map scope(bool score = true, bool mask = true) const;
  /// Fills a tensor of the expressions, or cu_seqlens; false for other buffers.
  bool fill(InputPattern pattern, const std::string& buffer, uint64_t offset, std::span<std::byte> out) const;

  /// Replaces the scaled scores of a query at `position` in its sequence with keys from `first` on by the modified
  /// scores. `sigma`: standard deviations of a correct kernel's errors, before and after.
  void score(InputPattern pattern, int64_t batch, int64_t head, int64_t position, int64_t first, std::span<double> s,
             std::span<double> sigma) const;
  /// Clears the keys from `first` on that are hidden from `position`.
  void mask(InputPattern pattern, int64_t batch, int64_t head, int64_t position, int64_t first,
            std::span<char> visible) const;
  /// Whether a key of [first, first + count) may be visible from a position of [begin, end). False is certain.
  bool may_see(InputPattern pattern, int64_t batch, int64_t head, int64_t begin, int64_t end, int64_t first,
               int64_t count) const;
  /// Visible pairs of a position in [begin, end) and a key in [0, min(keys, position + 1 if causal)). Exact, except
  /// that conditions on tables over q or k count as true, because the caller provides their values.
  double pairs(int64_t batch, int64_t head, int64_t begin, int64_t end, int64_t keys, bool causal) const;

 private:
  Result<void> read_lengths(const Problem& problem);
  Result<void> read_expressions(const Problem& problem);
  /// `lead`: the position of the first row.
  Result<void> check_int32(const pointwise::Condition& condition, int64_t lead) const;
  pointwise::RangeOf box(InputPattern pattern, int64_t batch, int64_t head, pointwise::Range q,
                         pointwise::Range k) const;
  /// kGrowing: a row of 64 has a NaN in each table over q, and many keys have -inf in the table `hiding_`.
  std::optional<double> special(InputPattern pattern, const TensorArg& t, int64_t position, int64_t key) const;
  bool hides(int64_t key) const;
  void find_hiding_table(int64_t shortest);
  pointwise::TensorReader reader(InputPattern pattern) const;
  const TensorArg* tensor(const std::string& name) const;

  std::string mask_text_;
  /// A float table over k that hides a key with -inf, as an additive mask does; empty: there is none, or a row might
  /// see hidden keys only.
  std::string hiding_;
  int64_t first_hidden_ = 0;  ///< keys that it hides at the begin
  bool has_score_ = false, causal_ = false;
  Extent extent_;  ///< sizes of the indices b, h, q, k
  std::vector<int64_t> lengths_, first_tokens_;
  std::optional<pointwise::Formula> formula_, score_,
      mask_;                                     ///< both outputs, as in fused kernels; score alone; mask alone
  pointwise::Condition condition_, score_text_;  ///< for interval analysis
  mutable std::mutex mutex_;
  mutable std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, bool>, double> counted_;
};

/// "512,1024,33", the text `lengths` or `kv_lengths`; Exit::kUsage with a caret otherwise. A cache may hold no keys, a
/// packed sequence has some.
Result<std::vector<int64_t>> parse_lengths(const std::string& name, const std::string& text);

}  // namespace roofgen::attention
