#include "tuner/search/run.h"

#include <fmt/format.h>

#include <ctime>

#include "base/suggest.h"

namespace roofgen {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

const char* to_string(Check check) {
  return check == Check::kAll ? "all" : check == Check::kFinalists ? "finalists" : "gpu";
}

Result<Check> parse_check(const std::string& name) {
  for (Check c : {Check::kAll, Check::kFinalists, Check::kGpu})
    if (name == to_string(c)) return c;
  return Error{Exit::kUsage,
               fmt::format("unknown check \"{}\"{}", name, did_you_mean(name, {"all", "finalists", "gpu"}))};
}

}  // namespace roofgen
