// Which work of streams is ordered before which, as the API promises it and not as the simulated driver happens to run
// it.
//
// The work of each stream is counted. A Clock says, for each stream, up to which count its work has ended before some
// point. Streams, recorded events and the host have one each: what is submitted is behind all that its stream and the
// host know by then.
#pragma once

#include <cstdint>
#include <vector>

namespace roofgen::shim {

class StreamOrder {
 public:
  using Clock = std::vector<uint64_t>;  ///< by stream; what is missing is 0
  /// A piece of work: the `count`th of a stream.
  struct Point {
    uint32_t stream = 0;
    uint64_t count = 0;
    bool operator==(const Point&) const = default;
  };
  /// The legacy default stream and blocking streams wait for each other, in the order of their work.
  enum class Kind : uint8_t { kLegacy, kBlocking, kFree };
  static constexpr uint32_t kLegacyStream = 0;

  StreamOrder();
  /// A new stream. Its number may be that of a closed one whose work the host has seen end.
  uint32_t open(Kind kind);
  /// Work that was submitted goes on.
  void close(uint32_t stream);
  Kind kind(uint32_t stream) const { return streams_[stream].kind; }
  /// Streams that are open, without the legacy one, for which `f` holds.
  template <class F>
  int count_open(F&& f) const {
    int n = 0;
    for (uint32_t i = kLegacyStream + 1; i < streams_.size(); ++i) n += streams_[i].open && f(streams_[i].kind);
    return n;
  }

  /// The next work of a stream. An event that is recorded is such work, too.
  Point submit(uint32_t stream);
  /// What work submitted last to the stream is ordered behind, itself included.
  const Clock& clock(uint32_t stream) const { return streams_[stream].clock; }
  /// Later work of the stream is behind an event's clock.
  void wait(uint32_t stream, const Clock& event);
  /// The host has waited: for all work of a stream, for an event, for the device.
  void host_waits(uint32_t stream);
  void host_waits(const Clock& event) { join(host_, event); }
  void host_waits_for_all();

  static bool is_before(Point work, const Clock& clock) {
    return work.stream < clock.size() && work.count <= clock[work.stream];
  }
  bool host_knows(Point work) const { return is_before(work, host_); }
  bool host_knows_all(uint32_t stream) const { return host_knows({stream, last(stream)}); }

 private:
  struct Stream {
    Kind kind;
    bool open = true;
    Clock clock;
  };
  static void join(Clock& into, const Clock& other);
  uint64_t last(uint32_t stream) const { return streams_[stream].clock[stream]; }
  /// Adds what work that is submitted now is behind.
  void enter(uint32_t stream);

  std::vector<Stream> streams_;
  Clock host_;
  Clock closed_;  ///< of blocking streams that have been closed: the legacy stream waits for their work too
};

}  // namespace roofgen::shim
