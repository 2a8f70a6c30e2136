#include "runtime/shim/stream_order.h"

#include <algorithm>

namespace roofgen::shim {

StreamOrder::StreamOrder() { open(Kind::kLegacy); }

void StreamOrder::join(Clock& into, const Clock& other) {
  if (into.size() < other.size()) into.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

uint32_t StreamOrder::open(Kind kind) {
  uint32_t n = 0;
  while (n < streams_.size() && (streams_[n].open || !host_knows({n, last(n)}))) ++n;
  if (n == streams_.size()) streams_.push_back({kind, true, Clock(n + 1)});
  // Counts go on, so that clocks which know the closed stream stay right.
  Stream& s = streams_[n];
  const uint64_t count = last(n);
  s = {kind, true, host_};
  if (s.clock.size() <= n) s.clock.resize(n + 1);
  s.clock[n] = count;
  return n;
}

void StreamOrder::close(uint32_t stream) {
  streams_[stream].open = false;
  if (streams_[stream].kind == Kind::kBlocking) join(closed_, streams_[stream].clock);
}

void StreamOrder::enter(uint32_t stream) {
  Stream& s = streams_[stream];
  join(s.clock, host_);
  if (s.kind == Kind::kBlocking) join(s.clock, clock(kLegacyStream));
  if (s.kind != Kind::kLegacy) return;
  join(s.clock, closed_);
  for (const Stream& other : streams_)
    if (other.open && other.kind == Kind::kBlocking) join(s.clock, other.clock);
}

StreamOrder::Point StreamOrder::submit(uint32_t stream) {
  enter(stream);
  return {stream, ++streams_[stream].clock[stream]};
}

void StreamOrder::wait(uint32_t stream, const Clock& event) {
  enter(stream);
  join(streams_[stream].clock, event);
}

void StreamOrder::host_waits(uint32_t stream) {
  if (kind(stream) == Kind::kLegacy) enter(stream);  // it waits for the others although nothing follows
  join(host_, clock(stream));
}

void StreamOrder::host_waits_for_all() {
  if (host_.size() < streams_.size()) host_.resize(streams_.size());
  for (uint32_t i = 0; i < streams_.size(); ++i) host_[i] = last(i);
}

}  // namespace roofgen::shim
