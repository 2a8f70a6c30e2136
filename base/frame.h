// The wire format between roofgen and its worker processes: frames of a fixed header and a list of
// byte strings. Both ends are the same binary on the same machine, so integers are in host order;
// lengths are still checked, because a worker that corrupted its memory must not take its parent down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace roofgen {

using Fields = std::vector<std::string>;

/// A frame with these fields, ready to be sent.
std::string encode_frame(const Fields& fields);

/// Takes the first whole frame off the front of `buffer`. nullopt: not all of it has arrived yet.
/// `*bad` is set when the bytes cannot be a frame; the connection is then of no more use.
std::optional<Fields> take_frame(std::string& buffer, bool* bad);

/// Blocking: one frame from `fd`; nullopt at end of file, on an error or on a bad frame.
std::optional<Fields> read_frame(int fd);

/// Blocking: false when the other end is gone.
bool write_frame(int fd, const Fields& fields);

}  // namespace roofgen
