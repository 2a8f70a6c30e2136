// What sm_90 does asynchronously: operations on mbarriers and copies of the tensor copy engine. Their order in time is
// the event model's; here a wait never fails, so that a warp runs on to its end.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "runtime/sass/interpreter_state.h"
#include "runtime/sim/tensor_map.h"

namespace roofgen::sass {

using Kind = Operand::Kind;

namespace {

/// Of mbarrier.init: the count of arrivals lies in the lower word of the barrier's initial state.
constexpr uint32_t kMostArrivals = 1u << 20;
uint32_t arrivals_of(uint32_t lower_word) { return kMostArrivals - (lower_word >> 1); }

/// UTCHMMA a, b, d, -, descriptor: the descriptor has N / 8 from bit 17 and M / 16 from bit 24 on.
Sync product(const Instruction& i, uint32_t descriptor) {
  Sync sync;
  sync.kind = Sync::Kind::kMatrix;
  sync.rows = static_cast<uint16_t>((descriptor >> 24 & 31) * 16);
  sync.columns = static_cast<uint16_t>((descriptor >> 17 & 63) * 8);
  sync.a_in_tensor_memory = i.operands[0].in_tensor_memory;
  sync.ctas = i.spelling.find(".2CTA") != std::string::npos ? 2 : 1;
  return sync;
}
constexpr uint32_t kLargestProduct = 8u << 24 | 32u << 17;  ///< 128 times 256

/// Bytes of "4x32dp128bit", "128dp256bit": rows of bits.
uint32_t copied_bytes(std::string_view spelling) {
  const size_t dp = spelling.find("dp"), dot = spelling.rfind('.', dp);
  if (dp == spelling.npos || dot == spelling.npos) return 0;
  std::string_view rows = spelling.substr(dot + 1, dp - dot - 1);
  if (const size_t x = rows.find('x'); x != rows.npos) rows = rows.substr(x + 1);
  uint32_t lanes = 0, bits = 0;
  std::from_chars(rows.data(), rows.data() + rows.size(), lanes);
  std::from_chars(spelling.data() + dp + 2, spelling.data() + spelling.size(), bits);
  return lanes * bits / 8;
}

}  // namespace

/// The lines that a row of a tile covers.
void Interpreter::State::add_row(WarpState& w, Access& a, uint64_t address, uint64_t bytes) {
  std::vector<LineRequest>& lines_of = w.stream.lines;
  for (uint64_t sector = address / 32; sector * 32 < address + bytes; ++sector) {
    const auto bit = static_cast<uint8_t>(1u << sector % 4);
    if (lines_of.size() > a.first_line && lines_of.back().line == sector / 4)
      lines_of.back().sectors |= bit;
    else
      lines_of.push_back({sector / 4, bit});
  }
  a.lines = static_cast<uint16_t>(std::min<size_t>(lines_of.size() - a.first_line, UINT16_MAX));
}

/// The lines of a tile of a tensor, without what lies outside of the tensor. Sets its bytes in shared memory, its rows
/// of 128 bytes at most, and its pages.
void Interpreter::State::request_tile(WarpState& w, Access& a, uint64_t map_address, const int32_t at[5], Sync& sync) {
  constexpr uint64_t kPageBytes = 65536;
  sim::TensorView view;
  std::byte bytes[sim::kTensorMapBytes];
  const uint64_t offset = map_address - kParameterWindow;
  if (map_address >= kParameterWindow && offset + sizeof bytes <= launch.params.size())
    std::memcpy(bytes, launch.params.data() + offset, sizeof bytes);
  else if (!read_initial_bytes(map_address, bytes))
    return;
  if (!view.decode(bytes) || !view.plausible()) return;
  const auto inside = [&](uint32_t d, int64_t c) { return c >= 0 && static_cast<uint64_t>(c) < view.dims[d]; };
  const int64_t column = at[0] / static_cast<int64_t>(view.per_byte);
  const int64_t first = std::max<int64_t>(column, 0);
  const int64_t last = std::min<int64_t>(column + view.box[0], static_cast<int64_t>(view.dims[0]));
  std::array<uint32_t, sim::kMaxTensorRank> index{};
  uint64_t page = ~uint64_t{0};
  for (bool more = last > first; more;) {
    uint64_t address = view.address + static_cast<uint64_t>(first) * view.element_bytes;
    bool is_inside = true;
    for (uint32_t d = 1; d < view.rank; ++d) {
      const int64_t c = int64_t{at[d]} + int64_t{index[d]} * view.steps[d];
      is_inside = is_inside && inside(d, c);
      address += static_cast<uint64_t>(c) * view.strides[d];
    }
    if (is_inside) add_row(w, a, address, static_cast<uint64_t>(last - first) * view.element_bytes);
    sync.pages += address / kPageBytes != page;
    page = address / kPageBytes;
    more = false;
    for (uint32_t d = 1; d < view.rank && !more; ++d) {
      more = ++index[d] < view.side(d);
      if (!more) index[d] = 0;
    }
  }
  const uint64_t row_bytes = std::max<uint64_t>(1, uint64_t{view.box[0]} * view.element_bytes);
  sync.rows =
      static_cast<uint16_t>(std::min<uint64_t>(view.box_bytes() / row_bytes * ((row_bytes + 127) / 128), UINT16_MAX));
  sync.bytes = static_cast<uint32_t>(view.box_bytes());
}

/// Whether an address of the cluster's shared memory is this CTA's: its rank is in the bits from 24 on.
bool Interpreter::State::is_own_rank(const WarpState& w, const Operand& o, size_t lane) {
  uint64_t at[32];
  uint32_t known_lanes = 0;
  addresses(w, o, at, known_lanes);
  const Dim3& of = launch.cluster;
  const uint32_t rank = cta_x % of.x + of.x * (cta_y % of.y + of.y * (cta_z % of.z));
  return (known_lanes >> lane & 1) && (at[lane] >> 24 & 15) == rank;
}

bool Interpreter::State::read_initial_bytes(uint64_t address, std::span<std::byte> out) {
  return launch.read && launch.read(address, out);
}

Interpreter::State::Answer Interpreter::State::answer(uint64_t which) const {
  const Dim3& g = launch.grid;
  const uint64_t cta = cta_number + (which + 1) * launch.next_work;
  if (!launch.next_work || cta >= g.count()) return {};
  // The machine code of query_cancel: x; y and z in halves; whether there is work.
  return {static_cast<uint32_t>(cta % g.x), static_cast<uint32_t>(cta / g.x % g.y | cta / g.x / g.y << 16), 1, 0};
}

std::optional<Interpreter::State::Answer> Interpreter::State::answer_at(WarpState& w, uint64_t address) {
  const auto place = static_cast<uint32_t>(address & ~uint64_t{15});
  if (std::ranges::find(known_places, place) == known_places.end()) return std::nullopt;
  size_t left = w.answers_read[address]++;
  for (size_t k = 0; k < known_places.size(); ++k)
    if (known_places[k] == place && left-- == 0) return answer(k);
  return Answer{};
}

void Interpreter::State::synchronize(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask) {
  Sync sync;
  bool known = true;
  // The first active lane has the value of all.
  const auto lane = static_cast<size_t>(std::countr_zero(mask));
  const auto uniform = [&](unsigned at) -> uint32_t {
    if (at >= kUniformZero) return 0;
    operand_axes |= w.uniform[at].axes;
    known = known && w.uniform[at].known;
    return w.uniform[at].v[0];
  };
  const auto uniform_pair = [&](const Operand& o) {
    return (uniform(o.uniform) | uint64_t{uniform(o.uniform + 1u)} << 32) + static_cast<uint64_t>(int64_t{o.value});
  };
  const auto value_of = [&](const Operand& o) {
    Lanes v;
    read(w, o, v);
    known = known && (v.known >> lane & 1);
    return v.v[lane];
  };
  const auto operand = [&](size_t which) -> const Operand* { return which < i.count ? &i.operands[which] : nullptr; };
  const auto memory_at = [&](const Operand& o) {
    uint64_t at[32];
    uint32_t known_lanes = 0;
    addresses(w, o, at, known_lanes);
    known = known && (known_lanes >> lane & 1);
    return static_cast<uint32_t>(at[lane] & kSharedOffset);
  };
  const auto has = [&](std::string_view word) { return i.spelling.find(word) != std::string::npos; };
  Access access;
  access.first_line = static_cast<uint32_t>(w.stream.lines.size());
  access.lanes = static_cast<uint8_t>(std::popcount(mask));
  const auto threads = static_cast<uint32_t>(std::popcount(mask));
  switch (i.opcode->action) {
    case Action::kSyncs: {
      const Operand* barrier = nullptr;
      for (size_t k = 0; k < i.count; ++k)
        if (i.operands[k].kind == Kind::kMemory) barrier = &i.operands[k];
      if (!barrier || has(".CCTL")) return;
      sync.barrier = memory_at(*barrier);
      const Operand& last = i.operands[i.count - 1u];
      if (has(".EXCH")) {
        sync.kind = Sync::Kind::kInit;
        sync.count = arrivals_of(value_of(last));
      } else if (has(".PHASECHK")) {
        sync.kind = Sync::Kind::kWait;
        // The parity lies in the highest bit. That of a token is that of the phase of the warp's last arrival.
        const uint32_t parity = value_of(last);
        sync.parity = known ? static_cast<uint8_t>(parity >> 31) : Sync::kOfArrival;
        known = true;
      } else if (has(".A0TR")) {
        sync.bytes = value_of(last) * threads;
      } else if (has(".ART0")) {
        sync.count = value_of(last) * threads;
      } else if (has(".A1T0")) {
        sync.count = threads;
      } else {
        sync.count = threads;
        sync.bytes = value_of(last) * threads;
      }
      sync.is_remote = has(".RED") && !has(".A0TR");
      if (sync.barrier < kSystemBytes) return;
      // The CTAs of a pair that send to the first one do so alike.
      if (sync.is_remote && pairs && is_own_rank(w, *barrier, lane)) sync.count *= 2, sync.bytes *= 2;
      break;
    }
    case Action::kMatrix: {
      if (i.count < 5) return;
      const uint32_t descriptor = uniform(i.operands[4].uniform);
      sync = product(i, known ? descriptor : kLargestProduct);
      break;
    }
    case Action::kMatrixCopy:
      sync.kind = Sync::Kind::kMatrix;
      sync.bytes = copied_bytes(i.spelling);
      break;
    case Action::kMatrixCommit:
      sync.kind = Sync::Kind::kCommit;
      sync.barrier = memory_at(i.operands[0]);
      sync.count = 1;
      break;
    case Action::kNextWork: {
      if (i.count < 2) return;
      const uint32_t to = memory_at(i.operands[0]);
      sync.kind = Sync::Kind::kSend;
      sync.barrier = memory_at(i.operands[1]);
      sync.bytes = 16;
      if (known && to + 16 <= shared.size()) {
        const Answer words = answer(answer_places.size());
        std::memcpy(shared.data() + to, words.data(), 16), std::memset(shared_known.data() + to, 1, 16);
        answer_places.push_back(to);
      }
      break;
    }
    case Action::kArrives:
      // Without ARVCNT (.noinc) the arrival was added to the phase before.
      if (!has(".ARVCNT") || !operand(0)) return;
      sync.barrier = memory_at(*operand(0));
      sync.count = threads;
      sync.after_copies = true;
      break;
    case Action::kStas: {
      // STAS [place, barrier], value: the barrier's address is in the register after that of the place.
      if (!operand(0) || operand(0)->kind != Operand::Kind::kMemory) return;
      const Operand& to = *operand(0);
      const Lanes& barrier = w.registers[to.index + 1u];
      known = known && (barrier.known >> lane & 1);
      sync.kind = Sync::Kind::kSend;
      sync.barrier = barrier.v[lane] & kSharedOffset;
      sync.bytes = i.bytes * threads;
      if (sync.barrier < kSystemBytes) return;
      break;
    }
    case Action::kTensorLoad:
    case Action::kTensorStore: {
      if (i.count < 2) return;
      const bool loads = i.opcode->action == Action::kTensorLoad;
      const unsigned first = i.operands[0].uniform;
      sync.kind = loads ? Sync::Kind::kLoad : Sync::Kind::kStore;
      if (loads) sync.barrier = uniform(first + 1) & kSharedOffset;
      int32_t at[5] = {};
      for (unsigned d = 0; d < i.matrix_rank; ++d) at[d] = static_cast<int32_t>(uniform(first + (loads ? 2 : 1) + d));
      request_tile(w, access, uniform_pair(i.operands[1]), at, sync);
      known = known && sync.bytes > 0;
      if (loads && has(".2CTA")) sync.senders = 2;
      if (has(".MULTICAST") && i.count > 2)
        sync.ctas = static_cast<uint8_t>(std::max(1, std::popcount(value_of(i.operands[2]))));
      break;
    }
    case Action::kBulkCopy: {
      // UBLKCP.S.G [to, barrier], [from], 16-byte pieces; .G.S [to], [from], pieces; .S.S into another CTA.
      if (i.count < 3) return;
      const bool loads = has(".S.G") || has(".S.S");
      sync.kind = loads ? Sync::Kind::kLoad : Sync::Kind::kStore;
      sync.bytes = (value_of(i.operands[2]) & 0xffff) * 16;
      if (loads) sync.barrier = uniform(i.operands[0].uniform + 1u) & kSharedOffset;
      if (!has(".S.S")) add_row(w, access, uniform_pair(i.operands[loads ? 1 : 0]), sync.bytes);
      break;
    }
    default: return;
  }
  if (!known) doubt(index, false);
  if (access.lines) {
    sync.access = static_cast<uint32_t>(w.stream.accesses.size());
    w.stream.accesses.push_back(access);
  }
  w.own_step().access = Step::kFirstSync + static_cast<uint32_t>(w.stream.syncs.size());
  w.stream.syncs.push_back(sync);
}

}  // namespace roofgen::sass
