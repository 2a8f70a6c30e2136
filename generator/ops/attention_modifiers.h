// What a problem does to the scores between Q K^T and the softmax: softcap, a score expression, a mask, and the lengths
// of a batch whose sequences differ (docs/attention-modifiers.md). Private to this folder.
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
  /// Of a problem with all its dims. Exit::kUsage with a caret for what the user got wrong.
  static Result<std::shared_ptr<const Modifiers>> parse(const Problem& problem);
  /// The same for a problem that was accepted before; nullptr where nothing is modified. Results are kept.
  static std::shared_ptr<const Modifiers> of(const Problem& problem);

  bool has_score() const { return has_score_; }  ///< a softcap counts
  bool has_mask() const { return mask_.has_value(); }
  const std::string& identity() const { return identity_; }  ///< equal for problems that modify alike
  bool depends_on(const std::string& index) const;

  /// Lengths of the sequences and where each begins, [batch + 1]; empty when all are alike.
  const std::vector<int64_t>& lengths() const { return lengths_; }
  const std::vector<int64_t>& first_tokens() const { return first_tokens_; }

  std::vector<Buffer> buffers() const;
  /// What templates see as `formula`: Formula's own keys, and has_score, has_mask, bounds. A kernel that has to do with
  /// only one of the two sees that one.
  expr::Map scope(bool score = true, bool mask = true) const;
  /// Fills a tensor that the expressions read.
  bool fill(InputPattern pattern, const std::string& buffer, uint64_t offset, std::span<std::byte> out) const;

  /// The scaled scores of `position` (a query's place in its sequence) with keys from `first` on become the modified
  /// ones, with the standard deviation of the error a correct kernel may make; `sigma` holds that of the scores.
  void score(InputPattern pattern, int64_t batch, int64_t head, int64_t position, int64_t first, std::span<double> s,
             std::span<double> sigma) const;
  /// Clears the keys from `first` on that `position` may not see.
  void mask(InputPattern pattern, int64_t batch, int64_t head, int64_t position, int64_t first,
            std::span<char> visible) const;
  /// May any key of [first, first + count) be seen from a position of [begin, end)? False is certain.
  bool may_see(InputPattern pattern, int64_t batch, int64_t head, int64_t begin, int64_t end, int64_t first,
               int64_t count) const;
  /// Pairs of a position in [begin, end) and a key in [0, min(keys, position + 1 if causal)) that the mask lets
  /// through. Exact but for conditions on tables over q or k, which count as true: what they hold is the caller's.
  double pairs(int64_t batch, int64_t head, int64_t begin, int64_t end, int64_t keys, bool causal) const;

 private:
  Result<void> read_lengths(const Problem& problem);
  Result<void> read_expressions(const Problem& problem);
  /// `lead`: the position of the first row.
  Result<void> check_int32(const pointwise::Condition& condition, int64_t lead) const;
  pointwise::RangeOf box(InputPattern pattern, int64_t batch, int64_t head, pointwise::Range q,
                         pointwise::Range k) const;
  pointwise::TensorReader reader(InputPattern pattern) const;
  const TensorArg* tensor(const std::string& name) const;

  std::string identity_, mask_text_;
  bool has_score_ = false, causal_ = false;
  Extent extent_;  ///< sizes of the indices b, h, q, k
  std::vector<int64_t> lengths_, first_tokens_;
  std::optional<pointwise::Formula> formula_, score_, mask_;  ///< both outputs, as kernels have them; each alone
  pointwise::Condition condition_, score_text_;               ///< what may be known of them
  mutable std::mutex mutex_;
  mutable std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, bool>, double> counted_;
};

/// "512,1024,33"; Exit::kUsage with a caret otherwise.
Result<std::vector<int64_t>> parse_lengths(const std::string& text);

}  // namespace roofgen::attention
