// Tells rounding from logic: what the kernel's own arithmetic gives in double (runtime/sim/doubles.h), beside its
// outputs and what is expected of them.
#pragma once

#include <functional>
#include <map>

#include "base/json.h"
#include "check/check.h"

namespace roofgen::sim {
class Doubles;
}

namespace roofgen::check {

/// Compares the outputs after the launch. `own_places`: replaces places as for findings.
Result<InDouble> compared_in_double(const sim::Doubles& doubles, Executor& executor, const std::vector<Argument>& args,
                                    const std::map<const Argument*, DevicePtr>& places,
                                    const std::function<void(Where& source, Where& ptx)>& own_places);
/// A part of the text report.
std::string in_double_text(const InDouble& result);
Json in_double_json(const InDouble& result);

}  // namespace roofgen::check
