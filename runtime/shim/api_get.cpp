// cuGetProcAddress. Its table is in api_lookup.cpp, which declares every entry point without parameters.
#include <fmt/format.h>

#include <cstring>

#include "runtime/shim/state.h"

namespace roofgen::shim {
int find_entry(const char* name, int version, void** out);

namespace {

/// For a missing function the old form returns CUDA_ERROR_NOT_FOUND; the new one succeeds and reports it in `how`.
Status look_up(State& s, const char* call, const char* name, void** out, int version, unsigned long long flags,
               int* how) {
  if (!name || !out) return s.refuse(call, kInvalidValue, "null");
  *out = nullptr;
  // The flags select the forms with per-thread default streams, which are the same: all streams run in one order.
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

/// The table that NVRTC 13.0 asks for in each compilation, and does without: nothing of the program has failed.
constexpr unsigned char kTableOfNvrtc[] = {0xda, 0x91, 0x51, 0xd3, 0x3a, 0xe6, 0xcc, 0x41,
                                           0xa5, 0xc0, 0x4f, 0x26, 0xd5, 0x33, 0xe3, 0x28};

}  // namespace
}  // namespace roofgen::shim

using namespace roofgen::shim;

ROOFGEN_CU(cuGetProcAddress, kNothing, (const char* name, void** out, int version, unsigned long long flags),
           { return look_up(s, call, name, out, version, flags, nullptr); })
ROOFGEN_CU_PTSZ(cuGetProcAddress_v2, kNothing,
                (const char* name, void** out, int version, unsigned long long flags, int* how),
                { return look_up(s, call, name, out, version, flags, how); })
ROOFGEN_CU(cuGetExportTable, kNothing, (const void** table, const void* id), {
  if (table) *table = nullptr;
  if (id && std::memcmp(id, kTableOfNvrtc, sizeof(kTableOfNvrtc)) == 0) return kNotSupported;
  return s.refuse(
      call, kNotSupported,
      "internal tables of NVIDIA's libraries, which cuBLAS and the static CUDA runtime need (nvcc -cudart shared "
      "links the other one)");
})
