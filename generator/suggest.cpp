#include "generator/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/ADT/StringRef.h>

namespace roofgen {

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  unsigned best_distance = static_cast<unsigned>(word.size() / 3 + 1);
  for (const std::string& k : known) {
    const unsigned distance = llvm::StringRef(word.data(), word.size()).edit_distance(k, true, best_distance);
    if (distance <= best_distance && (best.empty() || distance < best_distance)) {
      best = k;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  if (std::string best = nearest(word, known); !best.empty()) return fmt::format("; did you mean \"{}\"?", best);
  if (known.empty() || known.size() > 24) return "";
  return fmt::format("; known: {}", fmt::join(known, ", "));
}

}  // namespace roofgen
