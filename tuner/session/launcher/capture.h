// The shapes that a program launches, for `roofgen tune --captured` (docs/use/library.md).
#pragma once

#include <cstdint>
#include <string>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"
#include "tuner/dispatch/dispatch.h"
#include "tuner/session/suite/file.h"

namespace roofgen {

/// The file that $ROOFGEN_CAPTURE names; empty: nothing is captured.
std::string capture_file();
/// Whether lines can be added to it.
Result<void> can_capture(const std::string& file);
/// The problem of a call as a line of JSON: the flags of its request, with these sizes, and `count` launches.
std::string captured_line(const std::string& op, const FlagValues& flags, const Sizes& sizes, uint64_t count);
/// Adds the line; other processes may add lines at the same time.
void capture(const std::string& file, const std::string& line);

}  // namespace roofgen
