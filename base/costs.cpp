#include "base/costs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>

namespace roofgen {
namespace {

/// The arguments of this process, as text of JSON.
std::string command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string out;
  for (char c; out.size() < 300 && file.get(c);) out += c == '\0' || c == '"' || c == '\\' || c < ' ' ? ' ' : c;
  return out;
}

/// Of the process: written when static objects end, by exit() alone, so a forked child that calls _exit writes nothing.
struct Account {
  std::array<std::atomic<uint64_t>, kCosts> counts = {};

  ~Account() {
    const char* path = std::getenv("ROOFGEN_COSTS");
    if (!path || !*path) return;
    std::string line = "{\"command\": \"" + command() + '"';
    for (size_t i = 0; i < kCosts; ++i)
      line += fmt::format(", \"{}\": {}", to_string(static_cast<Cost>(i)), counts[i].load());
    line += "}\n";
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return;
    // Processes append at once: one write is one line.
    if (write(fd, line.data(), line.size()) < 0) fmt::print(stderr, "roofgen: warning: cannot write {}\n", path);
    close(fd);
  }
};

Account& account() {
  static Account account;
  return account;
}

}  // namespace

const char* to_string(Cost cost) {
  static constexpr const char* kNames[kCosts] = {"runs",     "tunes",     "expressions",
                                                 "compiled", "simulated", "interpreted"};
  return kNames[static_cast<size_t>(cost)];
}

void spend(Cost cost, uint64_t count) {
  account().counts[static_cast<size_t>(cost)].fetch_add(count, std::memory_order_relaxed);
}

uint64_t spent(Cost cost) { return account().counts[static_cast<size_t>(cost)].load(); }

}  // namespace roofgen
