// cuGetProcAddress, apart from its table, which declares every entry point without its parameters.
#include <fmt/format.h>

#include "runtime/shim/state.h"

namespace roofgen::shim {
int find_entry(const char* name, int version, void** out);

namespace {

Status look_up(State& s, const char* call, const char* name, void** out, int version, int* how) {
  if (!name || !out) return s.refuse(call, kInvalidValue, "null");
  // The forms for per-thread default streams are the same ones: all streams run in one order.
  const int found = find_entry(name, version, out);
  if (how) *how = found;
  if (found == 0) return kSuccess;
  return s.refuse(call, kNotFound, fmt::format("{} for CUDA {}", name, cuda::version_text(version)));
}

}  // namespace
}  // namespace roofgen::shim

using namespace roofgen::shim;

ROOFGEN_CU(cuGetProcAddress, kNothing, (const char* name, void** out, int version, unsigned long long), { return look_up(s, call, name, out, version, nullptr); })
ROOFGEN_CU(cuGetProcAddress_v2, kNothing, (const char* name, void** out, int version, unsigned long long, int* how), { return look_up(s, call, name, out, version, how); })
ROOFGEN_CU(cuGetExportTable, kNothing, (const void** table, const void*), {
  if (table) *table = nullptr;
  return s.refuse(call, kNotSupported, "internal tables of NVIDIA's own libraries");
})
