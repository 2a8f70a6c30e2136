// cuGetProcAddress, apart from its table, which declares every entry point without its parameters.
#include <fmt/format.h>

#include "runtime/shim/state.h"

namespace roofgen::shim {
int find_entry(const char* name, int version, void** out);

namespace {

/// What is not there is CUDA_ERROR_NOT_FOUND of the old form; the new one says so through `how` and succeeds.
Status look_up(State& s, const char* call, const char* name, void** out, int version, unsigned long long flags,
               int* how) {
  if (!name || !out) return s.refuse(call, kInvalidValue, "null");
  *out = nullptr;
  // The flags choose per-thread default streams or not. Those forms are the same ones: all streams run in one order.
  if (flags > 2) return s.refuse(call, kInvalidValue, fmt::format("flags {}", flags));
  if (version > kVersion) {
    if (how) *how = 2;
    s.absent(call, kInvalidValue, fmt::format("{} of CUDA {}", name, cuda::version_text(version)));
    return kInvalidValue;
  }
  const int found = find_entry(name, version, out);
  if (how) *how = found;
  if (found == 0) return kSuccess;
  s.absent(call, kNotFound, fmt::format("{} of CUDA {}", name, cuda::version_text(version)));
  return how ? kSuccess : kNotFound;
}

}  // namespace
}  // namespace roofgen::shim

using namespace roofgen::shim;

ROOFGEN_CU(cuGetProcAddress, kNothing, (const char* name, void** out, int version, unsigned long long flags),
           { return look_up(s, call, name, out, version, flags, nullptr); })
ROOFGEN_CU(cuGetProcAddress_v2, kNothing,
           (const char* name, void** out, int version, unsigned long long flags, int* how),
           { return look_up(s, call, name, out, version, flags, how); })
ROOFGEN_CU(cuGetExportTable, kNothing, (const void** table, const void*), {
  if (table) *table = nullptr;
  return s.refuse(call, kNotSupported, "internal tables of NVIDIA's own libraries");
})

ROOFGEN_CU_PER_THREAD(cuGetProcAddress_v2, _ptsz);
