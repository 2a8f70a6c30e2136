#include "runtime/shim/fatbin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <vector>

#include "base/target.h"

namespace roofgen::shim {
namespace {

constexpr uint32_t kContainer = 0xba55ed50, kWrapper = 0x466243b1;
constexpr uint32_t kRelocatable = 2;  // the version of a wrapper
constexpr uint16_t kPtx = 1;
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

struct Wrapper {
  uint32_t magic, version;
  const void* container;
  const void* name;
};
struct Container {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  ///< of the entries
};
struct EntryHeader {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;  ///< of the content, with padding
  uint32_t compressed_bytes, options;
  uint16_t minor, major;
  uint32_t arch;
  uint64_t name, flags, unused, original_bytes;
};
static_assert(sizeof(EntryHeader) == 64);

/// Too short or wrong data: an empty text.
std::string from_lz4(std::string_view in, size_t bytes) {
  std::string out;
  out.reserve(bytes);
  size_t at = 0;
  const auto byte = [&] { return at < in.size() ? static_cast<uint8_t>(in[at++]) : uint8_t{0}; };
  const auto length = [&](size_t first) {  // 15: more bytes follow, up to one that is not 255
    for (uint8_t more = 255; first >= 15 && more == 255 && at < in.size();) first += more = byte();
    return first;
  };
  while (at < in.size()) {
    const uint8_t token = byte();
    const size_t literals = length(token >> 4);
    if (literals > in.size() - at || literals > bytes - out.size()) return "";
    out.append(in.substr(at, literals));
    at += literals;
    if (at == in.size()) break;  // the last sequence has no match
    size_t back = byte();
    back |= size_t{byte()} << 8;
    const size_t match = length(token & 15) + 4;
    if (back == 0 || back > out.size() || match > bytes - out.size()) return "";
    for (size_t i = 0; i < match; ++i) out.push_back(out[out.size() - back]);
  }
  return out.size() == bytes ? out : "";
}

/// By the system's libzstd, which Debian and Ubuntu always have.
Result<std::string> from_zstd(std::string_view in, size_t bytes) {
  static void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  void* found = library ? dlsym(library, "ZSTD_decompress") : nullptr;
  if (!found) return Error{Exit::kUnavailable, "libzstd.so.1, which decompresses PTX in fat binaries, is missing"};
  size_t (*decompress)(void*, size_t, const void*, size_t) = nullptr;
  std::memcpy(&decompress, &found, sizeof found);
  std::string out(bytes, '\0');
  return decompress(out.data(), bytes, in.data(), in.size()) == bytes ? out : "";
}

Result<std::string> content_of(const EntryHeader& entry, std::string_view data) {
  if ((entry.flags & (kLz4 | kZstd)) == 0) return std::string(data.substr(0, strnlen(data.data(), data.size())));
  std::string text;
  if (entry.compressed_bytes <= data.size() && entry.original_bytes <= kMostBytes) {
    data = data.substr(0, entry.compressed_bytes);
    if (entry.flags & kLz4) {
      text = from_lz4(data, entry.original_bytes);
    } else {
      ROOFGEN_TRY(text, from_zstd(data, entry.original_bytes));
    }
  }
  if (text.empty()) return Error{Exit::kFailed, "compressed PTX in a fat binary is damaged"};
  text.resize(strnlen(text.data(), text.size()));
  return text;
}

template <class T>
T read(const std::byte* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

}  // namespace

bool is_fatbin(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  if (!bytes[0] || !bytes[1] || !bytes[2]) return false;  // a shorter text
  const auto magic = read<uint32_t>(static_cast<const std::byte*>(image));
  return magic == kContainer || magic == kWrapper;
}

size_t fatbin_bytes(const void* image) {
  const auto header = read<Container>(static_cast<const std::byte*>(image));
  return header.header_bytes + header.bytes;
}

std::string_view target_in(std::string_view ptx) {
  const size_t at = ptx.find(".target");
  if (at == ptx.npos) return {};
  ptx.remove_prefix(std::min(ptx.find_first_not_of(" \t", at + 7), ptx.size()));
  return ptx.substr(0, ptx.find_first_of(", \t\r\n"));
}

bool runs_on(std::string_view target, int arch) {
  // PTX of a portable target runs on all later architectures.
  const std::optional<Target> needs = parse_target(target);
  return !needs || (needs->is_portable() ? needs->arch <= arch : needs->runs_on(arch));
}

Result<std::string> ptx_in_fatbin(const void* image, int arch) {
  const auto* at = static_cast<const std::byte*>(image);
  if (read<uint32_t>(at) == kWrapper) {
    const auto wrapper = read<Wrapper>(at);
    if (wrapper.version == kRelocatable)
      return Error{Exit::kFailed, "relocatable device code (nvcc -rdc=true) is not supported: modules are not linked"};
    at = static_cast<const std::byte*>(wrapper.container);
  }
  if (!at || read<uint32_t>(at) != kContainer)
    return Error{Exit::kFailed, "the wrapper of a fat binary has no content"};
  const std::byte* const end = at + fatbin_bytes(at);
  at += read<Container>(at).header_bytes;
  std::string best;
  uint32_t best_arch = 0;
  std::vector<std::string> others;
  while (end - at >= static_cast<ptrdiff_t>(sizeof(EntryHeader))) {
    const auto entry = read<EntryHeader>(at);
    const auto left = static_cast<uint64_t>(end - at);
    if (entry.header_bytes < sizeof entry || entry.header_bytes > left || entry.bytes > left - entry.header_bytes)
      return Error{Exit::kFailed, "the fat binary is damaged"};
    const std::string_view data(reinterpret_cast<const char*>(at) + entry.header_bytes, entry.bytes);
    at += entry.header_bytes + entry.bytes;
    others.push_back(fmt::format("{} for sm_{}", entry.kind == kPtx ? "PTX" : "machine code", entry.arch));
    if (entry.kind != kPtx || entry.arch > static_cast<uint32_t>(arch) || entry.arch < best_arch) continue;
    ROOFGEN_TRY(std::string ptx, content_of(entry, data));
    if (!runs_on(target_in(ptx), arch)) continue;
    best = std::move(ptx);
    best_arch = entry.arch;
  }
  if (!best.empty()) return best;
  return Error{Exit::kFailed,
               fmt::format("a fat binary without PTX for sm_{0} (it has {1}); nvcc embeds PTX with -gencode "
                           "arch=compute_{0},code=compute_{0}",
                           arch, others.empty() ? "nothing" : fmt::format("{}", fmt::join(others, ", ")))};
}

}  // namespace roofgen::shim
