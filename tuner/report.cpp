#include "tuner/report.h"

#include "tuner/choice.h"

namespace roofgen {

const char* to_string(Check check) {
  return check == Check::kAll ? "all" : check == Check::kFinalists ? "finalists" : "gpu";
}

Result<Check> parse_check(const std::string& name) {
  return parse_choice(name, "--check", {Check::kAll, Check::kFinalists, Check::kGpu});
}

const Timing* ranking_timing(const Measurement& m) { return m.cold ? &*m.cold : m.hot ? &*m.hot : nullptr; }

}  // namespace roofgen
