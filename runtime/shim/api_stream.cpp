// The driver API: streams, events, capture.
#include <fmt/format.h>

#include "runtime/shim/work.h"

using namespace roofgen::shim;

namespace {

thread_local int capture_mode = 0;  // CU_STREAM_CAPTURE_MODE_GLOBAL
constexpr unsigned kNoTiming = 2;   // CU_EVENT_DISABLE_TIMING

Status create_stream(State& s, const char* call, Handle* out, unsigned flags, int priority) {
  CHECK(out && flags <= 1, kInvalidValue, "stream flags {}", flags);
  auto stream = std::make_unique<Stream>();
  stream->flags = flags;
  stream->priority = priority;
  stream->context = current.back();
  stream->number = s.races.open(flags & 1 ? StreamOrder::Kind::kFree : StreamOrder::Kind::kBlocking,
                                fmt::format("stream {}", ++s.streams_made));
  *out = s.streams.add(std::move(stream));
  return kSuccess;
}

/// Waiting on a stream during its capture is an error.
Status drain(State& s, const char* call, Handle handle) {
  Stream* on = s.stream(handle);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, kCaptureUnsupported, "the stream is being captured");
  return s.drain_for(s.number_of(handle));
}

Status record(State& s, const char* call, Handle event, Handle stream) {
  CHECK(s.events.find(event), kInvalidHandle, "no such event");
  Stream* on = s.stream(stream);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, kNotSupported, "an event inside a captured graph");
  return s.queue(call, stream, make_record(s, event));
}

Status elapsed(State& s, const char* call, float* ms, Handle from, Handle to) {
  const Event *a = s.events.find(from), *b = s.events.find(to);
  CHECK(ms, kInvalidValue, "null");
  CHECK(a && b && a->timed && b->timed && a->recorded && b->recorded, kInvalidHandle,
        "an event that was not recorded, or has timing disabled");
  if (a->pending || b->pending) return kNotReady;
  s.races.order().host_waits(b->clock);  // a time means that both have ended
  s.races.order().host_waits(a->clock);
  *ms = static_cast<float>((b->time_ns - a->time_ns) * 1e-6);
  return kSuccess;
}

}  // namespace

ROOFGEN_CU(cuStreamCreate, kContext, (Handle * out, unsigned flags), { return create_stream(s, call, out, flags, 0); })
ROOFGEN_CU(cuStreamCreateWithPriority, kContext, (Handle * out, unsigned flags, int priority),
           { return create_stream(s, call, out, flags, priority); })
ROOFGEN_CU(cuStreamDestroy_v2, kContext, (Handle handle), {
  const Stream* on = s.streams.find(handle);
  CHECK(on, kInvalidHandle, "no such stream");
  s.races.close(on->number);
  s.streams.remove(handle);  // its queued work still runs
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuStreamSynchronize, kContext, (Handle handle), { return drain(s, call, handle); })
ROOFGEN_CU_PTSZ(cuStreamQuery, kContext, (Handle handle), {
  Stream* on = s.stream(handle);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, kCaptureUnsupported, "the stream is being captured");
  const Status status = s.progress();
  if (status == kSuccess) {
    s.races.order().host_waits(s.number_of(handle));
    s.races.forget_known();
  }
  return status;
})
ROOFGEN_CU_PTSZ(cuStreamWaitEvent, kContext, (Handle stream, Handle event, unsigned), {
  const Event* before = s.events.find(event);
  CHECK(before, kInvalidHandle, "no such event");
  CHECK(s.stream(stream), kInvalidHandle, "no such stream");
  // All streams run in submission order: only the search for races is told.
  if (!s.stream(stream)->capture) s.races.order().wait(s.number_of(stream), before->clock);
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuStreamGetFlags, kContext, (Handle handle, unsigned* flags), {
  CHECK(flags && s.stream(handle), kInvalidHandle, "no such stream");
  *flags = s.stream(handle)->flags;
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuStreamGetPriority, kContext, (Handle handle, int* priority), {
  CHECK(priority && s.stream(handle), kInvalidHandle, "no such stream");
  *priority = s.stream(handle)->priority;
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuStreamGetId, kContext, (Handle handle, unsigned long long* id), {
  CHECK(id && s.stream(handle), kInvalidHandle, "no such stream");
  *id = reinterpret_cast<uintptr_t>(handle);
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuStreamGetCtx, kContext, (Handle handle, Handle* context), {
  CHECK(context && s.stream(handle), kInvalidHandle, "no such stream");
  *context = s.stream(handle)->context ? s.stream(handle)->context : current.back();
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuStreamGetDevice, kContext, (Handle handle, int* device), {
  CHECK(device && s.stream(handle), kInvalidHandle, "no such stream");
  *device = 0;
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuStreamIsCapturing, kContext, (Handle handle, int* status), {
  CHECK(status && s.stream(handle), kInvalidHandle, "no such stream");
  *status = s.stream(handle)->capture ? 1 : 0;
  return kSuccess;
})

namespace {

/// `wants_graph`: the graph of the capture so far, or the nodes that the next one follows.
Status capture_info(State& s, const char* call, Handle handle, int* status, unsigned long long* id, bool wants_graph) {
  const Stream* on = s.stream(handle);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(status, kInvalidValue, "null");
  CHECK(!on->capture || !wants_graph, kNotSupported, "the graph of a capture before its end");
  *status = on->capture ? 1 : 0;
  if (on->capture && id) *id = on->capture_id;
  return kSuccess;
}

}  // namespace

ROOFGEN_CU_PTSZ(cuStreamGetCaptureInfo, kContext, (Handle handle, int* status, unsigned long long* id),
                { return capture_info(s, call, handle, status, id, false); })
ROOFGEN_CU_PTSZ(cuStreamGetCaptureInfo_v2, kContext,
                (Handle handle, int* status, unsigned long long* id, Handle* graph, const Handle** after,
                 size_t* count),
                { return capture_info(s, call, handle, status, id, graph || after || count); })
ROOFGEN_CU_PTSZ(cuStreamGetCaptureInfo_v3, kContext,
                (Handle handle, int* status, unsigned long long* id, Handle* graph, const Handle** after,
                 const void** edges, size_t* count),
                { return capture_info(s, call, handle, status, id, graph || after || edges || count); })

ROOFGEN_CU(cuEventCreate, kContext, (Handle * out, unsigned flags), {
  CHECK(out, kInvalidValue, "null");
  CHECK((flags & ~3u) == 0, kNotSupported, "event flags {}", flags);  // 4: INTERPROCESS
  auto event = std::make_unique<Event>();
  event->timed = (flags & kNoTiming) == 0;
  *out = s.events.add(std::move(event));
  return kSuccess;
})
ROOFGEN_CU(cuEventDestroy_v2, kContext, (Handle handle), {
  CHECK(s.events.remove(handle), kInvalidHandle, "no such event");
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuEventRecord, kContext, (Handle event, Handle stream), { return record(s, call, event, stream); })
ROOFGEN_CU_PTSZ(cuEventRecordWithFlags, kContext, (Handle event, Handle stream, unsigned),
                { return record(s, call, event, stream); })
ROOFGEN_CU(cuEventQuery, kContext, (Handle handle), {
  const Event* event = s.events.find(handle);
  CHECK(event, kInvalidHandle, "no such event");
  // Each query runs one queued item, so that polling loops end.
  const Status status = event->pending ? s.progress() : kSuccess;
  if (status != kSuccess && status != kNotReady) return status;
  if (event->pending) return kNotReady;
  s.races.order().host_waits(event->clock);
  s.races.forget_known();
  return kSuccess;
})
ROOFGEN_CU(cuEventSynchronize, kContext, (Handle handle), {
  const Event* event = s.events.find(handle);
  CHECK(event, kInvalidHandle, "no such event");
  return s.drain_for(event->clock);
})
ROOFGEN_CU(cuEventElapsedTime, kContext, (float* ms, Handle from, Handle to),
           { return elapsed(s, call, ms, from, to); })
ROOFGEN_CU(cuEventElapsedTime_v2, kContext, (float* ms, Handle from, Handle to),
           { return elapsed(s, call, ms, from, to); })

ROOFGEN_CU_PTSZ(cuLaunchHostFunc, kContext, (Handle stream, HostFunction function, void* data), {
  CHECK(function, kInvalidValue, "null");
  return s.queue(call, stream, make_host_call(function, data));
})
ROOFGEN_CU_PTSZ(cuStreamAddCallback, kContext,
                (Handle handle, void (*function)(Handle, Status, void*), void* data, unsigned flags), {
                  CHECK(function && flags == 0, kInvalidValue, "no function, or flags");
                  Stream* on = s.stream(handle);
                  CHECK(on, kInvalidHandle, "no such stream");
                  CHECK(!on->capture, kCaptureUnsupported, "the stream is being captured");
                  return s.queue(
                      call, handle,
                      {WorkType::kHost, [=] { return function(handle, kSuccess, data), kSuccess; }, nullptr, nullptr});
                })

ROOFGEN_CU(cuThreadExchangeStreamCaptureMode, kDriver, (int* mode), {
  // The mode forbids calls during a capture; here all calls stay allowed.
  CHECK(mode && *mode >= 0 && *mode <= 2, kInvalidValue, "no such mode");
  std::swap(*mode, capture_mode);
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuStreamBeginCapture_v2, kContext, (Handle handle, int), {
  CHECK(reinterpret_cast<uintptr_t>(handle) > 2, kCaptureUnsupported, "the default stream cannot be captured");
  Stream* on = s.stream(handle);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, 401, "the stream is being captured already");
  static uint64_t captures = 0;
  on->capture = std::make_unique<Graph>();
  on->capture_id = ++captures;
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuStreamEndCapture, kContext, (Handle handle, Handle* out), {
  Stream* on = s.stream(handle);
  CHECK(out, kInvalidValue, "null");
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(on->capture, 401, "the stream is not being captured");
  *out = s.graphs.add(std::move(on->capture));
  return kSuccess;
})
