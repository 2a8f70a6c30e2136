// The counts of a launch that reports for programs have, and their names there (docs/check-schema.json).
#pragma once

#include "roofgen/pipeline.h"

namespace roofgen::sim {

struct CountName {
  const char* name;
  uint64_t Counts::*member;
};
inline constexpr CountName kCountNames[] = {{"ctas", &Counts::ctas},
                                            {"warp_instructions", &Counts::warp_instructions},
                                            {"mma", &Counts::mma},
                                            {"global_load", &Counts::global_load},
                                            {"global_store", &Counts::global_store},
                                            {"shared_load", &Counts::shared_load},
                                            {"shared_store", &Counts::shared_store},
                                            {"local", &Counts::local},
                                            {"atomics", &Counts::atomics},
                                            {"barriers", &Counts::barriers},
                                            {"read_sectors", &Counts::l2_read_sectors},
                                            {"write_sectors", &Counts::l2_write_sectors},
                                            {"distinct_read_sectors", &Counts::unique_read_sectors},
                                            {"distinct_write_sectors", &Counts::unique_write_sectors},
                                            {"shared_wavefronts", &Counts::smem_wavefronts},
                                            {"shared_wavefronts_without_conflicts", &Counts::smem_ideal_wavefronts}};

}  // namespace roofgen::sim
