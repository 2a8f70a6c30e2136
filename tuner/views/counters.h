// What other judges of the hardware said of the winner, as text and as JSON.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "tuner/evidence/counters.h"
#include "tuner/evidence/sanitizer.h"

namespace roofgen {

std::string counters_text(const CounterReport& report);
Json counters_json(const CounterReport& report);  ///< an object, schema roofgen.counters.1
std::string sanitizer_text(const SanitizerReport& report);
Json sanitizer_json(const SanitizerReport& report);  ///< an object, schema roofgen.sanitizer.1

}  // namespace roofgen
