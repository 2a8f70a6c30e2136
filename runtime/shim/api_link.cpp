// The driver API: linking. One PTX is supported, and the image is its text.
#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "runtime/shim/fatbin.h"
#include "runtime/shim/work.h"

using namespace roofgen::shim;

namespace {

enum Input { kCubin = 0, kPtx = 1, kFatBinary = 2, kLibrary = 4, kInputTypes = 6 };  // CUjitInputType

Status add(State& s, const char* call, Handle state, int type, std::string data, const std::string& name) {
  Link* link = s.links.find(state);
  CHECK(link, kInvalidHandle, "no such linker");
  CHECK(type >= 0 && type < kInputTypes, kInvalidValue, "input of type {}", type);
  CHECK(!link->complete, kInvalidValue, "the linker is complete");
  // The device runtime serves kernels that launch kernels. Those are refused, and all others do without.
  if (type == kLibrary && data.starts_with("!<arch>") && data.find("cuda_device_runtime.o") != data.npos)
    return kSuccess;
  CHECK(type != kCubin, kNoBinary, "{}: only PTX can be simulated", name);
  if (type == kFatBinary) {
    CHECK(data.size() >= 16 && is_fatbin(data.data()) && fatbin_bytes(data.data()) <= data.size(), kInvalidImage,
          "{}: no fat binary", name);
    auto ptx = ptx_in_fatbin(data.data(), static_cast<int>(s.device.integer("arch")));
    CHECK(ptx, kNoBinary, "{}: {}", name, ptx.error().message);
    data = std::move(*ptx);
  }
  CHECK(type == kPtx || type == kFatBinary, kNotSupported, "{}: input of type {}: only PTX is linked", name, type);
  CHECK(link->image.empty(), kNotSupported, "{}: several PTX modules are not linked into one", name);
  data.resize(strnlen(data.data(), data.size()));  // with or without a terminating zero
  // Load it to check that it is PTX for this device.
  std::string why;
  Module* module = nullptr;
  const Status status = s.load(call, data.c_str(), &why, &module);
  fill_log(why, static_cast<unsigned>(link->options.size()), link->options.data(), link->values);
  if (status != kSuccess) return status;
  s.unload(*module);
  s.modules.remove(module);
  link->image = std::move(data);
  return kSuccess;
}

}  // namespace

ROOFGEN_CU(cuLinkCreate_v2, kContext, (unsigned count, int* options, void** values, Handle* out), {
  CHECK(out && (count == 0 || (options && values)), kInvalidValue, "null");
  auto link = std::make_unique<Link>();
  link->options.assign(options, options + count);
  link->values = values;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == kJitMaxRegisters)
      link->max_registers = static_cast<int>(reinterpret_cast<uintptr_t>(values[i]) & 0xffff);
  *out = s.links.add(std::move(link));
  return kSuccess;
})
ROOFGEN_CU(cuLinkAddData_v2, kContext,
           (Handle state, int type, void* data, size_t bytes, const char* name, unsigned, int*, void**), {
             CHECK(data && bytes > 0, kInvalidValue, "no data");
             return add(s, call, state, type, {static_cast<const char*>(data), bytes}, name ? name : "the input");
           })
ROOFGEN_CU(cuLinkAddFile_v2, kContext, (Handle state, int type, const char* path, unsigned, int*, void**), {
  CHECK(path, kInvalidValue, "null");
  std::ifstream in(path, std::ios::binary);
  CHECK(in, kFileNotFound, "{}", path);
  return add(s, call, state, type, {std::istreambuf_iterator<char>(in), {}}, path);
})
ROOFGEN_CU(cuLinkComplete, kContext, (Handle state, void** image, size_t* bytes), {
  Link* link = s.links.find(state);
  CHECK(link, kInvalidHandle, "no such linker");
  CHECK(image, kInvalidValue, "null");
  CHECK(!link->image.empty(), kInvalidValue, "nothing to link");
  link->complete = true;
  *image = link->image.data();
  if (bytes) *bytes = link->image.size() + 1;  // with the terminating zero, so that a copy can be loaded
  s.log(fmt::format("{}: the image is the PTX itself: machine code is not made", call));
  return kSuccess;
})
ROOFGEN_CU(cuLinkDestroy, kContext, (Handle state), {
  CHECK(s.links.remove(state), kInvalidHandle, "no such linker");
  return kSuccess;
})
