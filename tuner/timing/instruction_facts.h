// Static facts of machine instructions that the time models need, read from the code once.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/sass/code.h"
#include "tuner/timing/machine.h"
#include "tuner/timing/sm_model.h"

namespace roofgen::timing {

/// The static facts of an instruction.
struct Facts {
  uint8_t pipe = 0, wait_mask = 0, write_barrier = 7, read_barrier = 7;
  float stall = 1, interval = 1, latency = 0;
  sass::Action action = sass::Action::kOpaque;
  Stall cause = Stall::kFixed;  ///< of a wait for its result
  bool is_branch = false, is_memory = false, reads_device = false, writes_device = false, is_shared = false,
       bypasses_l1 = false, arrives_only = false, atomic = false;
  bool is_product = false, ends_group = false;  ///< of a warpgroup; with it, its group is complete
  float operand_cycles = 0;                     ///< of shared memory, for one warp's part of a product
  float column_cycles = 0;                      ///< of a tcgen05 product of 128 rows, for each column of the result
  float depth = 0;                              ///< K of a tcgen05 product
  int8_t groups_left = -1;                      ///< of a WARPGROUP.DEPBAR
  int8_t depbar = -1;                           ///< scoreboard of a DEPBAR.LE
  uint8_t depbar_left = 0;
};

/// Cycles of a tcgen05 product, or of a copy to tensor memory, on one SM: of the tensor unit, of shared memory for its
/// operands, from one to the next, and from its begin to its end.
struct MatrixCycles {
  double math = 0, read = 0, interval = 0, latency = 0, flops = 0;
};
MatrixCycles matrix_cycles(const Machine& machine, const Facts& facts, const sass::Sync& work);

/// Cycles of the copy engine for a tensor copy to shared memory.
double copy_cycles(const Machine& machine, const sass::Sync& load);

/// By index in the code.
std::vector<Facts> facts_of(const Machine& machine, const sass::Code& code);

}  // namespace roofgen::timing
