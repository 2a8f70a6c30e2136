#include "base/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/ADT/StringRef.h>

namespace roofgen {

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  const std::string lower = llvm::StringRef(word.data(), word.size()).lower();
  std::string best;
  unsigned best_distance = static_cast<unsigned>(word.size() / 3 + 1);
  for (const std::string& k : known) {
    const unsigned distance = llvm::StringRef(lower).edit_distance(llvm::StringRef(k).lower(), true, best_distance);
    // A distance above a third of the word, including its first letter, means another word ("v100" is not "a10").
    if (word.size() > 3 && distance > word.size() / 3 && !k.starts_with(word.front())) continue;
    if (distance <= best_distance && (best.empty() || distance < best_distance)) {
      best = k;
      best_distance = distance;
    }
  }
  return best;
}

std::vector<std::string> suggestions(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kMost = 4, kShortestPart = 3;
  const llvm::StringRef part(word.data(), word.size());
  const std::string lower = part.lower();
  // A part stands for the family: "h100" for h100-sxm, h100-pcie and h100-nvl, "4090" for rtx-4090.
  std::vector<std::string> beginning, inside;
  for (const std::string& k : known) {
    if (word.size() < 2 || k.size() <= word.size()) continue;
    const llvm::StringRef name(k);
    if (name.take_front(word.size()).equals_insensitive(part))
      beginning.push_back(k);
    else if (word.size() >= kShortestPart && ("-" + name + "-").str().find("-" + lower + "-") != std::string::npos)
      inside.push_back(k);
  }
  for (const auto& found : {beginning, inside})
    if (!found.empty() && found.size() <= kMost) return found;
  const std::string best = nearest(word, known);
  return best.empty() ? std::vector<std::string>() : std::vector<std::string>{best};
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string> names = suggestions(word, known);
  if (names.size() == 1) return fmt::format("; did you mean \"{}\"?", names.front());
  if (!names.empty()) return fmt::format("; did you mean {}?", fmt::join(names, ", "));
  if (known.empty() || known.size() > 40) return "";
  return fmt::format("; known: {}", fmt::join(known, ", "));
}

}  // namespace roofgen
