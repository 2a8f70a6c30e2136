#include "runtime/compile/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/xxhash.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/json.h"

namespace roofgen {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxMetaBytes = uint64_t{1} << 20;
// Reading an entry updates its time stamp at most this often, so that warm runs rarely write.
constexpr auto kTouchInterval = std::chrono::hours(1);
// A directory under tmp/ of this age belongs to a killed process.
constexpr auto kStaleAge = std::chrono::hours(24);

/// The files of an entry besides meta.json and kernel.cu (kept for people).
struct Part {
  const char* file;
  std::string CompileReply::*text;
};
constexpr Part kParts[] = {
    {"kernel.ptx", &CompileReply::ptx}, {"kernel.cubin", &CompileReply::cubin}, {"kernel.log", &CompileReply::log}};

std::string checksum(std::string_view text) {
  return fmt::format("{:016x}", llvm::xxHash64(llvm::StringRef(text.data(), text.size())));
}

std::optional<std::string> read_file(const std::string& path, uint64_t max_bytes) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat info = {};
  std::optional<std::string> text;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) <= max_bytes) {
    text.emplace(static_cast<size_t>(info.st_size), '\0');
    size_t filled = 0;
    while (filled < text->size()) {
      ssize_t got = read(fd, text->data() + filled, text->size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      filled += static_cast<size_t>(got);
    }
    text->resize(filled);
  }
  close(fd);
  return text;
}

/// Returns errno of the first failing call, or 0 after the file reached the disk.
int write_file(const std::string& path, std::string_view text) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno;
  int failed = 0;
  while (!text.empty() && failed == 0) {
    ssize_t wrote = write(fd, text.data(), text.size());
    if (wrote < 0 && errno != EINTR) failed = errno;
    if (wrote > 0) text.remove_prefix(static_cast<size_t>(wrote));
  }
  if (failed == 0 && fsync(fd) != 0) failed = errno;
  if (close(fd) != 0 && failed == 0) failed = errno;
  return failed;
}

int sync_directory(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  int failed = fsync(fd) != 0 ? errno : 0;
  close(fd);
  return failed;
}

/// Paths below a directory; partial when the directory changes during the scan.
std::vector<fs::path> list(const fs::path& dir) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator each(dir, error), end; !error && each != end; each.increment(error))
    paths.push_back(each->path());
  return paths;
}

std::string unique_name() {
  static std::atomic<uint64_t> counter{0};
  auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format("{}-{}-{:x}", getpid(), counter++, now);
}

/// Marks an entry as used by the file system's clock, like `prune`.
void touch(const std::string& meta) {
  std::error_code error;
  auto used = fs::last_write_time(meta, error);
  auto now = fs::file_time_type::clock::now();
  if (!error && now - used > kTouchInterval) fs::last_write_time(meta, now, error);
}

std::string meta_text(const CacheKey& key, const CompileReply& reply) {
  Json meta{
      {"format", kFormat},        {"digest", key.digest}, {"entry", key.entry},     {"arch", key.arch},
      {"compiler", key.compiler}, {"flags", key.flags},   {"status", reply.status}, {"status_name", reply.status_name}};
  for (const Part& part : kParts) meta["checksums"][part.file] = checksum(reply.*part.text);
  return json_document(meta);
}

}  // namespace

CompileCache::CompileCache(std::string dir, uint64_t max_bytes, std::function<void(const std::string&)> warn)
    : dir_(std::move(dir)), max_bytes_(max_bytes), warn_(std::move(warn)), claims_(dir_ + "/claims") {}

CompileCache::~CompileCache() {
  if (stored_) prune();
}

std::string CompileCache::entry_path(const std::string& digest) const {
  return fmt::format("{}/v{}/{}/{}", dir_, kFormat, digest.substr(0, 2), digest);
}

std::optional<CompileReply> CompileCache::lookup(const std::string& digest) {
  if (dir_.empty()) return std::nullopt;
  std::string path = entry_path(digest);
  std::optional<std::string> meta_file = read_file(path + "/meta.json", kMaxMetaBytes);
  if (!meta_file) return std::nullopt;
  Json meta = parse_json(*meta_file);
  CompileReply reply;
  auto intact = [&] {
    if (!meta.is_object() || !meta.contains("digest") || meta["digest"] != digest) return false;
    if (!meta.contains("status") || !meta["status"].is_number_integer()) return false;
    if (!meta.contains("checksums") || !meta["checksums"].is_object()) return false;
    reply.status = meta["status"].get<int>();
    reply.status_name =
        meta.contains("status_name") && meta["status_name"].is_string() ? meta["status_name"].get<std::string>() : "";
    for (const Part& part : kParts) {
      std::optional<std::string> text = read_file(fmt::format("{}/{}", path, part.file), kMaxFileBytes);
      if (!text || !meta["checksums"].contains(part.file) || meta["checksums"][part.file] != checksum(*text))
        return false;
      reply.*part.text = std::move(*text);
    }
    return reply.status == 0 || reply.status == kNvrtcCompilationError;
  };
  if (!intact()) {
    remove_entry(path);
    return std::nullopt;
  }
  touch(path + "/meta.json");
  return reply;
}

std::unique_ptr<WorkClaim> CompileCache::claim(const std::string& digest) {
  return dir_.empty() ? std::make_unique<WorkClaim>() : claims_.claim({digest});
}

void CompileCache::store(const CacheKey& key, std::string_view source, const CompileReply& reply) {
  if (dir_.empty() || !writable_) return;
  std::string final_path = entry_path(key.digest);
  std::string building = fmt::format("{}/tmp/{}", dir_, unique_name());
  std::error_code error;
  fs::create_directories(fs::path(final_path).parent_path(), error);
  if (!error) fs::create_directories(building, error);
  if (error) return give_up(error.message());
  int failed = write_file(building + "/kernel.cu", source);
  for (const Part& part : kParts)
    if (failed == 0) failed = write_file(fmt::format("{}/{}", building, part.file), reply.*part.text);
  if (failed == 0) failed = write_file(building + "/meta.json", meta_text(key, reply));
  if (failed == 0) failed = sync_directory(building);
  if (failed == 0 && rename(building.c_str(), final_path.c_str()) != 0) {
    // Another process stored the same entry first; both are equivalent.
    failed = errno == EEXIST || errno == ENOTEMPTY ? 0 : errno;
  }
  fs::remove_all(building, error);
  if (failed != 0) return give_up(std::strerror(failed));
  stored_ = true;
}

void CompileCache::remove_entry(const std::string& path) {
  // Renames the entry out of the way atomically, then deletes it.
  std::error_code error;
  std::string doomed = fmt::format("{}/tmp/{}", dir_, unique_name());
  fs::create_directories(dir_ + "/tmp", error);
  fs::rename(path, doomed, error);
  if (!error) fs::remove_all(doomed, error);
}

void CompileCache::give_up(const std::string& why) {
  writable_ = false;
  if (warn_) warn_(fmt::format("the compile cache {} cannot be written ({}); going on without", dir_, why));
}

void CompileCache::prune() {
  if (dir_.empty()) return;
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes = 0;
    std::string path;
  };
  std::error_code error;
  std::vector<Entry> entries;
  uint64_t total = 0;
  for (const fs::path& shard : list(fmt::format("{}/v{}", dir_, kFormat))) {
    for (const fs::path& dir : list(shard)) {
      Entry entry{fs::last_write_time(dir / "meta.json", error), 0, dir};
      if (error) entry.used = fs::file_time_type::min();
      for (const fs::path& file : list(dir)) {
        uint64_t bytes = fs::file_size(file, error);
        if (!error) entry.bytes += bytes;
      }
      total += entry.bytes;
      entries.push_back(std::move(entry));
    }
  }
  if (total > max_bytes_) {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
    for (const Entry& entry : entries) {
      if (total <= max_bytes_ / 10 * 9) break;
      remove_entry(entry.path);
      total -= entry.bytes;
    }
  }
  auto now = fs::file_time_type::clock::now();
  for (const fs::path& dir : list(dir_ + "/tmp")) {
    auto changed = fs::last_write_time(dir, error);
    if (!error && now - changed > kStaleAge) fs::remove_all(dir, error);
  }
}

}  // namespace roofgen
