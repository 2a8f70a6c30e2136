#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "runtime/measure/measure.h"

namespace roofgen {

const char* to_string(Protocol::Mode mode) { return mode == Protocol::Mode::kBurst ? "burst" : "steady"; }

Result<Protocol::Mode> parse_mode(const std::string& name) {
  if (name == "steady") return Protocol::Mode::kSteady;
  if (name == "burst") return Protocol::Mode::kBurst;
  const char* nearest = name.starts_with("b") || name.starts_with("B") ? "burst" : "steady";
  return Error{Exit::kUsage,
               fmt::format("'{}' is not a mode of measurement; there are steady and burst", name),
               {},
               {fmt::format("did you mean '{}'?", nearest)}};
}

BenchClock BenchClock::real() {
  BenchClock out;
  out.now_s = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  out.sleep_s = [](double seconds) {
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  return out;
}

}  // namespace roofgen
