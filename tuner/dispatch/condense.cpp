#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tuner/dispatch/dispatch.h"

namespace roofgen {
namespace {

/// Nodes of the search tree. A node of 64 shapes and 150 kernels takes some 10 us. Assumption: no table is worth more.
constexpr uint64_t kMostNodes = 50'000;

/// Minimum set cover over the shapes, with the sum of times as the second objective.
class CoverSearch {
 public:
  CoverSearch(const TimeMatrix& seconds, double within) : shapes_(seconds.empty() ? 0 : seconds[0].size()) {
    std::vector<double> best(shapes_, kNever);
    for (const auto& row : seconds)
      for (size_t s = 0; s < shapes_; ++s) best[s] = std::min(best[s], row[s].value_or(kNever));
    for (const double b : best) least_total_ += b;
    for (size_t k = 0; k < seconds.size(); ++k) {
      Kernel kernel{k, 0, std::vector<double>(shapes_)};
      for (size_t s = 0; s < shapes_; ++s) {
        kernel.seconds[s] = seconds[k][s].value_or(kNever);
        if (kernel.seconds[s] <= (1 + within) * best[s]) kernel.covers |= uint64_t{1} << s;
      }
      if (kernel.covers != 0) kernels_.push_back(std::move(kernel));
    }
    drop_dominated();
    all_ = shapes_ == 64 ? ~uint64_t{0} : (uint64_t{1} << shapes_) - 1;
  }

  Cover run() {
    greedy();
    visit(0, {}, std::vector<bool>(kernels_.size()));
    Cover out;
    for (const size_t k : best_) out.kernels.push_back(kernels_[k].index);
    std::ranges::sort(out.kernels);
    out.exact = nodes_ <= kMostNodes;
    return out;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Kernel {
    size_t index;     ///< of the matrix
    uint64_t covers;  ///< the shapes at which it is close enough
    std::vector<double> seconds;
  };

  /// A kernel that another one equals or beats everywhere is in no set that is needed.
  void drop_dominated() {
    std::vector<Kernel> kept;
    for (size_t a = 0; a < kernels_.size(); ++a) {
      const bool dominated = std::ranges::any_of(kernels_, [&](const Kernel& b) {
        const Kernel& own = kernels_[a];
        if (b.index == own.index) return false;
        bool equal = true;
        for (size_t s = 0; s < shapes_; ++s) {
          if (b.seconds[s] > own.seconds[s]) return false;
          equal &= b.seconds[s] == own.seconds[s];
        }
        return !equal || b.index < own.index;
      });
      if (!dominated) kept.push_back(kernels_[a]);
    }
    kernels_ = std::move(kept);
  }

  double total(const std::vector<size_t>& set) const {
    double sum = 0;
    for (size_t s = 0; s < shapes_; ++s) {
      double least = kNever;
      for (const size_t k : set) least = std::min(least, kernels_[k].seconds[s]);
      sum += least;
    }
    return sum;
  }

  void offer(const std::vector<size_t>& set) {
    const double sum = total(set);
    if (!best_.empty() && (set.size() > best_.size() || (set.size() == best_.size() && sum >= best_total_))) return;
    best_ = set;
    best_total_ = sum;
  }

  /// The kernel that covers most, again and again; of equal ones the one with the lower sum of times.
  void greedy() {
    std::vector<size_t> set;
    for (uint64_t covered = 0; covered != all_;) {
      size_t next = 0;
      int most = 0;
      double least = kNever;
      for (size_t k = 0; k < kernels_.size(); ++k) {
        const int fresh = std::popcount(kernels_[k].covers & ~covered);
        if (fresh == 0 || fresh < most) continue;
        set.push_back(k);
        const double sum = total(set);
        set.pop_back();
        if (fresh > most || sum < least) {
          next = k;
          most = fresh;
          least = sum;
        }
      }
      set.push_back(next);
      covered |= kernels_[next].covers;
    }
    offer(set);
  }

  /// Extends a set that covers `covered`, by kernels that are not `tried`: sets with those were visited before.
  void visit(uint64_t covered, std::vector<size_t> set, std::vector<bool> tried) {
    if (++nodes_ > kMostNodes) return;
    if (covered == all_) return offer(set);
    int widest = 0;
    for (size_t k = 0; k < kernels_.size(); ++k)
      if (!tried[k]) widest = std::max(widest, std::popcount(kernels_[k].covers & ~covered));
    if (widest == 0) return;
    const size_t missing = static_cast<size_t>(std::popcount(all_ & ~covered));
    const size_t fewest = set.size() + (missing + static_cast<size_t>(widest) - 1) / static_cast<size_t>(widest);
    if (fewest > best_.size() || (fewest == best_.size() && least_total_ >= best_total_)) return;
    // The shape with the fewest kernels: one of them is in any cover.
    std::vector<size_t> ways;
    for (size_t s = 0; s < shapes_; ++s) {
      if (covered >> s & 1) continue;
      std::vector<size_t> those;
      for (size_t k = 0; k < kernels_.size(); ++k)
        if (!tried[k] && (kernels_[k].covers >> s & 1)) those.push_back(k);
      if (those.empty()) return;
      if (ways.empty() || those.size() < ways.size()) ways = std::move(those);
    }
    std::ranges::stable_sort(ways, std::greater(),
                             [&](size_t k) { return std::popcount(kernels_[k].covers & ~covered); });
    for (const size_t k : ways) {
      set.push_back(k);
      tried[k] = true;
      visit(covered | kernels_[k].covers, set, tried);
      set.pop_back();
    }
  }

  size_t shapes_;
  std::vector<Kernel> kernels_;
  uint64_t all_ = 0;
  double least_total_ = 0;  ///< with every kernel in the set
  std::vector<size_t> best_;
  double best_total_ = kNever;
  uint64_t nodes_ = 0;
};

}  // namespace

Cover condense(const TimeMatrix& seconds, double within) {
  Cover out = CoverSearch(seconds, within).run();
  const size_t shapes = seconds.empty() ? 0 : seconds[0].size();
  for (size_t s = 0; s < shapes; ++s)
    out.chosen.push_back(*std::ranges::min_element(
        out.kernels, {}, [&](size_t k) { return seconds[k][s].value_or(std::numeric_limits<double>::infinity()); }));
  return out;
}

}  // namespace roofgen
