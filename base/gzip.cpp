#include "base/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

namespace roofgen {

Result<std::string> unpack(std::string bytes, const std::string& file, size_t most) {
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  z_stream stream{};
  constexpr int kGzipOnly = 16;
  if (inflateInit2(&stream, kGzipOnly + MAX_WBITS) != Z_OK) return Error{Exit::kFailed, "zlib has no memory", {file}};
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out, part(size_t{1} << 18, '\0');
  int state = Z_OK;
  while (state == Z_OK && out.size() <= most) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(part, 0, part.size() - stream.avail_out);
    if (state == Z_STREAM_END && stream.avail_in > 0) state = inflateReset(&stream);  // gzip files may be joined
  }
  inflateEnd(&stream);
  if (out.size() > most) return Error{Exit::kUsage, fmt::format("unpacks to more than {} MiB", most >> 20), {file}};
  if (state != Z_STREAM_END)
    return Error{Exit::kUsage, state == Z_BUF_ERROR ? "the gzip data end too early" : "invalid gzip data", {file}};
  return out;
}

}  // namespace roofgen
