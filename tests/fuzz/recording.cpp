// Reads arbitrary bytes as a recorded space: no crash; what can be read is written and read again as it was.
#include "tuner/recording/recording.h"

#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace roofgen::fuzz_recording {
namespace {

bool equal(const Recording& a, const Recording& b) {
  if (a.points.size() != b.points.size()) return false;
  for (size_t i = 0; i < a.points.size(); ++i)
    if (a.points[i].failure != b.points[i].failure || a.configuration(a.points[i]) != b.configuration(b.points[i]))
      return false;
  return true;
}

}  // namespace

FUZZ_TARGET(recording) {
  const auto read = read_recordings({reinterpret_cast<const char*>(data), size}, "f.json");
  if (!read) return read.error().message.empty() ? std::abort(), 1 : 0;
  for (const Recording& r : *read) {
    if (r.points.empty()) continue;
    for (const std::string& format : recording_formats())
      if (const auto text = write_recording(r, format); !text || text->empty()) std::abort();
    const auto again = read_recordings(*write_recording(r, "t4"), "g.json");
    if (!again || again->size() != 1 || !equal(r, again->front())) std::abort();
  }
  return 0;
}

}  // namespace roofgen::fuzz_recording
