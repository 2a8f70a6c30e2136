// The timeline of the simulated SM in the Trace Event Format, which Perfetto and chrome://tracing open. One microsecond
// of the timeline is one cycle.
#include <fmt/format.h>

#include <set>

#include "base/json.h"
#include "profile/profile.h"

namespace roofgen::profile {

std::string profile_trace(const Report& r) {
  std::string out =
      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"unit\":\"1 us of the timeline is 1 cycle\"},\"traceEvents\":[\n";
  out += R"({"name":"process_name","ph":"M","pid":1,"args":{"name":"warps"}},)"
         "\n"
         R"({"name":"process_name","ph":"M","pid":2,"args":{"name":"CTAs"}})";
  std::set<int> warps;
  for (const timing::TraceSpan& s : r.time.sm.trace) {
    if (warps.insert(s.warp).second)
      out += fmt::format(
          ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{},\"args\":{{\"name\":\"scheduler {} warp "
          "{}\"}}}}",
          s.warp, s.scheduler, s.warp);
    const auto line = s.index < r.places.size() ? r.places[s.index] : Where{};
    out += fmt::format(
        ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.0f},\"dur\":{:.0f},\"args\":{{"
        "\"at\":{}}}}}",
        json_line(s.issue ? r.spellings[s.index] : std::string(to_string(s.stall))), s.issue ? "issue" : "stall",
        s.warp, s.begin, std::max(1.0, s.end - s.begin), json_line(fmt::format("{}:{}", line.file, line.line)));
  }
  int slot = 0;
  for (const timing::CtaSpan& c : r.time.sm.ctas)
    out += fmt::format(",\n{{\"name\":\"CTA {}\",\"ph\":\"X\",\"pid\":2,\"tid\":{},\"ts\":{:.0f},\"dur\":{:.0f}}}",
                       c.cta, slot++, c.begin, c.end - c.begin);
  return out + "\n]}\n";
}

}  // namespace roofgen::profile
