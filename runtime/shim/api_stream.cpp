// The driver API: streams, events, graphs.
#include <fmt/format.h>

#include "runtime/shim/state.h"

using namespace roofgen::shim;

#define CHECK(condition, status, why) \
  if (!(condition)) return s.refuse(call, status, why)

namespace {

constexpr unsigned kNoTiming = 2;  // CU_EVENT_DISABLE_TIMING

Status create(State& s, const char* call, Handle* out, unsigned flags, int priority) {
  CHECK(out && flags <= 1, kInvalidValue, fmt::format("stream flags {}", flags));
  auto stream = std::make_unique<Stream>();
  stream->flags = flags;
  stream->priority = priority;
  *out = s.streams.add(std::move(stream));
  return kSuccess;
}

/// A wait on a stream that is being captured is a mistake everywhere.
Status drain(State& s, const char* call, Handle handle) {
  Stream* on = s.stream(handle);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, kCaptureUnsupported, "the stream is being captured");
  return s.drain();
}

Status record(State& s, const char* call, Handle handle, Handle stream) {
  Event* event = s.events.find(handle);
  CHECK(event, kInvalidHandle, "no such event");
  Stream* on = s.stream(stream);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, kNotSupported, "an event inside a graph");
  event->recorded = true;
  ++event->pending;
  return s.queue(call, stream, [&s, handle] {
    if (Event* now = s.events.find(handle)) {
      now->time_ns = s.now_ns;
      --now->pending;
    }
    return kSuccess;
  });
}

Status elapsed(State& s, const char* call, float* ms, Handle from, Handle to) {
  const Event *a = s.events.find(from), *b = s.events.find(to);
  CHECK(ms, kInvalidValue, "null");
  CHECK(a && b && a->timed && b->timed && a->recorded && b->recorded, kInvalidHandle, "an event that was not recorded, or takes no times");
  if (a->pending || b->pending) return kNotReady;
  *ms = static_cast<float>((b->time_ns - a->time_ns) * 1e-6);
  return kSuccess;
}

Status instantiate(State& s, const char* call, Handle* out, Handle handle, unsigned long long flags) {
  Graph* graph = s.graphs.find(handle);
  CHECK(out, kInvalidValue, "null");
  CHECK(graph, kInvalidHandle, "no such graph");
  CHECK((flags & ~1ull) == 0, kNotSupported, fmt::format("graph flags {}", flags));  // 1: frees memory at a launch, of which none is allocated
  *out = s.executables.add(std::make_unique<Graph>(*graph));
  return kSuccess;
}

}  // namespace

ROOFGEN_CU(cuStreamCreate, kContext, (Handle * out, unsigned flags), { return create(s, call, out, flags, 0); })
ROOFGEN_CU(cuStreamCreateWithPriority, kContext, (Handle * out, unsigned flags, int priority), { return create(s, call, out, flags, priority); })
ROOFGEN_CU(cuStreamDestroy_v2, kContext, (Handle handle), {
  CHECK(s.streams.find(handle), kInvalidHandle, "no such stream");
  s.streams.remove(handle);  // what it queued still runs
  return kSuccess;
})
ROOFGEN_CU(cuStreamSynchronize, kContext, (Handle handle), { return drain(s, call, handle); })
ROOFGEN_CU(cuStreamQuery, kContext, (Handle handle), {
  Stream* on = s.stream(handle);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, kCaptureUnsupported, "the stream is being captured");
  return s.progress();
})
ROOFGEN_CU(cuStreamWaitEvent, kContext, (Handle stream, Handle event, unsigned), {
  CHECK(s.events.find(event), kInvalidHandle, "no such event");
  CHECK(s.stream(stream), kInvalidHandle, "no such stream");
  return kSuccess;  // all streams run in the order of queueing
})
ROOFGEN_CU(cuStreamGetFlags, kContext, (Handle handle, unsigned* flags), {
  CHECK(flags && s.stream(handle), kInvalidHandle, "no such stream");
  *flags = s.stream(handle)->flags;
  return kSuccess;
})
ROOFGEN_CU(cuStreamGetPriority, kContext, (Handle handle, int* priority), {
  CHECK(priority && s.stream(handle), kInvalidHandle, "no such stream");
  *priority = s.stream(handle)->priority;
  return kSuccess;
})
ROOFGEN_CU(cuStreamIsCapturing, kContext, (Handle handle, int* status), {
  CHECK(status && s.stream(handle), kInvalidHandle, "no such stream");
  *status = s.stream(handle)->capture ? 1 : 0;
  return kSuccess;
})

ROOFGEN_CU(cuEventCreate, kContext, (Handle * out, unsigned flags), {
  CHECK(out, kInvalidValue, "null");
  CHECK((flags & ~3u) == 0, kNotSupported, fmt::format("event flags {}", flags));  // 4: between processes
  auto event = std::make_unique<Event>();
  event->timed = (flags & kNoTiming) == 0;
  *out = s.events.add(std::move(event));
  return kSuccess;
})
ROOFGEN_CU(cuEventDestroy_v2, kContext, (Handle handle), {
  CHECK(s.events.remove(handle), kInvalidHandle, "no such event");
  return kSuccess;
})
ROOFGEN_CU(cuEventRecord, kContext, (Handle event, Handle stream), { return record(s, call, event, stream); })
ROOFGEN_CU(cuEventRecordWithFlags, kContext, (Handle event, Handle stream, unsigned), { return record(s, call, event, stream); })
ROOFGEN_CU(cuEventQuery, kContext, (Handle handle), {
  const Event* event = s.events.find(handle);
  CHECK(event, kInvalidHandle, "no such event");
  if (!event->pending) return kSuccess;
  // A step of the work a question, so that a loop of them ends.
  const Status status = s.progress();
  return status == kSuccess || status == kNotReady ? (event->pending ? kNotReady : kSuccess) : status;
})
ROOFGEN_CU(cuEventSynchronize, kContext, (Handle handle), {
  CHECK(s.events.find(handle), kInvalidHandle, "no such event");
  return s.drain();
})
ROOFGEN_CU(cuEventElapsedTime, kContext, (float* ms, Handle from, Handle to), { return elapsed(s, call, ms, from, to); })
ROOFGEN_CU(cuEventElapsedTime_v2, kContext, (float* ms, Handle from, Handle to), { return elapsed(s, call, ms, from, to); })

ROOFGEN_CU(cuStreamBeginCapture_v2, kContext, (Handle handle, int), {
  CHECK(reinterpret_cast<uintptr_t>(handle) > 2, kCaptureUnsupported, "the default stream cannot be captured");
  Stream* on = s.stream(handle);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, 401, "it is being captured");
  on->capture = std::make_unique<Graph>();
  return kSuccess;
})
ROOFGEN_CU(cuStreamEndCapture, kContext, (Handle handle, Handle* out), {
  Stream* on = s.stream(handle);
  CHECK(out, kInvalidValue, "null");
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(on->capture, 401, "it is not being captured");
  *out = s.graphs.add(std::move(on->capture));
  return kSuccess;
})
ROOFGEN_CU(cuGraphInstantiateWithFlags, kContext, (Handle * out, Handle graph, unsigned long long flags), { return instantiate(s, call, out, graph, flags); })
ROOFGEN_CU(cuGraphUpload, kContext, (Handle graph, Handle stream), {
  CHECK(s.executables.find(graph) && s.stream(stream), kInvalidHandle, "no such graph or stream");
  return kSuccess;
})
ROOFGEN_CU(cuGraphLaunch, kContext, (Handle handle, Handle stream), {
  const Graph* graph = s.executables.find(handle);
  CHECK(graph, kInvalidHandle, "no such graph");
  for (const Op& op : graph->ops)
    if (Status status = s.queue(call, stream, op); status != kSuccess) return status;
  return kSuccess;
})
ROOFGEN_CU(cuGraphDestroy, kContext, (Handle handle), {
  CHECK(s.graphs.remove(handle), kInvalidHandle, "no such graph");
  return kSuccess;
})
ROOFGEN_CU(cuGraphExecDestroy, kContext, (Handle handle), {
  CHECK(s.executables.remove(handle), kInvalidHandle, "no such graph");
  return kSuccess;
})

ROOFGEN_CU_PER_THREAD(cuStreamSynchronize, _ptsz);
ROOFGEN_CU_PER_THREAD(cuStreamQuery, _ptsz);
ROOFGEN_CU_PER_THREAD(cuStreamWaitEvent, _ptsz);
ROOFGEN_CU_PER_THREAD(cuStreamGetFlags, _ptsz);
ROOFGEN_CU_PER_THREAD(cuStreamGetPriority, _ptsz);
ROOFGEN_CU_PER_THREAD(cuStreamIsCapturing, _ptsz);
ROOFGEN_CU_PER_THREAD(cuEventRecord, _ptsz);
ROOFGEN_CU_PER_THREAD(cuEventRecordWithFlags, _ptsz);
ROOFGEN_CU_PER_THREAD(cuStreamBeginCapture_v2, _ptsz);
ROOFGEN_CU_PER_THREAD(cuStreamEndCapture, _ptsz);
ROOFGEN_CU_PER_THREAD(cuGraphUpload, _ptsz);
ROOFGEN_CU_PER_THREAD(cuGraphLaunch, _ptsz);
