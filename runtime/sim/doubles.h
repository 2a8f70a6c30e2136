// The arithmetic of a launch in double beside its own (RunOptions::doubles). It tells a wrong formula from rounding:
// the kernel's own values still decide every branch, address and conversion to an integer, and beside each value of a
// float type stands the one that the same instructions give in double from the same inputs.
//
// Only values that differ from their double have one: a value without a double is exact so far. Registers and memory
// hold doubles by units of 16 bits, so that instructions that move bits move them too. Memory keeps the own bits beside
// each double, which holds only while these bits are there: whatever writes memory in another way (an integer, a
// reduction of a bulk copy) takes the double away.
//
// An instruction departs if its result differs from its double by more than a bound, and no source of the result did so
// before it: as FpDebug (Benz, Hildebrandt and Hack, PLDI 2012) and Herbgrind (Sanchez-Stern et al., PLDI 2018) trace
// errors, with double in place of more digits.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "roofgen/result.h"
#include "runtime/sim/code.h"
#include "runtime/sim/opcode_table.h"

namespace roofgen::sim {

class Machine;
struct Warp;

enum class Format : uint8_t { kNone, kF16, kBf16, kTf32, kF32, kF64 };
constexpr uint32_t bytes_of(Format format) {
  return format == Format::kNone ? 0 : format <= Format::kBf16 ? 2 : format <= Format::kF32 ? 4 : 8;
}
/// The number in the lowest bits.
double decoded_half(uint64_t bits);
inline double decoded(Format format, uint64_t bits) {
  switch (format) {
    case Format::kTf32:
    case Format::kF32: return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case Format::kF16: return decoded_half(bits);
    case Format::kBf16: return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
    case Format::kF64: return std::bit_cast<double>(bits);
    case Format::kNone: break;
  }
  return 0;
}
double smallest_normal(Format format);

/// How a value comes to differ from its double.
enum class Departure : uint8_t {
  kRounding,      ///< roundings add up
  kCancellation,  ///< a difference of nearly equal values: what they lost before is now most of the result
  kOverflow,      ///< infinite, but not in double
  kInvalid,       ///< NaN, but not in double
  kOnlyInDouble,  ///< infinite or NaN in double only
};

/// What happens at one instruction for the first time, and how often: it departs, or it decides otherwise in double.
struct DoubleSite {
  Where ptx, source;   ///< as in a Finding
  uint64_t count = 0;  ///< over all lanes
  uint64_t order = 0;  ///< of the first time, among all such
  uint64_t cta = 0;
  uint32_t thread = 0;
  Departure why = Departure::kRounding;
  double own = 0, value = 0;  ///< of a decision: what is compared, or converted
  bool compares = false;      ///< a decision between two numbers; the second:
  double own_other = 0, value_other = 0;
};

/// Doubles in memory, by the address of a value, which is even.
class DoubleMemory {
 public:
  struct Cell {
    uint64_t own = 0;  ///< bits beside which the double holds
    double value = 0;
    uint32_t origin = 0;  ///< 1 + the instruction that departed; 0: none
    Format format = Format::kNone;
  };
  /// The double at an address, if these bits are there.
  const Cell* find(uint64_t address, uint64_t bits) const;
  /// The same whatever is there.
  const Cell* look(uint64_t address) const;
  void put(uint64_t address, const Cell& cell);
  void erase(uint64_t address, uint64_t bytes);
  void clear() { pages_.clear(), last_ = nullptr, last_page_ = kNoPage; }
  bool empty() const { return pages_.empty(); }

 private:
  static constexpr uint64_t kPageBytes = 128, kNoPage = ~uint64_t{0};
  struct Page {
    Cell cells[kPageBytes / 2];
  };
  Page* page_at(uint64_t address) const;

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  mutable uint64_t last_page_ = kNoPage;
  mutable Page* last_ = nullptr;
};

/// What an instruction does in double.
enum class DoubleOp : uint8_t {
  kNone,  ///< takes the doubles away
  kMove,  ///< moves bits; `sources`: those that hold them
  kNegate,
  kAbsolute,
  kAdd,
  kSubtract,
  kMultiply,
  kFused,
  kDivide,
  kReciprocal,
  kRoot,
  kReciprocalRoot,
  kLog2,
  kExp2,
  kSine,
  kCosine,
  kTanh,
  kMinimum,
  kMaximum,
  kCopySign,
  kConvert,
  kRoundToWhole,
  kFromInteger,
  kToInteger,
  kCompare,
  kMatrices,
};
struct DoubleRule {
  enum class Toward : uint8_t { kNearest, kZero, kDown, kUp };
  DoubleOp op = DoubleOp::kNone;
  Format to = Format::kNone, from = Format::kNone;
  uint8_t sources = 0;
  bool paired = false;        ///< two halves at once
  bool joins = false;         ///< two sources become the upper and the lower half
  bool saturates = false;     ///< to [0, 1]
  bool clips = false;         ///< negative numbers to 0
  bool nan_wins = false;      ///< over a number, in a minimum or maximum
  bool by_predicate = false;  ///< moves: the third source is a predicate
  bool is_signed = false;
  uint8_t integer_bytes = 0;
  Toward toward = Toward::kNearest;
  uint8_t relation = 0;  ///< of a comparison: bits for less, equal, greater, unordered
  uint8_t k = 0;         ///< of matrices
  bool e5m2 = false;     ///< their elements of 8 bits; else e4m3
  bool wide[4] = {};     ///< sources of 64 bits
};
/// Of the spelling of a lane-wise instruction, or an mma.
DoubleRule double_rule(const std::string& opcode, const Signature& signature);
/// The result for one lane. `largest`: the magnitude of the largest term of a sum.
double in_double(const DoubleRule& rule, const double (&x)[3], double* largest);
bool holds(uint8_t relation, double a, double b);
double whole(DoubleRule::Toward toward, double x);

/// The doubles of a launch.
class Doubles {
 public:
  /// For this kernel; before the launch.
  void begin(const Kernel& kernel, const OpcodeTable& opcodes);

  // After the launch.
  bool any_floats() const { return any_floats_; }  ///< the kernel computes with them
  /// Relative error from which a result departs: half of the digits of the narrowest type to which the kernel rounds.
  double bound() const { return bound_; }
  /// The double of an element of device memory; null: it is exact.
  const DoubleMemory::Cell* at(uint64_t address, Format format, uint64_t bits) const;
  /// By `order`.
  std::vector<DoubleSite> departures() const { return in_order(departures_); }
  std::vector<DoubleSite> decisions() const { return in_order(decisions_); }
  /// Instructions that take the double of a value away that has departed.
  std::vector<DoubleSite> losses() const { return in_order(losses_); }
  /// Where the value of a cell departed that has an origin.
  const DoubleSite& departure_of(uint32_t origin) const { return departures_[origin - 1]; }
  bool apart(double own, double value, Format format) const;

 private:
  friend class CtaDoubles;
  static std::vector<DoubleSite> in_order(const std::vector<DoubleSite>& sites);

  std::vector<DoubleRule> rules_;                            ///< by instruction
  std::vector<bool> constant_;                               ///< by row: it holds the same constant always
  std::vector<DoubleSite> departures_, decisions_, losses_;  ///< by instruction
  DoubleMemory device_;
  double bound_ = 0;
  uint64_t order_ = 0;
  bool any_floats_ = false;
};

/// The doubles of a CTA, which follow its instructions one by one.
class CtaDoubles {
 public:
  CtaDoubles(Machine& machine, Doubles& launch);
  /// A CTA begins.
  void begin();
  /// Around an instruction, for the lanes that execute it.
  void before(Warp& w, const Inst& in, uint32_t mask);
  void after(Warp& w, const Inst& in, uint32_t mask);
  /// Within instructions that may not execute, or whose operands only the machine knows.
  void shuffle(const Warp& w, const Inst& in, uint32_t mask, const uint32_t* from);
  void before_wgmma(uint32_t first, const Inst& in, const float* a, const float* b, const std::vector<uint32_t>& reads);
  void after_wgmma(uint32_t first, const Inst& in);
  /// A bulk copy moves bytes between device memory and bytes `begin` and on of pieces of the CTA's shared memory.
  void bulk_row(const Warp& w, const Inst& in, uint32_t lane, uint64_t device, uint32_t bytes, uint32_t begin,
                const std::vector<uint32_t>& pieces);
  /// A bulk copy moves pieces of a CTA's shared memory into those of this one.
  void bulk_from(CtaDoubles& source, const std::vector<uint32_t>& from, const std::vector<uint32_t>& to);

 private:
  /// Of a register of 32 bits, or half of one of 64: doubles of two units of 16 bits, by lane.
  struct Row {
    uint32_t has[2] = {0, 0};  ///< lanes
    double value[2][kWarpSize];
    uint32_t origin[2][kWarpSize];
    Format format[2][kWarpSize];
  };
  struct Numbers {
    double value[kWarpSize];
    uint32_t origin[kWarpSize];
    uint32_t has = 0;  ///< lanes whose double is another than the own value
  };
  struct Register {
    uint32_t place;
    bool wide = false;  ///< 64 bits
  };
  struct Place {
    DoubleMemory* memory;  ///< null: it has no doubles
    uint64_t address;
  };
  /// A product of matrices in double, before the own one is known.
  struct Product {
    struct Element {
      double value = 0;
      uint32_t origin = 0;
    };
    uint32_t rows = 0, columns = 0, k = 0;
    std::vector<Element> a, b, c;  ///< a: rows x k; b: k x columns; c: rows x columns
    std::vector<double> d;         ///< a b + c
    Product() = default;
    Product(uint32_t rows, uint32_t columns, uint32_t k);
    void multiply();
    /// Of the first term of an element that has one.
    uint32_t origin(uint32_t row, uint32_t column) const;
    double largest_term(uint32_t row, uint32_t column) const;
  };

  size_t pc_of(const Inst& in) const;
  Row& row(const Warp& w, uint32_t place);
  bool any_in(const Warp& w, uint32_t place, bool wide, uint32_t mask);
  void forget(const Warp& w, uint32_t place, bool wide, uint32_t mask);
  void forget_results(const Warp& w, const Inst& in, uint32_t mask);
  void save(const Warp& w, const Inst& in, const DoubleRule& rule);
  void read(const Warp& w, uint32_t place, uint32_t unit, Format format, const uint64_t* own, uint32_t mask,
            Numbers& out);
  void set(const Warp& w, uint32_t place, uint32_t unit, uint32_t lane, const DoubleMemory::Cell& cell);
  void write(const Warp& w, const Inst& in, uint32_t place, uint32_t unit, Format format, uint32_t lane, double value,
             uint32_t origin, double largest);
  uint64_t bits_in(const Warp& w, uint32_t place, bool wide, uint32_t lane) const;
  uint32_t depart(const Warp& w, const Inst& in, uint32_t lane, Departure why, double own, double value);
  DoubleSite& note(std::vector<DoubleSite>& sites, const Warp& w, const Inst& in, uint32_t lane);

  void compute(const Warp& w, const Inst& in, const DoubleRule& rule, uint32_t mask);
  bool rounds_on_purpose(const Inst& in, const DoubleRule& rule, const Numbers (&x)[3], uint32_t lane) const;
  void decide(const Warp& w, const Inst& in, const DoubleRule& rule, uint32_t mask);
  void move(const Warp& w, const Inst& in, const DoubleRule& rule, uint32_t mask);
  void change_sign(const Warp& w, const Inst& in, const DoubleRule& rule, uint32_t mask);
  void lose(const Warp& w, const Inst& in, uint32_t mask);

  Place place_of(const Warp& w, uint32_t lane, uint64_t address);
  void load(const Warp& w, const Inst& in, uint32_t mask);
  void store(const Warp& w, const Inst& in, uint32_t mask);
  void load_unit(const Warp& w, Register to, uint32_t unit, uint32_t bytes, uint32_t lane, Place from);
  void store_units(const Warp& w, Register from, uint32_t first_unit, uint32_t bytes, uint32_t lane, Place to);
  void copy(Place from, Place to, uint32_t bytes);
  void atomic(const Warp& w, const Inst& in, uint32_t mask);
  void cp_async(const Warp& w, const Inst& in, uint32_t mask);
  void matrix_rows(const Warp& w, const Inst& in);
  void tile(const Warp& w, const Inst& in);
  void before_mma(const Warp& w, const Inst& in, const DoubleRule& rule);
  void after_mma(const Warp& w, const Inst& in, const DoubleRule& rule);
  template <class F>
  void each_sum(Format format, uint32_t rows_from, uint32_t blocks, F&& element);
  void read_sums(const Warp& w, const uint32_t* list, Format format, uint32_t rows_from, uint32_t blocks);
  void write_sums(const Warp& w, const Inst& in, const uint32_t* list, Format format, uint32_t rows_from,
                  uint32_t blocks);
  void read_piece(const Inst& in, bool is_a, uint32_t piece, uint32_t offset);

  Machine& machine_;
  Doubles& launch_;
  std::vector<Row> rows_;
  DoubleMemory memory_;                ///< shared, by address in the window; local, by Machine::local_key too
  uint64_t saved_[4][kWarpSize] = {};  ///< the sources' bits before the instruction
  uint64_t address_[kWarpSize] = {}, other_address_[kWarpSize] = {};
  Product product_;
};

}  // namespace roofgen::sim
