#include <algorithm>

#include "bench/peers/stream_timer.h"
#include "runtime/measure/statistics.h"

namespace roofgen::peers {

Rounds Rounds::of(const std::string& mode, int most, double seconds) {
  Rounds r;
  r.mode = mode;
  r.seconds = seconds;
  if (mode == "burst") {
    r.most = std::min(most > 0 ? most : 10, 10);
    r.warmup_s = 0;
    r.rest_s = 1;
  } else if (most > 0) {
    r.most = most;
  }
  return r;
}

Result<Turns> take_turns(const Stage& stage, size_t contenders, size_t sets, const Rounds& rounds) {
  Turns out;
  out.stopped = "most rounds";
  for (const char* way : {"cold", "hot"}) out.times[way].resize(contenders);
  for (const double until = stage.clock.now_s() + rounds.warmup_s; stage.clock.now_s() < until;)
    for (size_t i = 0; i < contenders; ++i) ROOFGEN_CHECK(stage.time([&] { return stage.run(i, 0); }, false));
  const double deadline = stage.clock.now_s() + rounds.seconds;
  while (out.rounds < rounds.most) {
    if (rounds.rest_s > 0) stage.clock.sleep_s(rounds.rest_s);
    const size_t round = static_cast<size_t>(out.rounds);
    for (const char* way : {"cold", "hot"})
      for (size_t turn = 0; turn < contenders; ++turn) {
        const size_t i = (turn + round) % contenders;
        ROOFGEN_TRY(const double ns,
                    stage.time([&] { return stage.run(i, round % sets); }, way == std::string("cold")));
        out.times[way][i].push_back(ns);
      }
    if (stage.state) stage.state(out);
    ++out.rounds;
    if (out.rounds >= rounds.least) {
      bool settled = true;
      for (const auto& [way, by] : out.times)
        for (const std::vector<double>& times : by) {
          const Timing t = summarize(times);
          settled &= (t.high_ns - t.low_ns) / 2 <= rounds.settled * t.median_ns;
        }
      if (settled) {
        out.stopped = "settled";
        break;
      }
    }
    if (stage.clock.now_s() >= deadline) {
      out.stopped = "out of time";
      break;
    }
  }
  return out;
}

}  // namespace roofgen::peers
