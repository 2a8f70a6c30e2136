// The driver API: entry points by name. A name without suffix selects the newest form in the requested CUDA version.
#include <cstring>

// Only the addresses are used, so the types do not matter.
#define ENTRY(symbol, name, since) extern "C" void symbol();
#define ABSENT ENTRY
#include "runtime/shim/entries.def"

namespace {

struct Entry {
  const char *symbol, *name;
  int since;
  void (*address)();
};

const Entry kEntries[] = {
#define ENTRY(symbol, name, since) {#symbol, #name, since, symbol},
#define ABSENT ENTRY
#include "runtime/shim/entries.def"
};

}  // namespace

namespace roofgen::shim {

/// CUdriverProcAddressQueryResult: 0 found, 1 no such symbol, 2 newer than the requested version.
int find_entry(const char* name, int version, void** out) {
  const Entry* found = nullptr;
  bool newer = false;
  for (const Entry& e : kEntries) {
    if (std::strcmp(name, e.name) != 0) continue;
    if (e.since > version)
      newer = true;
    else if (!found || e.since >= found->since)
      found = &e;
  }
  *out = nullptr;
  if (found) std::memcpy(out, &found->address, sizeof found->address);
  return found ? 0 : newer ? 2 : 1;
}

}  // namespace roofgen::shim
