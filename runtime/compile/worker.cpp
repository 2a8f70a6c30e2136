// A compile worker: it reads requests from standard input and writes replies to the same socket. NVRTC runs in a
// separate process because it cannot be interrupted, may crash, and may exhaust memory.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "base/child.h"
#include "runtime/compile/nvrtc.h"
#include "runtime/compile/pool.h"

namespace roofgen {
namespace {

uint64_t mapped_bytes() {
  unsigned long pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return uint64_t{pages} * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Limits the memory added by a compilation. Earlier mappings (the library, a sanitizer's shadow) do not count against
/// the candidate.
void limit_memory(uint64_t bytes) {
  if (bytes == 0) return;
  rlimit limit = {};
  limit.rlim_cur = limit.rlim_max = mapped_bytes() + bytes;
  setrlimit(RLIMIT_AS, &limit);
  rlimit no_core = {};
  setrlimit(RLIMIT_CORE, &no_core);
}

CompileReply failed(const std::string& why) {
  CompileReply reply;
  reply.status = kWorkerFailed;
  reply.log = why;
  return reply;
}

}  // namespace

int compile_worker_main() {
  exit_with_parent();
  std::optional<Fields> hello = read_frame(kWorkerSocket);
  if (!hello || hello->size() != 2) return 2;
  Result<Nvrtc> library = Nvrtc::open((*hello)[0]);
  // NVRTC writes the working directory into line tables; results must not depend on it.
  if (chdir("/") != 0) return 2;
  limit_memory(std::strtoull((*hello)[1].c_str(), nullptr, 10));
  // The next compilation needs the memory of this one.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  while (std::optional<Fields> fields = read_frame(kWorkerSocket)) {
    std::optional<CompileRequest> request = decode_request(*fields);
    if (!request) return 2;
    CompileReply reply = library ? library->compile(*request) : failed(library.error().message);
    if (!write_frame(kWorkerSocket, encode_reply(reply))) return 2;
  }
  // _exit instead of exit: NVRTC's own threads may still run, and nothing needs cleaning up.
  _exit(0);
}

}  // namespace roofgen
