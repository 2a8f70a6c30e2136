#include "base/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/ADT/StringRef.h>

namespace roofgen {

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  unsigned best_distance = static_cast<unsigned>(word.size() / 3 + 1);
  for (const std::string& k : known) {
    const unsigned distance = llvm::StringRef(word.data(), word.size()).edit_distance(k, true, best_distance);
    // A distance above a third of the word, including its first letter, means another word ("v100" is not "a10").
    if (word.size() > 3 && distance > word.size() / 3 && !k.starts_with(word.front())) continue;
    if (distance <= best_distance && (best.empty() || distance < best_distance)) {
      best = k;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  // A prefix stands for the family: "h100" for h100-sxm, h100-pcie and h100-nvl.
  std::vector<std::string> members;
  for (const std::string& k : known)
    if (word.size() >= 2 && k.size() > word.size() &&
        llvm::StringRef(k).take_front(word.size()).equals_insensitive(llvm::StringRef(word.data(), word.size())))
      members.push_back(k);
  if (members.size() > 1 && members.size() <= 4) return fmt::format("; did you mean {}?", fmt::join(members, ", "));
  if (std::string best = nearest(word, known); !best.empty()) return fmt::format("; did you mean \"{}\"?", best);
  if (known.empty() || known.size() > 24) return "";
  return fmt::format("; known: {}", fmt::join(known, ", "));
}

}  // namespace roofgen
