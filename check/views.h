// What the reports of `check` and of `run` show in the same form.
#pragma once

#include <string>

#include "base/json.h"
#include "roofgen/pipeline.h"

namespace roofgen::check {

std::string place(const Where& at);
/// "1 finding", "3 findings".
std::string plural(uint64_t n, const std::string& what);
/// Place, kind and message; below them `before`, the CTA, the thread, the PTX line, and `after`.
std::string finding_text(const Finding& finding, const std::string& before, const std::string& after);
inline constexpr const char* kSeeFindings = " (explained in docs/findings.md)";

Json where_json(const Where& at);
Json finding_json(const Finding& finding);
Json counts_json(const Counts& counts);

}  // namespace roofgen::check
