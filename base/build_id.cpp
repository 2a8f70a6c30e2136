#include "base/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace roofgen {
namespace {

struct BuildId {
  uintptr_t inside = 0;  ///< an address in it
  std::string hex;
};

int read_build_id(dl_phdr_info* info, size_t, void* data) {
  auto* wanted = static_cast<BuildId*>(data);
  bool ours = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    ours |= segment.p_type == PT_LOAD && wanted->inside >= start && wanted->inside < start + segment.p_memsz;
  }
  if (!ours) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* note = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    const char* end = note + segment.p_memsz;
    while (end - note >= static_cast<ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
      ElfW(Nhdr) header;
      std::memcpy(&header, note, sizeof header);
      const char* name = note + sizeof header;
      const char* value = name + ((header.n_namesz + 3) & ~3u);
      const char* next = value + ((header.n_descsz + 3) & ~3u);
      if (next > end || next <= note) break;
      if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        for (uint32_t b = 0; b < header.n_descsz; ++b)
          wanted->hex += fmt::format("{:02x}", static_cast<unsigned char>(value[b]));
        return 1;
      }
      note = next;
    }
  }
  return 1;
}

}  // namespace

std::string build_id(const void* inside) {
  BuildId wanted;
  wanted.inside = reinterpret_cast<uintptr_t>(inside);
  dl_iterate_phdr(read_build_id, &wanted);
  return wanted.hex;
}

}  // namespace roofgen
