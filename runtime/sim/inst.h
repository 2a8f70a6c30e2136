// The decoded instruction and the register view that lane functions work on. Plain data without
// inline functions: this header is compiled once per host instruction set (see lanes.inc), and
// nothing in it may be emitted as a shared symbol.
#pragma once

#include <cstdint>

namespace roofgen::sim {

inline constexpr uint32_t kWarpSize = 32;

/// Registers of one warp. A row is uint32_t[32], one element per lane; a 64-bit register takes two
/// rows and is uint64_t[32]; 16-bit values sit zero-extended in a row. A predicate is a lane mask.
struct WarpRegs {
  uint32_t* rows;
  uint32_t* preds;
};

struct Inst;
/// Executes a lane-wise instruction for the lanes of `mask`; other lanes keep their destination.
using LaneFn = void (*)(const WarpRegs& regs, const Inst& in, const uint32_t* lists, uint32_t mask);

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam, kConst };

/// What the machine does with an instruction; lane-wise ones carry their function.
enum class Kind : uint8_t {
  kLane,
  kMma,
  kBranch,
  kBranchIndexed,
  kExit,
  kTrap,
  kNop,
  kLoad,
  kStore,
  kLoadParam,
  kAtomic,
  kCpAsync,
  kCpCommit,
  kCpWait,
  kLdmatrix,
  kStmatrix,
  kBarrier,
  kWarpBarrier,
  kShuffle,
  kVote,
  kActiveMask,
  kMatch,
  kRedux,
  kClock,
  kIsSpace,
  kClusterBarrier,
  kClusterRank,
  kPrint,  ///< vprintf: a is the format's address, b that of the values
  kMbarrier,
  kBulkCopy,
  kWmmaLoad,
  kWmmaStore,
  kWgmma,
  kWgmmaFence,
  kWgmmaCommit,
  kWgmmaWait,
  kStoreAsync,     ///< st.async
  kSetRegisters,   ///< setmaxnreg: imm registers per thread, sub 1: more than before
  kTexture,        ///< tex, tld4, suld, txq, suq: `sub` is an ImageOp, `target` a Geometry, the object in a
  kSurfaceStore,   ///< sust
  kTensor,         ///< tcgen05: `sub` is a TensorOp (tcgen05.h)
  kLaunchControl,  ///< clusterlaunchcontrol: `sub` is a LaunchOp; a and b: halves of a response, or places
  kSparseMma,      ///< mma.sp: as kMma, with metadata to check
  kTensorMap,      ///< tensormap and its fences: `sub` is a TensorMapOp, a the map's address
  kAssert,         ///< a failed assertion: a is the address of its text, b of the file's name, c the line
};

/// The operation of an instruction on an image (image.h), and its further fields in Inst::type.
enum class ImageOp : uint8_t {
  kFetch,         ///< at floating-point coordinates
  kFetchInteger,  ///< at integer coordinates
  kGather,        ///< the channel `type` of four texels
  kSurface,       ///< bytes as they are; `type` is an ImageOutside
  kSize,          ///< `type` is an ImageSize
};
enum class ImageOutside : uint8_t { kTrap, kClamp, kZero };
enum class ImageSize : uint8_t { kWidth, kHeight, kDepth, kLayers };

/// The threads that a strong access or a fence includes (PTX ISA, "Scope").
enum class MemoryScope : uint8_t { kCta, kCluster, kGpu, kSys };

enum class AtomicOp : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };
enum class ElementType : uint8_t { kB32, kB64, kU32, kS32, kU64, kS64, kF16, kBf16, kF16x2, kBf16x2, kF32, kF64 };
/// What ldmatrix and stmatrix move, in Inst::type: pairs of bytes as they are; 4- or 6-bit elements, each into a byte;
/// bytes, turned.
enum class MatrixElement : uint8_t { kHalf, kFourBits, kSixBits, kByte };
enum class BarrierOp : uint8_t { kSync, kArrive, kPopc, kAnd, kOr };
enum class MbarrierOp : uint8_t {
  kInit,
  kInval,
  kArrive,
  kArriveDrop,
  kExpectTx,
  kCompleteTx,
  kTest,
  kTry,
  kPending,
  kCopies
};
/// Inst::sub of a trap: an instruction of which Kernel::not_modelled, at `imm`, says what it is.
inline constexpr uint8_t kTrapNotModelled = 1;
inline constexpr uint8_t kTrapNoFunction = 2;  ///< a call through a pointer to none of the module's functions
/// Inst::sub of what changes no value.
inline constexpr uint8_t kNopFence = 1, kNopProxyFence = 2, kNopBulkCommit = 3, kNopBulkWait = 4;
inline constexpr uint8_t kBulkWaitRead = 1;  ///< Inst::type of kNopBulkWait: for the reads of shared memory alone
inline constexpr uint8_t kNopReturn = 5;  ///< a call ends: its local memory, from `imm` to `target`, holds nothing more
inline constexpr uint8_t kNopGridWait = 6, kNopGridTrigger = 7;  ///< griddepcontrol
/// Bits of a bulk copy's `sub`: to shared memory; by a tensor map; to several CTAs, in `e`; from shared memory to that
/// of a CTA of the cluster; a reduction, with AtomicOp in `size` and ElementType in `type`.
inline constexpr uint8_t kBulkIn = 1, kBulkTensor = 2, kBulkMulticast = 4, kBulkShared = 8, kBulkReduces = 16;
/// The barrier may be in the other CTA of a pair; it is in the even one, whatever the address says.
inline constexpr uint8_t kBulkPair = 32, kBulkEven = 64;
/// How a tensor copy walks, in Inst::space: a box; four rows of .tile::gather4 and .tile::scatter4; the pixels of a
/// column of .im2col, whose offsets, registers of 16 bits, are at the end of the list (.im2col_no_offs: none).
enum class TensorWalk : uint8_t { kBox, kFourRows, kColumn };
/// Inst::type of an mbarrier instruction.
inline constexpr uint8_t kMbarrierParity = 1;      ///< a wait names the phase by its parity
inline constexpr uint8_t kMbarrierExpects = 2;     ///< an arrival expects bytes, `b`, and counts once
inline constexpr uint8_t kMbarrierNoIncrease = 4;  ///< copies: the arrival counts
/// clusterlaunchcontrol: try_cancel; query_cancel.
enum class LaunchOp : uint8_t { kCancel, kIsCanceled, kFirstX, kFirstY, kFirstZ };
enum class ShuffleMode : uint8_t { kUp, kDown, kBfly, kIdx };
enum class VoteMode : uint8_t { kAll, kAny, kUni, kBallot, kElect };

/// Inst::sub of Kind::kTensorMap. b: the new value of the field, `count` its ordinal.
enum class TensorMapOp : uint8_t {
  kAddress,
  kRank,
  kBox,
  kDimension,
  kStride,
  kStep,
  kElements,
  kInterleave,
  kSwizzle,
  kAtom,
  kFill,
  kPublish,  ///< tensormap.cp_fenceproxy: from the place c in shared memory, with the release of `scope`
  kAcquire,  ///< fence.proxy.tensormap::generic.acquire
};

/// Types of the multiplicands of wgmma: Inst::type has that of A, and that of B in its upper half.
enum class Multiplicand : uint8_t { kF16, kBf16, kTf32, kE4m3, kE5m2, kS8, kU8 };
constexpr bool is_fp8(Multiplicand t) { return t == Multiplicand::kE4m3 || t == Multiplicand::kE5m2; }
/// What the products of wgmma are added to.
enum class WgmmaSum : uint8_t { kF32, kF16, kS32 };
/// Types of the multiplicands of mma.sync: Inst::type has that of A, and that of B in its upper half.
enum class MmaType : uint8_t { kE4m3, kE5m2, kE2m3, kE3m2, kE2m1, kE2m1Half, kF16, kBf16, kTf32, kS8, kU8, kS4, kU4 };
constexpr uint32_t bits_of(MmaType t) {
  return t == MmaType::kTf32                                                 ? 32
         : t == MmaType::kF16 || t == MmaType::kBf16                         ? 16
         : t == MmaType::kE2m1Half || t == MmaType::kS4 || t == MmaType::kU4 ? 4
                                                                             : 8;
}

/// Bits of a wgmma's `imm`, beside its WgmmaSum in the lowest two: the product is subtracted; A or B is contiguous in m
/// or n; A is in registers, the last four entries of the list; there is no scale-d but `false`; integers saturate.
inline constexpr int64_t kWgmmaSumMask = 3, kWgmmaNegative = 4, kWgmmaTurnedA = 8, kWgmmaTurnedB = 16,
                         kWgmmaRegistersA = 32, kWgmmaReplaces = 64, kWgmmaSaturates = 128;

/// Accounting class of an instruction (struct Counts of pipeline.h).
enum class Class : uint8_t {
  kIntAlu,
  kFp32,
  kHalf,
  kFp64,
  kConvert,
  kMove,
  kControl,
  kPredicate,
  kMufu,
  kExp,
  kMma,
  kShuffle,
  kLdmatrix,
  kCpAsync,
  kBarrier,
  kGlobalLoad,
  kGlobalStore,
  kSharedLoad,
  kSharedStore,
  kLocal,
  kAtomic,
  kCount,
};

/// Type of an operand slot of a lane function.
enum class Slot : uint8_t { kNone, kPred, kB16, kB32, kB64 };

/// Destination and sources a lane function expects, in operand order.
struct Signature {
  Slot dst = Slot::kNone;
  Slot src[4] = {Slot::kNone, Slot::kNone, Slot::kNone, Slot::kNone};
};

inline constexpr uint8_t kFlagTracked = 1;   ///< reads or writes a register of Kernel::unassigned
inline constexpr uint8_t kFlagAddr64 = 2;    ///< address register is 64 bits wide
inline constexpr uint8_t kFlagSigned = 4;    ///< loads sign-extend; lane-wise: the sources are signed
inline constexpr uint8_t kFlagRelease = 4;   ///< stores, atomics and fences: they hand on what the thread did before
inline constexpr uint8_t kFlagAligned = 8;   ///< `.aligned`: every lane of the warp must take part
inline constexpr uint8_t kFlagReadOnly = 8;  ///< loads: ld.global.nc
inline constexpr uint8_t kFlagStrong = 16;   ///< volatile, relaxed, acquire or release access
inline constexpr uint8_t kFlagPart = 32;     ///< continues the PTX instruction before it, not counted again
inline constexpr uint8_t kFlagDst64 = 64;    ///< cp.async: the shared address register is 64 bits wide
inline constexpr uint8_t kFlagAcquire = 64;  ///< loads, atomics, fences: what others released is seen after it
inline constexpr uint8_t kFlagWide = 128;  ///< loads: destination rows are 64-bit though the element is not; lane-wise:
                                           ///< its rows are 64-bit
inline constexpr uint8_t kFlagReduces = 128;  ///< atomics: `red`, whose read acquires nothing

inline constexpr uint16_t kFlagWatched = 256;   ///< reads or writes a register of Kernel::watched
inline constexpr uint16_t kFlagCopy = 512;      ///< lane-wise: moves one register as it is
inline constexpr uint16_t kFlagDecides = 1024;  ///< strong loads, atomics: a predicate depends on the value

struct Inst {
  /// The shape of an image, in `target`.
  struct Geometry {
    uint8_t rank;
    bool layered;
    uint32_t packed() const { return rank | (layered ? 4u : 0u); }
    static Geometry unpack(uint32_t target) { return {static_cast<uint8_t>(target & 3), (target & 4) != 0}; }
  };

  LaneFn lane = nullptr;
  int64_t imm = 0;                      ///< address displacement, number of the rule (MadeOf), ...
  uint32_t d = 0, a = 0, b = 0, c = 0;  ///< row or predicate indices; by Signature for lane functions
  uint32_t e = 0;                       ///< second destination (predicate) or fourth source
  uint32_t list = 0;                    ///< first entry in Kernel::lists for vector operands
  uint32_t target = 0;                  ///< branch target
  uint32_t line = 0;                    ///< PTX line
  uint32_t guard = 0;                   ///< predicate index, 0 = always
  uint32_t guard_flip = 0;              ///< ~0 for `@!p`
  Kind kind = Kind::kNop;
  Class cls = Class::kControl;
  uint8_t sub = 0;  ///< which of its kind: shuffle mode, atomic operation, combine of setp, the elements of a load or
                    ///< store that are only copied, ...
  uint8_t size =
      0;  ///< bytes per element of a memory access; of a lane-wise instruction's sources, if its rule needs it
  uint8_t count = 1;  ///< vector elements or matrices
  uint8_t space = 0;  ///< enum Space
  uint16_t flags = 0;
  uint8_t type = 0;                       ///< element type tag of atomics and reductions
  MemoryScope scope = MemoryScope::kSys;  ///< of strong accesses and fences
};

inline const char* bulk_name(const Inst& in) {
  return in.kind == Kind::kBulkCopy && in.sub & kBulkReduces ? "a bulk reduction" : "a bulk copy";
}

/// A product of mma.sync that mma.h has no function of its own for. Inst::sub: K; imm: the rest.
struct MmaForm {
  MmaType a{}, b{};
  WgmmaSum sum{};
  uint32_t k = 0, rows = 16, selector = 0;
  bool sparse = false, ordered = false, saturates = false, powers = false;

  static constexpr MmaForm of(const Inst& in) {
    const auto bits = static_cast<uint32_t>(in.imm);
    return {static_cast<MmaType>(in.type & 15),
            static_cast<MmaType>(in.type >> 4),
            static_cast<WgmmaSum>(bits & 3),
            in.sub,
            bits & 4 ? 8u : 16u,
            bits >> 4 & 3,
            (bits & 64) != 0,
            (bits & 128) != 0,
            (bits & 256) != 0,
            (bits & 512) != 0};
  }
  constexpr int64_t packed() const {
    return static_cast<int64_t>(static_cast<uint32_t>(sum) | (rows == 8 ? 4u : 0) | selector << 4 | (sparse ? 64u : 0) |
                                (ordered ? 128u : 0) | (saturates ? 256u : 0) | (powers ? 512u : 0));
  }
  constexpr uint32_t sum_registers() const { return rows / 8 * (sum == WgmmaSum::kF16 ? 1 : 2); }
  /// Of a sparse A: 1 of 2, 2 of 4 or two pairs of 8 elements are stored, and a code of four bits says which.
  constexpr uint32_t per_chunk() const { return bits_of(a) == 32 ? 1 : bits_of(a) == 4 ? 4 : 2; }
  constexpr uint32_t chunks() const { return k / 2 / per_chunk(); }  ///< of a row
  /// The element of the dense row that stored element i is.
  constexpr uint32_t place_of(uint32_t i, uint32_t code) const {
    if (bits_of(a) == 32) return 2 * i + (code >> 3 & 1);
    if (bits_of(a) == 4) return i / 4 * 8 + 2 * (i / 2 % 2 ? code >> 2 : code & 3) + i % 2;
    return i / 2 * 4 + (i % 2 ? code >> 2 : code & 3);
  }
  constexpr bool is_code(uint32_t code) const {
    if (bits_of(a) == 32) return code == 4 || code == 14;
    return ordered ? (code & 3) < code >> 2 : (code & 3) != code >> 2;
  }
  struct Code {
    uint32_t lane, shift;
  };
  /// Who gives the code of a chunk: one thread of four that the selector names; a pair, each for half of K; or all,
  /// each for half of K of one row.
  constexpr Code code_of(uint32_t row, uint32_t chunk) const {
    const uint32_t group = row % 8 * 4, half = row / 8;
    if (chunks() == 4) return {group + selector, 16 * half + 4 * chunk};
    if (chunks() == 8) return {group + 2 * selector + chunk / 4, 16 * half + chunk % 4 * 4};
    return {group + 2 * (chunk / 8) + half, chunk % 8 * 4};
  }
};

/// Computes an undefined result from undefined sources without a finding; a use that decides or leaves the registers
/// is one.
constexpr bool passes_on(const Inst& in) { return in.kind == Kind::kLane || in.kind == Kind::kShuffle; }

/// Reads the bytes from before the launch, whatever the launch writes.
constexpr bool reads_non_coherently(const Inst& in) {
  return (in.kind == Kind::kLoad && in.flags & kFlagReadOnly) ||
         (in.kind == Kind::kTexture && static_cast<ImageOp>(in.sub) != ImageOp::kSurface);
}

/// Inst::type of a lane-wise instruction: which bits of its result are undefined (undefined_bits.h).
enum class MadeOf : uint8_t {
  kAll,         ///< all, if any bit of a source is
  kDot,         ///< all, if any bit of a, of c or, in the mask `imm`, of b is
  kHalves,      ///< the same for each half
  kMoved,       ///< those that the bits of the first `imm` sources move to; the other sources say where
  kLogic,       ///< bit by bit, of a, b and c, by the table `imm` or e
  kSelected,    ///< those of a or b, by the predicate c
  kSum,         ///< a + b
  kDifference,  ///< a - b
  kProduct,     ///< a * b
  kProductSum,  ///< a * b + c
  kEqual,       ///< a comparison by a == b
  kLess,        ///< by a < b
  kGreater,     ///< by a > b
};

/// One row of the instruction table for one host instruction set.
struct LaneEntry {
  const char* pattern;  ///< spellings, see opcodes.def
  Class cls;
  LaneFn fn;
  Signature signature;
};

/// Transposes an 8x8 matrix of 16-bit elements, row-major in and out.
using Transpose8x8 = void (*)(const void* in, void* out);

/// 32 offsets in shared memory: the highest, all their bits or'd together, and whether each is `step` more than the one
/// before.
struct SharedRow {
  uint32_t highest, bits, step;
  bool climbs;
};

/// Which records of word_log.h are of a warp's accesses since all of its lanes synchronised, and since any did: those
/// that are less than `span` above `low`. `tag` begins the records that are made now.
struct LaneOrder {
  uint32_t tag, low, span, merge_low, merge_span;
  uint32_t settled;  ///< begins records that no access of the warp races with
};
inline constexpr uint32_t kLogMany = 32;  ///< of a record: several lanes read

/// What many lanes or words have in common (warp_rows.h).
struct RowTable {
  bool (*climbs)(const uint64_t* value, uint32_t shift);
  SharedRow (*shared)(const uint32_t* address, uint32_t displacement, uint32_t* offset);
  SharedRow (*shared_wide)(const uint64_t* address, uint64_t displacement, uint32_t* offset);
  bool (*log_read)(uint32_t* wrote, uint32_t* read, uint32_t* read_at, uint32_t words, uint32_t pc,
                   const LaneOrder& order);
  bool (*log_write)(uint32_t* wrote, const uint32_t* read, uint32_t* wrote_at, uint32_t words, uint32_t pc,
                    const LaneOrder& order);
};

/// The places of the pieces of a register with a row of 16 bytes for each four lanes.
inline constexpr uint32_t kRegisterPieces[8] = {0, 16, 32, 48, 64, 80, 96, 112};

/// Products of wgmma, a warp's 16 rows at a time. Matrices are in float, in blocks of 8 rows (of A) or columns (of B):
/// of each k the 8 elements one after the other, of columns the even ones before the odd ones.
struct WgmmaTable {
  /// Decodes blocks of 8 pieces of 16 bytes, each at `places` bytes from `base`: rows with elements along k; or,
  /// `turned`, of 8 values of k, with 8 rows each.
  void (*decode)(Multiplicand type, bool turned, bool columns, const void* base, const uint32_t* places,
                 uint32_t blocks, float* out);
  /// sums = a b, or sums + a b if it `keeps` them. `sums`: the warp's registers, a row of 32 lanes each.
  void (*multiply)(WgmmaSum type, uint32_t* const* sums, const float* a, const float* b, uint32_t n, uint32_t k,
                   bool keeps);
  /// The same for e4m3 and e5m2, as the tensor cores of sm_90 add them (math_fp8.h), of up to four warps: `a` has 16
  /// rows for each, which has its own sums and whether it keeps them.
  void (*multiply_fp8)(Multiplicand a_type, Multiplicand b_type, WgmmaSum type, uint32_t* const* const* sums,
                       const float* a, const float* b, uint32_t n, uint32_t k, const bool* keeps, uint32_t warps);
};

/// Products of tcgen05.mma: sums in `groups` of 16 lanes of tensor memory, whose columns are 128 words apart.
struct TensorTable {
  /// sums = a b, or sums * scale + a b where there is a scale. `a`: by k the rows of all groups; `b`: by column the
  /// elements along k. Groups and columns: multiples of 2 and 4.
  void (*multiply)(WgmmaSum type, uint32_t* const* groups, uint32_t count, const float* a, const float* b, uint32_t n,
                   uint32_t k, const float* scale);
};

/// The lane functions compiled for one host instruction set.
struct LaneTable {
  const char* isa;
  const LaneEntry* entries;
  uint32_t count;
  Transpose8x8 transpose;
  RowTable rows;
  WgmmaTable wgmma;
  TensorTable tensor;
};

}  // namespace roofgen::sim
