// The wire format between roofgen and its worker processes: frames of a fixed header and a list of byte strings. Both
// ends are the same binary on the same machine, so integers are in host byte order. Lengths are still checked, so that
// a worker with corrupt memory cannot crash its parent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace roofgen {

using Fields = std::vector<std::string>;

/// A frame with these fields, ready to send.
std::string encode_frame(const Fields& fields);

/// Removes the first complete frame from `buffer`. nullopt: the frame is not complete yet. `*bad` is set when the bytes
/// cannot be a frame; the connection is then unusable.
std::optional<Fields> take_frame(std::string& buffer, bool* bad);

/// Blocking: one frame from `fd`; nullopt at end of file, on an error or for an invalid frame.
std::optional<Fields> read_frame(int fd);

/// Blocking; false when the other end has closed.
bool write_frame(int fd, const Fields& fields);

}  // namespace roofgen
