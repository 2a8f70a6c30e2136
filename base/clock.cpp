#include "base/clock.h"

#include <ctime>

namespace roofgen {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// The choice of this name, by to_string().

}  // namespace roofgen
