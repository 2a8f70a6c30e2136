#include "tuner/tune.h"

#include "tuner/choice.h"

namespace roofgen {

TuneOptions TuneOptions::in(const std::string& place) const {
  TuneOptions out = *this;
  if (progress)
    out.progress = [outer = progress, place](const char* phase, uint64_t done, uint64_t total) {
      outer((place + phase).c_str(), done, total);
    };
  return out;
}

const char* to_string(Effort effort) {
  return effort == Effort::kNone ? "none" : effort == Effort::kQuick ? "quick" : "full";
}

Result<Effort> parse_effort(const std::string& name) {
  return parse_choice(name, "--effort", {Effort::kNone, Effort::kQuick, Effort::kFull});
}

}  // namespace roofgen
