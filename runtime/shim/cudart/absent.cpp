// The runtime API: calls that are not supported. Each one is logged.
#include "runtime/shim/cudart/runtime.h"

// Declared without parameters: in the calling conventions of x86-64 and aarch64 the caller removes the arguments.
#define NOT_THERE(symbol)                                                                               \
  extern "C" __attribute__((visibility("default"))) int symbol();                                       \
  extern "C" __attribute__((visibility("default"))) int symbol() {                                      \
    return ::roofgen::shim::cudart::last_error =                                                        \
               ::roofgen::shim::cudart::refuse(#symbol, ::roofgen::shim::cudart::kNotSupported,         \
                                               "the runtime on the simulated driver does not do this"); \
  }

#define ENTRY(symbol)
#define ENTRY_PTSZ(symbol)
#define ENTRY_PTDS(symbol)
#define ABSENT(symbol) NOT_THERE(symbol)
#define ABSENT_PTSZ(symbol) NOT_THERE(symbol) NOT_THERE(symbol##_ptsz)
#define ABSENT_PTDS(symbol) NOT_THERE(symbol) NOT_THERE(symbol##_ptds)
#include "runtime/shim/cudart/entries.def"
