// Fat binaries: containers of PTX and machine code for several architectures, as nvcc and fatbinary write them.
#pragma once

#include <string>
#include <string_view>

#include "roofgen/result.h"

namespace roofgen::shim {

/// Whether the image starts like a fat binary, or like the wrapper that compiled host code passes.
bool is_fatbin(const void* image);
/// The number of bytes of a fat binary (not of a wrapper), by its header.
size_t fatbin_bytes(const void* image);
/// The PTX with the newest target that runs on the device of `arch` (90). The header is trusted, the content is not.
Result<std::string> ptx_in_fatbin(const void* image, int arch);
/// Whether PTX for a target ("sm_80", "sm_90a") runs on the device of `arch`.
bool runs_on(std::string_view target, int arch);
/// The target in the text of a PTX module.
std::string_view target_in(std::string_view ptx);

}  // namespace roofgen::shim
