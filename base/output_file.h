// Writing a result: whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "roofgen/result.h"

namespace roofgen {

/// Writes `text` through a temporary file and a rename, so that nothing half-written is ever seen. A symbolic link
/// keeps pointing where it does, its target is replaced; a pipe or a device is written to as it is.
Result<void> write_output(const std::string& path, std::string_view text);
/// Whether write_output could: the folder is there and lets files be made, the path is no folder. Writes nothing.
Result<void> can_write(const std::string& path);
/// Makes the directory and those above it, so that minutes are not spent before it turns out that it cannot be.
Result<void> make_directory(const std::string& path);

}  // namespace roofgen
