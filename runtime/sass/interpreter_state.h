// The state of an interpreter, shared by its control flow (interpreter.cpp) and the actions of instructions
// (actions.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sass/lanes.h"
#include "runtime/sass/stream.h"

namespace roofgen::sass {

/// Shared memory below belongs to the system. From sm_100 on it holds what guards the allocation of tensor memory, at
/// first zeros: the columns that the CTA holds.
inline constexpr uint64_t kSystemBytes = 1024;

/// The window of shared memory in generic addresses; that of device memory lies far above.
inline constexpr uint64_t kSharedWindow = uint64_t{0x7f} << 32, kLocalWindow = uint64_t{0x7e} << 32;
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 32;
/// That of the kernel's parameters, in which tensor maps lie.
inline constexpr uint64_t kParameterWindow = uint64_t{0x7d} << 32;
/// An address in shared memory of a cluster has the CTA's rank in the byte above.
inline constexpr uint32_t kSharedOffset = 0xffffff;
inline constexpr uint32_t kEveryLane = ~0u;
inline constexpr size_t kConvergenceBarriers = 16;
inline constexpr uint32_t kNowhere = ~0u;

inline bool in_shared_window(uint64_t a) { return a >= kSharedWindow && a < kSharedWindow + kWindowBytes; }

/// Lanes of a warp that run together.
struct Path {
  uint32_t pc = 0, mask = 0;
};

/// Lanes that wait in a WARPSYNC for all lanes of `wanted`.
struct Meeting {
  uint32_t wanted = 0, lanes = 0;
  uint32_t resume = 0;    ///< instruction after it
  uint32_t behind = ~0u;  ///< of a collective one: where the lanes go after its ENDCOLLECTIVE
};

/// Votes of BAR.RED.
struct Votes {
  uint32_t count = 0, threads = 0;
  bool all = false, is_known = true;  ///< all: that it takes for its predicate to hold
  bool holds() const { return all ? count == threads : count > 0; }
};

struct WarpState {
  uint32_t number = 0, alive = 0;
  std::vector<Path> paths;   ///< the last one runs
  std::vector<Path> parked;  ///< at a barrier of the CTA
  std::array<uint32_t, kConvergenceBarriers> members{}, arrived{}, resume{};
  std::vector<Meeting> meetings, collectives;  ///< collectives: that have met
  std::vector<Lanes> registers;
  std::bitset<256> known_registers;  ///< in some lane
  std::array<Lanes, 128> uniform;
  std::array<uint32_t, 8> predicates{}, predicate_known{};
  std::array<uint32_t, 8> uniform_predicates{}, uniform_predicate_known{};
  std::array<uint8_t, 8> predicate_axes{}, uniform_predicate_axes{};
  std::map<uint32_t, std::vector<Lanes>> local;  ///< by word of the frame, for values that steer
  int waits_at = -1;                             ///< the barrier of the CTA
  Votes votes;                                   ///< of the last BAR.RED
  std::map<uint64_t, size_t> answers_read;       ///< by address: of try_cancel
  uint64_t executed = 0;                         ///< instructions
  WarpStream stream;

  /// The step of the instruction that was recorded last, apart from the plain ones before it.
  Step& own_step() {
    Step& last = stream.steps.back();
    if (last.count() == 1) return last;
    --last.access;
    return stream.steps.emplace_back(last.index + last.count());
  }
};

/// The offsets of the last shared-memory access of an instruction, from its first lane on. A shift of all lanes changes
/// no conflicts.
struct Pattern {
  uint32_t mask = 0, wavefronts = 0;
  std::array<uint32_t, 32> offsets{};
};

/// What a CTA wrote to a line of device memory.
struct Written {
  std::array<std::byte, 128> bytes{};
  std::bitset<128> is_written, is_known;
};

struct CtaBarrier {
  uint32_t arrived = 0, expected = 0;
  Votes votes;
};

struct Interpreter::State {
  State(const Code& c, StreamLaunch l) : code(c), launch(std::move(l)), patterns(c.instructions.size()) {
    for (const Instruction& i : code.instructions)
      pairs |= i.opcode->action == Action::kMatrix && i.spelling.find(".2CTA") != std::string::npos;
    find_fp32();
    find_steering();
    place_parameters();
    bank0.resize(std::max<size_t>(size_t{c.first_param} + launch.params.size(), 0x160) + 16);
    fill_bank0();
    std::memcpy(bank0.data() + code.first_param, launch.params.data(), launch.params.size());
    for (const auto& [bank, bytes] : code.cubin.banks) banks[bank] = bytes;
    for (const CubinKernel& k : code.cubin.kernels)
      if (k.name == code.kernel)
        for (const auto& [bank, bytes] : k.banks)
          if (bank != 0) banks[bank] = bytes;
    for (const AddressSlot& slot : code.cubin.addresses) {
      const uint64_t address = launch.variable ? launch.variable(slot.variable) : 0;
      std::string& bank = banks[4];
      if (bank.size() < slot.offset + 8) bank.resize(slot.offset + 8);
      const uint64_t value = address ? address + slot.addend : 0;
      std::memcpy(bank.data() + slot.offset, &value, sizeof value);
      if (!address) unknown_slots.push_back(slot.offset);
    }
    // Constant variables have their launch's contents where the caller knows them.
    for (const Variable& v : code.cubin.variables) {
      const uint64_t address = v.constant && launch.variable ? launch.variable(v.name) : 0;
      std::string& bank = banks[3];
      if (!address || v.offset + v.bytes > bank.size() || !launch.read) continue;
      launch.read(address, std::as_writable_bytes(std::span(bank.data() + v.offset, v.bytes)));
    }
  }

  /// The words of constant bank 0 in front of the parameters, as the code of kernels reads them.
  void fill_bank0() {
    constexpr uint32_t kHopper = 0x210;  // where the parameters begin on sm_90
    const auto put = [&](uint32_t at, uint32_t value) {
      std::memcpy(bank0.data() + at, &value, sizeof value);
      words_set.insert(at);
    };
    const auto put_address = [&](uint32_t at, uint64_t value) {
      put(at, static_cast<uint32_t>(value)), put(at + 4, static_cast<uint32_t>(value >> 32));
    };
    const bool newest = is_newest();
    const uint32_t block = newest ? 0x360 : 0, grid = newest ? 0x370 : 0xc;
    put(block, launch.block.x), put(block + 4, launch.block.y), put(block + 8, launch.block.z);
    put(grid, launch.grid.x), put(grid + 4, launch.grid.y), put(grid + 8, launch.grid.z);
    // The windows of shared and of local memory in generic addresses, and the stack pointer.
    if (!newest) put_address(0x18, kSharedWindow);
    put_address(newest ? 0x2f8 : 0x20, kLocalWindow);
    put(newest ? 0x37c : 0x28, 0x00fffdc0);
    const float reciprocal = 1.0f / static_cast<float>(launch.cluster.x);
    if (code.first_param == kHopper) {
      put(0x140, launch.cluster.count() > 1);
      put(0x150, std::bit_cast<uint32_t>(reciprocal)), put(0x15c, launch.grid.x / launch.cluster.x);
      put_address(0x198, kParameterWindow);
    }
    // Clusters are at an offset that goes with SR_CgaSize; the interpreter reads this register as 0.
    if (newest) {
      put(0x2a0, launch.cluster.x), put(0x2a4, launch.cluster.y), put(0x2a8, launch.cluster.z);
      put(0x2b0, std::bit_cast<uint32_t>(reciprocal)), put(0x2c0, launch.grid.x / launch.cluster.x);
      put(0x2cc, static_cast<uint32_t>(launch.cluster.count()));
      put_address(0x348, kParameterWindow);
    }
  }
  bool is_newest() const { return code.first_param == 0x380; }  // sm_100 and later
  /// Whether fill_bank0() has set the word.
  bool is_set(uint32_t offset) const { return offset >= code.first_param || words_set.contains(offset & ~3u); }

  bool pairs = false;            ///< CTAs multiply in pairs
  std::set<uint32_t> words_set;  ///< of constant bank 0, in front of the parameters
  const Code& code;
  StreamLaunch launch;
  std::vector<bool> steers;
  /// By instruction, and for none past the last: how many from it on do nothing but pass.
  std::vector<uint32_t> passing;
  /// An instruction that only makes registers unknown if one of its sources is. It passes, too, where they already are.
  struct Fading {
    uint8_t first = 0, words = 0;  ///< of the results; none: another instruction
    std::array<uint8_t, 3> sources = {};
    uint8_t source_count = 0;  ///< none: in any case
  };
  std::vector<Fading> fading;
  /// The answer of pass() that was given last: it holds for every warp that does not know these registers.
  struct Passed {
    uint32_t count = 0;
    std::bitset<256> unknown;
  };
  std::vector<Passed> passed;  ///< by instruction
  /// Before each instruction, how many are FP32 arithmetic.
  struct Fp32 {
    uint32_t all = 0, fused = 0;
  };
  std::vector<Fp32> fp32_before;
  /// Loads steer, so that what is written there counts; values that the CTA has stored to device memory steer.
  bool shared_steers = false, device_steers = false, stores_steer = false;
  std::string bank0;
  std::map<int, std::string> banks;
  std::vector<uint32_t> unknown_slots;
  std::vector<Pattern> patterns;  ///< by instruction
  std::map<uint32_t, Doubt> doubts;
  std::map<uint64_t, std::array<std::byte, 128>> lines;  ///< of device memory that was read for its values
  std::map<uint64_t, bool> line_known;
  /// The last line read that no CTA wrote, and its contents.
  static constexpr uint64_t kNoLine = ~uint64_t{0};
  uint64_t untouched_line = kNoLine;
  const std::byte* untouched = nullptr;

  std::map<uint64_t, std::bitset<128>> written_by_others;  ///< by line of device memory: the bytes

  // ---- Axes of the grid that decide something: bit 0 x, 1 y, 2 z ---------------------------------
  mutable uint8_t operand_axes = 0;  ///< of what the current instruction has read so far
  uint8_t memory_axes = 0;           ///< of all values stored in memory and of all votes
  uint8_t deciding_axes = 0;         ///< of all branches and guards so far

  // ---- One CTA ----------------------------------------------------------------------------------
  std::map<uint64_t, Written> written;  ///< by line of device memory
  bool reads_back = false;              ///< a value that it wrote, and that is not known
  /// Executions of a branch on unknown values, and those that took it; the warps that have come to it (a bit each).
  struct Guesses {
    uint64_t seen = 0, taken = 0;
    uint32_t warps = 0;
  };
  std::map<uint32_t, Guesses> undecided;  ///< by instruction
  uint32_t cta_x = 0, cta_y = 0, cta_z = 0;
  std::vector<std::byte> shared;
  std::vector<uint8_t> shared_known;
  std::vector<WarpState> warps;
  std::array<CtaBarrier, 16> barriers;
  uint64_t steps_left = 0, most_of_warp = ~uint64_t{0};
  bool goes_on = false;                           ///< the CTA does not end where most do
  uint32_t tensor_units = 0, tensor_columns = 0;  ///< of tensor memory: those held now, a bit each; the most held
  uint32_t hold_tensor_units(bool takes, uint32_t value);
  /// Where try_cancel puts its answers, in order: of this CTA so far, and the longest list of a CTA. The warp that asks
  /// may run long before the warps that read the answers, so that each of these reads the answers of a place in order.
  std::vector<uint32_t> answer_places, known_places;
  uint64_t cta_number = 0;

  /// Tensor maps are aligned by their address in constant memory, which depends on the architecture.
  void place_parameters() {
    if (launch.param_places.empty() || launch.param_places.size() != code.param_offsets.size()) return;
    std::vector<std::byte> placed(code.param_bytes);
    for (size_t k = 0; k < launch.param_places.size(); ++k) {
      const auto [from, bytes] = launch.param_places[k];
      const size_t to = code.param_offsets[k];
      if (placed.size() < to + bytes) placed.resize(to + bytes);
      std::copy_n(launch.params.begin() + static_cast<ptrdiff_t>(from), bytes,
                  placed.begin() + static_cast<ptrdiff_t>(to));
    }
    launch.params = std::move(placed);
  }

  Result<CtaStream> run(uint64_t cta);
  Result<CtaStream> run_once(uint64_t cta);
  void find_fp32();
  void find_passing();
  uint32_t pass(const WarpState& w, uint32_t index);
  void find_steering();
  bool run_warp(WarpState& w);
  class Execution;
  class MemoryAccess;
  void execute(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask);
  /// The memory request of an instruction. False: the instruction has no other results that are of use.
  bool access(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask);
  void branch_indexed(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask);
  void control(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask);
  void record(WarpState& w, uint32_t index, uint32_t count, uint32_t active);

  void read(const WarpState& w, const Operand& o, Lanes& out, bool is_float = false) const;
  void read_pair(const WarpState& w, const Operand& o, Lanes& low, Lanes& high) const;
  /// The values of an operand of 64 bits; the lanes in which they are known.
  uint32_t read_wide(const WarpState& w, Operand o, std::array<uint64_t, 32>& out) const;
  void predicate(const WarpState& w, const Operand& o, uint32_t& value, uint32_t& known) const;
  void write(WarpState& w, const Operand& o, const Lanes& value, uint32_t mask, unsigned plus = 0);
  void write_predicate(WarpState& w, const Operand& o, uint32_t value, uint32_t known, uint32_t mask);
  void constant(const Operand& o, const Lanes& index, uint32_t bytes, unsigned word, Lanes& out) const;
  void forget(WarpState& w, unsigned reg, uint32_t mask) {
    w.registers[reg].known &= ~mask;
    w.known_registers[reg] = w.registers[reg].known != 0;
  }
  /// The lanes in which the guard holds; unknown ones count as holding.
  uint32_t guarded(const WarpState& w, const Instruction& i, uint32_t mask) const;
  void addresses(const WarpState& w, const Operand& o, uint64_t out[32], uint32_t& known) const;
  void load(WarpState& w, const Instruction& i, const uint64_t at[32], uint32_t known, uint32_t mask);
  void store(WarpState& w, const Instruction& i, const uint64_t at[32], uint32_t known, uint32_t mask);
  using Answer = std::array<uint32_t, 4>;
  /// The answer of try_cancel to the CTA's question number `which`.
  Answer answer(uint64_t which) const;
  /// The answer that a warp reads at an address of shared memory; nullopt: there is none.
  std::optional<Answer> answer_at(WarpState& w, uint64_t address);
  void copy(const uint64_t to[32], const uint64_t from[32], uint32_t mask, uint32_t reads, uint32_t bytes);
  void forget_shared(const uint64_t at[32], uint32_t mask, uint32_t bytes);
  bool read_initial(uint64_t address, std::span<std::byte> out);
  bool read_global(uint64_t address, uint32_t bytes, std::byte* out);
  void write_global(uint64_t address, uint32_t bytes, const std::byte* from);
  void request(WarpState& w, Access& a, const uint64_t at[32], uint32_t mask, uint32_t bytes);
  void synchronize(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask);
  void add_row(WarpState& w, Access& a, uint64_t address, uint64_t bytes);
  void request_tile(WarpState& w, Access& a, uint64_t map_address, const int32_t at[5], Sync& sync);
  bool is_own_rank(const WarpState& w, const Operand& o, size_t lane);
  bool read_initial_bytes(uint64_t address, std::span<std::byte> out);
  void doubt(uint32_t index, bool is_branch) {
    Doubt& d = doubts[index];
    d.index = index, d.is_branch = is_branch, ++d.count;
  }
  bool guess(uint32_t warp, uint32_t index);
  bool ends_most(uint32_t index) const;
  void arrive(WarpState& w, size_t barrier, uint32_t resume_at, uint32_t mask);
  void meet(WarpState& w, const Instruction& i, uint32_t next, uint32_t mask);
  void release(WarpState& w, uint32_t wanted);
  void scatter(WarpState& w, uint32_t lanes, const std::array<uint32_t, 32>& targets);
  void settle(WarpState& w);
};

/// Arithmetic whose values mostly come from memory or tensor instructions: a source that is unknown in all lanes makes
/// the results so, at once.
bool is_float_arithmetic(Action action);
/// IADD.64, MOV.64 and SEL.64 of sm_120, UIADD3.64.
bool takes_pairs(const Instruction& i);
/// Registers of each result that an instruction makes unknown.
unsigned result_words(const Instruction& i);

}  // namespace roofgen::sass
