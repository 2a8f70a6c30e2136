#include "base/frame.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace roofgen {
namespace {

constexpr uint32_t kMagic = 0x46474352;  // "RCGF"
// A cubin of a tuned kernel is below 1 MiB; a frame above this limit is invalid.
constexpr uint64_t kMaxPayload = uint64_t{1} << 30;
constexpr uint32_t kMaxFields = 1u << 16;

struct Header {
  uint32_t magic = kMagic;
  uint32_t fields = 0;
  uint64_t payload = 0;
};

bool valid(const Header& header) {
  return header.magic == kMagic && header.payload <= kMaxPayload && header.fields <= kMaxFields;
}

std::optional<Fields> decode(std::string_view payload, uint32_t count) {
  Fields fields;
  fields.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    if (payload.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, payload.data(), sizeof size);
    payload.remove_prefix(sizeof size);
    if (size > payload.size()) return std::nullopt;
    fields.emplace_back(payload.substr(0, size));
    payload.remove_prefix(size);
  }
  if (!payload.empty()) return std::nullopt;
  return fields;
}

bool read_exactly(int fd, char* to, size_t bytes) {
  while (bytes > 0) {
    ssize_t got = ::read(fd, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

std::string encode_frame(const Fields& fields) {
  Header header;
  header.fields = static_cast<uint32_t>(fields.size());
  for (const std::string& field : fields) header.payload += sizeof(uint64_t) + field.size();
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out.reserve(sizeof header + header.payload);
  for (const std::string& field : fields) {
    uint64_t size = field.size();
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
    out += field;
  }
  return out;
}

std::optional<Fields> take_frame(std::string& buffer, bool* bad) {
  *bad = false;
  Header header;
  if (buffer.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, buffer.data(), sizeof header);
  if (!valid(header)) {
    *bad = true;
    return std::nullopt;
  }
  if (buffer.size() - sizeof header < header.payload) return std::nullopt;
  auto fields = decode(std::string_view(buffer).substr(sizeof header, header.payload), header.fields);
  *bad = !fields;
  buffer.erase(0, sizeof header + header.payload);
  return fields;
}

std::optional<Fields> read_frame(int fd) {
  Header header;
  if (!read_exactly(fd, reinterpret_cast<char*>(&header), sizeof header) || !valid(header)) return std::nullopt;
  std::string payload(header.payload, '\0');
  if (!read_exactly(fd, payload.data(), payload.size())) return std::nullopt;
  return decode(payload, header.fields);
}

bool write_frame(int fd, const Fields& fields) {
  std::string frame = encode_frame(fields);
  for (std::string_view rest = frame; !rest.empty();) {
    ssize_t sent = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace roofgen
