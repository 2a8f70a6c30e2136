#include "base/paths.h"

#include <cstdlib>

namespace roofgen {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

namespace {

std::string base_dir(const char* own, const char* xdg, const char* below_home) {
  if (std::string dir = environment(own); !dir.empty()) return dir;
  // By the XDG specification, relative paths are invalid and must be ignored.
  if (std::string dir = environment(xdg); !dir.empty() && dir[0] == '/') return dir + "/roofgen";
  if (std::string home = environment("HOME"); !home.empty() && home[0] == '/') return home + below_home + "/roofgen";
  return "";
}

}  // namespace

std::string cache_dir() { return base_dir("ROOFGEN_CACHE_DIR", "XDG_CACHE_HOME", "/.cache"); }
std::string data_home() { return base_dir("ROOFGEN_DATA_HOME", "XDG_DATA_HOME", "/.local/share"); }

}  // namespace roofgen
