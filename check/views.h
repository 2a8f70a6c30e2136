// What the reports of `check` and of `run` show in the same form.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "check/check.h"
#include "roofgen/pipeline.h"

namespace roofgen::check {

std::string place(const Where& at);
std::string range_text(const NotRun& lines);  ///< "k.cu:14 to 18"
/// The first ones, and the number of the others.
template <class Place>
std::string places_text(const std::vector<Place>& places, std::string (*text)(const Place&)) {
  constexpr size_t kMost = 3;
  std::string out;
  for (size_t i = 0; i < std::min(places.size(), kMost); ++i) out += (i ? ", " : "") + text(places[i]);
  return out + (places.size() > kMost ? fmt::format(" and {} more", places.size() - kMost) : "");
}
/// "1 finding", "3 findings".
std::string plural(uint64_t n, const std::string& what);
/// Place, kind and message; below them `before`, the CTA, the thread, the PTX line, and `after`.
std::string finding_text(const Finding& finding, const std::string& before, const std::string& after);
inline constexpr const char* kSeeFindings = " (explained in docs/use/findings.md)";

Json where_json(const Where& at);
Json finding_json(const Finding& finding);
Json counts_json(const Counts& counts);

}  // namespace roofgen::check
