#include "runtime/sim/launch_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace roofgen::sim {

std::string describe(const LaunchState& state, uint64_t address) {
  if (address == 0) return "a null pointer";
  if (address < kSharedBase) return fmt::format("address {:#x}, {} bytes from a null pointer", address, address);
  if (address < kSharedWindowEnd) return fmt::format("shared memory address {:#x}", address);
  if (address < kLocalWindowEnd) return fmt::format("local memory address {:#x}", address - kLocalBase);
  if (address < kParamWindowEnd) return fmt::format("parameter address {:#x}", address - kParamBase);
  if (address >= kTensorWindow && address < kGlobalBase)
    return fmt::format("lane {}, column {} of tensor memory", (address - kTensorWindow) / 4 >> 16 & 0x7f,
                       (address - kTensorWindow) / 4 & 0xffff);
  const Buffer *nearest = nullptr, *next = nullptr;
  for (const auto& b : *state.buffers)
    if (b->base <= address)
      nearest = b.get();
    else if (!next)
      next = b.get();
  const uint64_t offset = nearest ? address - nearest->base : 0, before = next ? next->base - address : ~uint64_t{0};
  if (nearest && offset < nearest->bytes) return fmt::format("{}[byte {}]", nearest->label, offset);
  const uint64_t past = nearest ? offset - nearest->bytes : ~uint64_t{0};
  if (past < kGuardBytes && past <= before)
    return fmt::format("{} bytes past the end of {} ({} bytes)", past, nearest->label, nearest->bytes);
  if (before < kGuardBytes) return fmt::format("{} bytes before {} ({} bytes)", before, next->label, next->bytes);
  return "an address in no buffer";
}

bool goes_on(GoOn how, const char* kind) {
  const std::string_view k = kind;
  const bool undefined = k == "uninitialised" || k == "race" || k == "unfenced" || k == "barrier-order" ||
                         k == "async-pending" || k == "out-of-array";
  const bool left_out = k == "out-of-bounds" || k == "misaligned" || k == "write-to-input";
  return how == GoOn::kAlways ? undefined || left_out : how == GoOn::kUndefined && undefined;
}

void add_finding(GoOn how, std::vector<Finding>& all, Finding finding) {
  const auto same = std::find_if(all.begin(), all.end(), [&](const Finding& f) {
    return how != GoOn::kNever && f.kind == finding.kind && f.ptx.line == finding.ptx.line;
  });
  if (same == all.end()) return all.push_back(std::move(finding));
  const uint64_t ctas = same->ctas + finding.ctas;
  merge(*same, std::move(finding));
  same->ctas = ctas;
}

Finding finding_of(const Kernel& kernel, Fault fault, uint64_t cta, uint32_t warp, uint32_t pc) {
  Finding f;
  f.kind = fault.kind;
  f.message = std::move(fault.message);
  f.kernel = kernel.name;
  f.ptx = {kernel.file, static_cast<int>(kernel.code[pc].line), 0};
  f.source = kernel.sources[pc];
  f.cta = cta;
  f.thread = warp * kWarpSize + fault.lane;
  return f;
}

}  // namespace roofgen::sim
