// Text that may be packed by gzip.
#pragma once

#include <string>

#include "roofgen/result.h"

namespace roofgen {

/// `bytes` unpacked if they begin as gzip does, otherwise as they are. An Error names `file`: not gzip after all, cut
/// off, or more than `most` bytes.
Result<std::string> unpack(std::string bytes, const std::string& file, size_t most);

}  // namespace roofgen
