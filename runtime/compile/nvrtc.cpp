#include "runtime/compile/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "base/build_id.h"

namespace roofgen {

// Prototypes as documented for NVRTC 12.0 to 13.x; nvrtcResult is an int, nvrtcProgram a pointer.
struct Nvrtc::Api {
  int (*nvrtcVersion)(int*, int*);
  const char* (*nvrtcGetErrorString)(int);
  int (*nvrtcGetNumSupportedArchs)(int*);
  int (*nvrtcGetSupportedArchs)(int*);
  int (*nvrtcCreateProgram)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*nvrtcDestroyProgram)(void**);
  int (*nvrtcCompileProgram)(void*, int, const char* const*);
  int (*nvrtcGetProgramLogSize)(void*, size_t*);
  int (*nvrtcGetProgramLog)(void*, char*);
  int (*nvrtcGetPTXSize)(void*, size_t*);
  int (*nvrtcGetPTX)(void*, char*);
  int (*nvrtcGetCUBINSize)(void*, size_t*);
  int (*nvrtcGetCUBIN)(void*, char*);
};

namespace {

template <class F>
bool bind(void* library, const char* name, F* function, std::string* missing) {
  void* symbol = dlsym(library, name);
  if (!symbol && missing->empty()) *missing = name;
  std::memcpy(function, &symbol, sizeof symbol);
  return symbol != nullptr;
}

/// NVRTC loads its builtins library by plain name. Some releases have no RPATH, so the builtins beside the library are
/// loaded first; the loader then finds them by soname.
void load_builtins_beside(const std::string& path, int major, int minor) {
  std::filesystem::path dir = std::filesystem::path(path).parent_path();
  if (dir.empty()) return;
  dlopen((dir / fmt::format("libnvrtc-builtins.so.{}.{}", major, minor)).c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::string fetch(int (*size_of_it)(void*, size_t*), int (*get)(void*, char*), void* program) {
  size_t size = 0;
  if (size_of_it(program, &size) != 0 || size == 0) return "";
  std::string out(size, '\0');
  if (get(program, out.data()) != 0) return "";
  return out;
}

/// Text results include a terminating zero.
std::string fetch_text(int (*size_of_it)(void*, size_t*), int (*get)(void*, char*), void* program) {
  std::string out = fetch(size_of_it, get, program);
  while (!out.empty() && out.back() == '\0') out.pop_back();
  return out;
}

}  // namespace

Result<Nvrtc> Nvrtc::open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    return Error{Exit::kUnavailable, reason ? reason : "cannot be loaded"};
  }
  auto api = std::make_shared<Api>();
  std::string missing;
#define ROOFGEN_BIND(f) bind(library, #f, &api->f, &missing)
  ROOFGEN_BIND(nvrtcVersion);
  ROOFGEN_BIND(nvrtcGetErrorString);
  ROOFGEN_BIND(nvrtcGetNumSupportedArchs);
  ROOFGEN_BIND(nvrtcGetSupportedArchs);
  ROOFGEN_BIND(nvrtcCreateProgram);
  ROOFGEN_BIND(nvrtcDestroyProgram);
  ROOFGEN_BIND(nvrtcCompileProgram);
  ROOFGEN_BIND(nvrtcGetProgramLogSize);
  ROOFGEN_BIND(nvrtcGetProgramLog);
  ROOFGEN_BIND(nvrtcGetPTXSize);
  ROOFGEN_BIND(nvrtcGetPTX);
  ROOFGEN_BIND(nvrtcGetCUBINSize);
  ROOFGEN_BIND(nvrtcGetCUBIN);
#undef ROOFGEN_BIND
  Nvrtc nvrtc;
  if (!api->nvrtcVersion || api->nvrtcVersion(&nvrtc.major_, &nvrtc.minor_) != 0)
    return Error{Exit::kUnavailable, fmt::format("{}: not an NVRTC library", path)};
  if (std::pair(nvrtc.major_, nvrtc.minor_) < std::pair(kMinNvrtcMajor, kMinNvrtcMinor))
    return Error{Exit::kUnavailable, fmt::format("{}: NVRTC {}.{} is too old, {}.{} or newer is needed", path,
                                                 nvrtc.major_, nvrtc.minor_, kMinNvrtcMajor, kMinNvrtcMinor)};
  if (!missing.empty()) return Error{Exit::kUnavailable, fmt::format("{}: has no {}", path, missing)};
  nvrtc.path_ = path;
  Dl_info symbol = {};
  void* address = nullptr;
  std::memcpy(&address, &api->nvrtcVersion, sizeof address);
  if (dladdr(address, &symbol) != 0 && symbol.dli_fname && symbol.dli_fname[0] == '/') nvrtc.path_ = symbol.dli_fname;
  load_builtins_beside(nvrtc.path_, nvrtc.major_, nvrtc.minor_);
  nvrtc.api_ = std::move(api);
  return nvrtc;
}

std::vector<std::string> Nvrtc::archs() const {
  int count = 0;
  if (api_->nvrtcGetNumSupportedArchs(&count) != 0 || count <= 0 || count > 1000) return {};
  std::vector<int> numbers(static_cast<size_t>(count));
  if (api_->nvrtcGetSupportedArchs(numbers.data()) != 0) return {};
  std::vector<std::string> out;
  for (int number : numbers) out.push_back(fmt::format("sm_{}", number));
  return out;
}

std::string Nvrtc::build_id() const { return roofgen::build_id(reinterpret_cast<const void*>(api_->nvrtcVersion)); }

CompileReply Nvrtc::compile(const CompileRequest& request) const {
  CompileReply reply;
  std::vector<const char*> names, texts, flags;
  for (const auto& [name, text] : request.headers) {
    names.push_back(name.c_str());
    texts.push_back(text.c_str());
  }
  for (const std::string& flag : request.flags) flags.push_back(flag.c_str());
  void* program = nullptr;
  reply.status = api_->nvrtcCreateProgram(&program, request.source.c_str(), kSourceName, static_cast<int>(names.size()),
                                          texts.data(), names.data());
  if (reply.status == 0) {
    const auto compile = [&] {
      reply.status = api_->nvrtcCompileProgram(program, static_cast<int>(flags.size()), flags.data());
      reply.log = fetch_text(api_->nvrtcGetProgramLogSize, api_->nvrtcGetProgramLog, program);
    };
    compile();
    // Where ptxas fails, the log has the front end's warnings in place of its reason (seen in 13.0).
    if (reply.status != 0 && reply.log.find("warning") != std::string::npos &&
        reply.log.find(" error") == std::string::npos && reply.log.find("fatal") == std::string::npos) {
      flags.push_back("-w");
      compile();
    }
    reply.ptx = fetch_text(api_->nvrtcGetPTXSize, api_->nvrtcGetPTX, program);
    if (reply.status == 0) reply.cubin = fetch(api_->nvrtcGetCUBINSize, api_->nvrtcGetCUBIN, program);
    api_->nvrtcDestroyProgram(&program);
  }
  const char* name = api_->nvrtcGetErrorString(reply.status);
  reply.status_name = name ? name : "";
  return reply;
}

}  // namespace roofgen
