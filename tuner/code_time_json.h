// A time from machine code in the form in which the store keeps it.
#pragma once

#include "base/json.h"
#include "tuner/code_time.h"

namespace roofgen {

namespace timing {
ROOFGEN_TO_JSON(StreamCounts, warp_instructions, shared_load_wavefronts, shared_store_wavefronts, l2_read_sectors,
                l2_write_sectors, tile_sectors, pipe_instructions)
ROOFGEN_FROM_JSON(StreamCounts, warp_instructions, shared_load_wavefronts, shared_store_wavefronts, l2_read_sectors,
                  l2_write_sectors, tile_sectors, pipe_instructions)
}  // namespace timing

ROOFGEN_TO_JSON(CodeTime, model, counts, seconds, interval_seconds, doubts, guessed_by_ptx)
ROOFGEN_FROM_JSON(CodeTime, model, counts, seconds, interval_seconds, doubts, guessed_by_ptx)

}  // namespace roofgen
