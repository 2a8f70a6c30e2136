// One machine instruction, decoded: operands and modifiers from nvdisasm's text, control bits from the encoding.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "roofgen/result.h"
#include "runtime/sass/disassembler.h"

namespace roofgen::sass {

/// Units of an SM. kFmaHeavy: the half of the FMA units that also multiplies integers. kXu: special functions and
/// conversions. kDependency, kNone: an issue slot only.
enum class Pipe : uint8_t {
  kFma,
  kFmaHeavy,
  kHalf,
  kAlu,
  kFp64,
  kTensor,
  kTensorMemory,
  kXu,
  kUniform,
  kLsu,
  kTex,
  kBranch,
  kBarrier,
  kDependency,
  kNone,
  kCount
};
const char* to_string(Pipe pipe);  ///< "FMA", "ALU", "tensor", ...

/// The effect of an instruction on the state of its warp that the interpreter computes. kOpaque: its results become
/// unknown.
enum class Action : uint8_t {
  kOpaque,
  kNothing,
  kMov,
  kFadd,
  kFmul,
  kFfma,
  kFchk,
  kFmnmx,
  kFsel,
  kFsetp,
  kHfma2,
  kMufu,
  kI2f,
  kF2i,
  kPopc,
  kFlo,
  kBrev,
  kImad,
  kIadd3,
  kViadd,
  kViaddmnmx,
  kImnmx,
  kVimnmx3,
  kIabs,
  kIsetp,
  kLea,
  kLop3,
  kPlop3,
  kPrmt,
  kSel,
  kSgxt,
  kBmsk,
  kShf,
  kP2r,
  kR2p,
  kCs2r,
  kShfl,
  kVote,
  kMatch,
  kRedux,
  kS2r,
  kR2ur,
  kLdc,
  kLdg,
  kLds,
  kLdl,
  kLdsm,
  kLdgsts,
  kStg,
  kSts,
  kStas,  ///< st.async: into another CTA of the cluster, whose mbarrier counts the bytes
  kStl,
  kStsm,
  kAtomg,
  kAtoms,
  kRed,
  kCommit,
  kBra,
  kBrx,
  kCall,
  kRet,
  kBssy,
  kBsync,
  kBreak,
  kBmov,
  kExit,
  kWarpsync,
  kEndCollective,
  kBar,
  kB2r,
  kDepbar,
  kProduct,       ///< of a warpgroup, asynchronous
  kMatrix,        ///< of a CTA or a pair, by tcgen05.mma: asynchronous, in tensor memory
  kMatrixCopy,    ///< tcgen05.cp: from shared to tensor memory, in the order of the products
  kMatrixCommit,  ///< tcgen05.commit: an arrival after all products so far
  kTensorMemoryLoad,
  kTensorMemoryStore,
  kTensorMemoryAlloc,
  kNextWork,  ///< clusterlaunchcontrol.try_cancel
  kWarpgroup,
  kElect,
  kSetMaxReg,
  kSyncs,  ///< operations on mbarriers
  kArrives,
  kTensorLoad,
  kTensorStore,
  kBulkCopy,
  kClusterArrive,
  kClusterWait
};

/// Whether an action goes to memory or to an mbarrier.
bool is_memory(Action action);

inline constexpr int8_t kLeading = -1;

struct Opcode {
  std::string_view name;
  Pipe pipe;
  Action action;
  int8_t results;  ///< operands at the front that are written; kLeading: a register and the predicates around it
};
/// The entry of "LDG.E.128"; nullptr for an unknown mnemonic.
const Opcode* find_opcode(std::string_view spelling);

/// The scheduling part of an encoding: bits 41 to 61 of its upper 64-bit word (Jia et al., "Dissecting the NVIDIA Volta
/// GPU Architecture via Microbenchmarking", 2018).
struct Control {
  uint8_t stall = 0;  ///< cycles until the warp may issue its next instruction
  bool yield = false;
  uint8_t write_barrier = 7;  ///< scoreboard that is released when the results are written; 7: none
  uint8_t read_barrier = 7;   ///< scoreboard that is released when the operands have been read; 7: none
  uint8_t wait_mask = 0;      ///< scoreboards that must be free before issue
  uint8_t reuse = 0;
};
Control control_of(uint64_t upper_word);

inline constexpr uint8_t kZeroRegister = 255, kUniformZero = 127, kTruePredicate = 7;

struct Operand {
  enum class Kind : uint8_t {
    kNone,
    kRegister,
    kUniform,
    kPredicate,
    kUniformPredicate,
    kImmediate,
    kConstant,
    kMemory,
    kSpecial,
    kScoreboard,
    kOther
  };
  Kind kind = Kind::kNone;
  bool negative = false, absolute = false, inverted = false;  ///< -x, |x|, ~x or !P
  bool wide = false;                                          ///< of an address: a pair of registers
  bool wide_uniform = false;                                  ///< of an address: a pair of uniform registers
  bool is_word = false;                                       ///< of an address: .U32
  uint8_t index = 0;               ///< of the register; of a constant or an address: the register that is added
  uint8_t uniform = kUniformZero;  ///< of a constant or an address: the uniform register that is added
  uint8_t scale = 1;               ///< of an address: factor of the register
  uint8_t half = 0;                ///< of a register: 0 whole, 1 .H0_H0, 2 .H1_H1
  uint8_t bank = 0;                ///< of a constant
  bool in_tensor_memory = false;   ///< of an address
  int32_t value = 0;               ///< immediate bits; displacement; SpecialRegister
  uint32_t upper = 0;              ///< of an immediate: the bits of 64 from the 32nd on
  bool is_float = false;           ///< an immediate written as a decimal number
};

enum class Special : uint8_t {
  kOther,
  kTidX,
  kTidY,
  kTidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kLaneId,
  kZero,
  kLaneMask,
  kLtMask,
  kLeMask,
  kGtMask,
  kGeMask,
  kClusterCta,
  kClock,
  kClusterSize,
  kSharedWindowHigh
};

/// Modifiers that change an action: bits of Instruction::modifiers.
enum Modifier : uint64_t {
  kX = 1u << 0,
  kHi = 1u << 1,
  kWide = 1u << 2,
  kU32 = 1u << 3,
  kSx32 = 1u << 4,
  kLeft = 1u << 5,
  kRight = 1u << 6,
  kU64 = 1u << 7,
  kS64 = 1u << 8,
  kW = 1u << 9,
  kAnd = 1u << 10,
  kOr = 1u << 11,
  kXor = 1u << 12,
  kEx = 1u << 13,
  kLt = 1u << 14,
  kEq = 1u << 15,
  kLe = 1u << 16,
  kGt = 1u << 17,
  kNe = 1u << 18,
  kGe = 1u << 19,
  kNum = 1u << 20,
  kNan = 1u << 21,
  kUnordered = 1u << 22,
  kAll = 1u << 23,
  kAny = 1u << 24,
  kIdx = 1u << 25,
  kUp = 1u << 26,
  kDown = 1u << 27,
  kBfly = 1u << 28,
  kRelu = 1u << 29,
  kS32 = 1u << 30,
  kSh = 1ull << 31,
  kRcp = 1ull << 32,
  kRsq = 1ull << 33,
  kSqrt = 1ull << 34,
  kEx2 = 1ull << 35,
  kLg2 = 1ull << 36,
  kSin = 1ull << 37,
  kCos = 1ull << 38,
  kBypass = 1ull << 39,
  kTranspose = 1ull << 40,
  kSigned = 1ull << 41,
  kB32 = 1ull << 42,
  kArrive = 1ull << 44,
  kRp = 1ull << 46,
  kPand = 1ull << 49,
  kExtended = 1ull << 50,
  kConverged = 1ull << 51,
  kDiverged = 1ull << 52,
  kCollective = 1ull << 53,
  kSum = 1ull << 54,
  kMin = 1ull << 55,
  kMax = 1ull << 56,
  kU16 = 1ull << 57,
  kS16 = 1ull << 58,
  kF64 = 1ull << 59,
  kF16 = 1ull << 60,
  kTrunc = 1ull << 61,
  kUnanimous = 1ull << 62,
};

inline constexpr size_t kMostOperands = 10;

struct Instruction {
  const Opcode* opcode = nullptr;  ///< never null: unknown mnemonics have an entry of their own
  std::string spelling;            ///< "LDG.E.128.CONSTANT"
  std::array<Operand, kMostOperands> operands;
  uint8_t count = 0;    ///< of the operands
  uint8_t results = 0;  ///< of them, written; they come first
  Operand guard;        ///< kNone: always executed
  uint64_t modifiers = 0;
  uint16_t bytes = 4;         ///< of a memory access, for each lane; of a result otherwise
  uint8_t matrices = 1;       ///< of ldmatrix and stmatrix
  uint32_t matrix_flops = 0;  ///< of the whole warp, for tensor instructions; a quarter of a warpgroup's
  uint16_t matrix_n = 0;      ///< columns of a warpgroup's product
  uint8_t matrix_rank = 0;    ///< coordinates of a tensor copy
  uint32_t target = ~0u;      ///< index of the instruction that a branch goes to
  Control control;
  bool known = true;  ///< the mnemonic is in the table
  bool has(uint64_t modifier) const { return (modifiers & modifier) != 0; }
  const Operand& source(size_t i) const { return operands[results + i]; }
  size_t sources() const { return count - results; }
};

/// Decodes the instruction whose text is given. Text that it cannot read becomes an operand of kind kOther.
Instruction decode(const Text& text, uint64_t lower_word, uint64_t upper_word);

}  // namespace roofgen::sass
