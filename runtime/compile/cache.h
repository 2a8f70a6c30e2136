// The content-addressed cache of compilations, one directory per entry. An entry is built under `tmp/` and renamed into
// place, so readers and concurrent writers never see a partial entry; checksums detect entries damaged by a power
// failure. docs/use/cache.md describes the files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/work_claims.h"
#include "runtime/compile/nvrtc.h"

namespace roofgen {

/// The compilation behind an entry, stored for people who inspect the cache. `digest` is the entry's name.
struct CacheKey {
  std::string digest;
  std::string entry, arch, compiler;
  std::vector<std::string> flags;
};

class CompileCache {
 public:
  /// `warn` receives at most one line for all failing writes. An empty `dir` disables the cache.
  CompileCache(std::string dir, uint64_t max_bytes, std::function<void(const std::string&)> warn);
  ~CompileCache();  ///< prunes to `max_bytes` if anything was stored
  CompileCache(const CompileCache&) = delete;

  /// The stored reply, whose status is 0 or kNvrtcCompilationError. A damaged entry is removed and counts as a miss.
  std::optional<CompileReply> lookup(const std::string& digest);
  void store(const CacheKey& key, std::string_view source, const CompileReply& reply);
  /// The right to compile for this entry; nullptr: another process does. Look it up after a claim: one may just have
  /// ended.
  std::unique_ptr<WorkClaim> claim(const std::string& digest);
  /// Removes the least recently used entries until the rest takes at most nine tenths of `max_bytes`, and the temporary
  /// directories of killed processes.
  void prune();

 private:
  std::string entry_path(const std::string& digest) const;
  void remove_entry(const std::string& path);
  void give_up(const std::string& why);

  std::string dir_;
  uint64_t max_bytes_ = 0;
  std::function<void(const std::string&)> warn_;
  WorkClaims claims_;
  bool writable_ = true;
  bool stored_ = false;
};

}  // namespace roofgen
