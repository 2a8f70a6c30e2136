// The driver API: entry points that are not supported. Each call is logged.
#include "runtime/shim/state.h"

namespace {

roofgen::shim::Status absent(const char* call) {
  return roofgen::shim::State::instance().refuse(call, roofgen::shim::kNotSupported,
                                                 "the simulated driver does not do this");
}

}  // namespace

/// For the runtime on this driver (cudart/), whose errors have names of their own.
extern "C" __attribute__((visibility("default"))) int roofgen_simulated_refuse(const char* call, int status,
                                                                               const char* name, const char* why);
extern "C" int roofgen_simulated_refuse(const char* call, int status, const char* name, const char* why) {
  auto& s = roofgen::shim::State::instance();
  const std::lock_guard lock(s.mutex);
  return s.refuse(call, status, name, why);
}

// Declared without parameters: in the calling conventions of x86-64 and aarch64 the caller removes the arguments.
#define NOT_THERE(symbol)                                                             \
  extern "C" __attribute__((visibility("default"))) ::roofgen::shim::Status symbol(); \
  extern "C" __attribute__((visibility("default"))) ::roofgen::shim::Status symbol() { return absent(#symbol); }

#define ENTRY(symbol, name, since)
#define ENTRY_PTSZ(symbol, name, since)
#define ENTRY_PTDS(symbol, name, since)
#define ABSENT(symbol, name, since) NOT_THERE(symbol)
#define ABSENT_PTSZ(symbol, name, since) NOT_THERE(symbol) NOT_THERE(symbol##_ptsz)
#define ABSENT_PTDS(symbol, name, since) NOT_THERE(symbol) NOT_THERE(symbol##_ptds)
#include "runtime/shim/entries.def"
