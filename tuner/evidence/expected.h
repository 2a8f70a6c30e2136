// What the comparison with the reference expects of a variant's outputs: so that another machine can judge a run
// without the reference, which takes seconds to compute.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "generator/ops/op.h"
#include "roofgen/result.h"
#include "tuner/evidence/replay.h"

namespace roofgen {

/// A JSON object: for each output buffer that the last stage of the replay is judged by, a list of runs
/// {"first": element, "expected": [...], "tolerance": [...]}. A NaN is "nan", an infinity "inf" or "-inf"; the
/// tolerance 0 means equal. Judged are `rows` rows at the beginning, in the middle and at the end of the first and the
/// last (batch, head) pair, and the first rows of each group of a grouped GEMM; of wide rows 32 columns at each end or
/// at three places.
Result<std::string> expected_json(const Replay& replay, int64_t rows);

/// The bytes of an input as Op::fill() gives them. Exit::kUsage: the replay has no such input.
Result<std::vector<std::byte>> input_bytes(const Replay& replay, const std::string& buffer);

}  // namespace roofgen
