// Several strategies that share all results.
#include <algorithm>
#include <array>

#include "tuner/strategy/history.h"
#include "tuner/strategy/kinds.h"

namespace roofgen {
namespace {

/// Most turns are the surrogate's. The others have a fixed share, so that a space whose times follow no smooth function
/// is not left to a wrong model. All members see the results of all.
class Portfolio final : public Strategy {
 public:
  Portfolio(const SearchSpace& space, uint64_t seed)
      : history_(space.points.size()),
        members_{surrogate(space, seed), local_search(space, seed + 1), genetic(space, seed + 2)} {}

  std::vector<size_t> ask(size_t n) override {
    std::vector<size_t> out;
    n = std::min(n, history_.longest_round());
    while (out.size() < n) {
      const size_t member = member_at(turns_);
      size_t turns = 1;
      while (out.size() + turns < n && member_at(turns_ + turns) == member) ++turns;
      const std::vector<size_t> points = members_[member]->ask(turns);
      turns_ += turns;
      if (points.empty()) break;
      for (const size_t point : points) {
        // Another member may have asked for the point in this round.
        if (history_.taken(point)) continue;
        history_.take(point);
        out.push_back(point);
      }
    }
    return out;
  }

  void tell(size_t point, const TrialResult& result) override {
    history_.tell(point, result);
    for (const std::unique_ptr<Strategy>& member : members_) member->tell(point, result);
  }

 private:
  static constexpr size_t kOthers = 32;
  static size_t member_at(size_t turn) { return turn == 0 || turn % kOthers != 0 ? 0 : 1 + turn / kOthers % 2; }

  History history_;
  std::array<std::unique_ptr<Strategy>, 3> members_;
  size_t turns_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> portfolio(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<Portfolio>(space, seed);
}

}  // namespace roofgen
