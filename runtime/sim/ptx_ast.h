// PTX as parsed: names and spellings, nothing resolved. Views point into the module text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sim/inst.h"

namespace roofgen::sim {

/// `.f32` and the like. `bits` is 1 for predicates.
struct PtxType {
  char kind = 'b';  ///< b, u, s, f, p
  uint8_t bits = 32;
  uint32_t bytes() const { return bits / 8u; }
};

/// A variable of any state space, or a parameter.
struct PtxVar {
  Space space = Space::kGlobal;
  std::string_view name;
  PtxType type;
  uint32_t align = 0;  ///< 0: natural
  uint64_t count = 1;  ///< elements; 0 for an extern array without a size
  bool is_extern = false;
  bool managed = false;  ///< shared with the host
  std::vector<uint8_t> init;
  struct Pointer {  ///< the address of another variable in the initial bytes
    uint64_t at;
    std::string_view to;
    uint64_t displacement;
  };
  std::vector<Pointer> pointers;
  int line = 0;
  uint64_t bytes() const { return count * type.bytes(); }
};

struct PtxOperand {
  enum class Kind : uint8_t { kName, kInteger, kFloat, kAddress, kVector, kList };
  Kind kind = Kind::kName;
  bool negated = false;  ///< `!%p1`
  uint8_t float_bits = 0;
  std::string_view name;    ///< kName, kAddress (empty: absolute address)
  std::string_view second;  ///< the `|%p2` of a paired destination
  uint64_t bits = 0;        ///< immediate value; kName, kAddress: displacement
  std::vector<PtxOperand> items;
};

struct PtxStmt {
  enum class Kind : uint8_t { kInstruction, kLabel, kOpen, kClose, kReg, kVar, kTargets };
  Kind kind = Kind::kInstruction;
  int line = 0;
  uint32_t loc = 0;        ///< index into PtxModule::locs
  std::string_view name;   ///< opcode with modifiers, label, register name
  std::string_view guard;  ///< predicate register, empty when none
  bool guard_negated = false;
  std::vector<PtxOperand> operands;
  PtxType type;        ///< kReg
  uint64_t count = 0;  ///< kReg: N of `%r<N>`, 0 for a single register
  PtxVar var;          ///< kVar
};

struct PtxFunction {
  std::string_view name;
  bool is_entry = false;
  bool defined = false;
  int line = 0;
  std::vector<PtxVar> returns, params;
  uint32_t maxntid[3] = {0, 0, 0};
  uint32_t reqntid[3] = {0, 0, 0};
  uint32_t reqnctapercluster[3] = {0, 0, 0};
  bool blocksareclusters = false;  ///< a launch counts clusters, not CTAs
  uint32_t minnctapersm = 0, maxnreg = 0;
  std::vector<PtxStmt> body;

  /// With which the kernel begins if it changes them (setmaxnreg): ptxas gives it as many as the directives allow.
  uint32_t registers_per_thread() const;
};

/// A `.loc`: the source line the following instructions come from.
struct PtxLoc {
  uint32_t file = 0;
  uint32_t line = 0;
  uint32_t col = 0;
};

struct PtxModule {
  std::string_view version, target;
  std::vector<PtxVar> globals;
  std::vector<PtxFunction> functions;
  std::vector<PtxLoc> locs;  ///< [0] is "unknown"
  std::vector<std::pair<uint32_t, std::string>> files;
};

}  // namespace roofgen::sim
