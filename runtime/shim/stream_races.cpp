#include "runtime/shim/stream_races.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace roofgen::shim {

using sim::kLineBytes;
using sim::LineBits;
using sim::What;

namespace {

// Bounds of what is remembered without a wait of the host: some 32 MiB.
constexpr size_t kMostRecords = 1024, kMostRuns = size_t{1} << 20;

constexpr LineBits kWholeLine{~uint64_t{0}, ~uint64_t{0}};

uint32_t first_byte(LineBits bits) {
  return static_cast<uint32_t>(bits.low ? std::countr_zero(bits.low) : 64 + std::countr_zero(bits.high));
}

}  // namespace

// ---- Footprint -----------------------------------------------------------------------------------------

void Footprint::push(Runs& runs, Run run) {
  if (!runs.empty()) {
    Run& back = runs.back();
    if (back.last == run.first) {  // two rows in one line, the end of `back` and the whole of `run`
      run.bits.add(back.bits);
      if (back.first == back.last) return back.bits = run.bits, void();
      --back.last;
    } else if (back.last + 1 == run.first && back.bits == run.bits) {
      back.last = run.last;
      return;
    }
  }
  runs.push_back(run);
}

void Footprint::add(uint64_t line, What what, LineBits bits) {
  push(runs_[static_cast<size_t>(what)], {line, line, bits});
}

void Footprint::add(const Area& area) {
  Runs& runs = runs_[static_cast<size_t>(area.writes ? What::kWrite : What::kRead)];
  const auto row = [&](uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end;) {
      const uint64_t line = at / kLineBytes, in_line = at % kLineBytes;
      if (in_line == 0 && end - at >= kLineBytes) {
        const uint64_t lines = (end - at) / kLineBytes;
        push(runs, {line, line + lines - 1, kWholeLine});
        at += lines * kLineBytes;
      } else {
        const uint64_t stop = std::min<uint64_t>(kLineBytes, in_line + (end - at));
        push(runs, {line, line, LineBits::of(static_cast<uint32_t>(in_line), static_cast<uint32_t>(stop))});
        at += stop - in_line;
      }
    }
  };
  if (area.width == 0) return;
  for (size_t z = 0; z < area.slices; ++z) {
    const uint64_t slice = area.at + z * area.slice;
    if (area.pitch == area.width) {
      if (area.rows) row(slice, slice + area.rows * area.width);
    } else {
      for (size_t y = 0; y < area.rows; ++y) row(slice + y * area.pitch, slice + y * area.pitch + area.width);
    }
  }
}

std::optional<uint64_t> Footprint::meet(const Runs& a, const Runs& b) {
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    const auto before = [](const Run& run, uint64_t line) { return run.last < line; };
    if (x->last < y->first) {
      x = std::lower_bound(x, a.end(), y->first, before);
    } else if (y->last < x->first) {
      y = std::lower_bound(y, b.end(), x->first, before);
    } else {
      if (const LineBits both = x->bits.common(y->bits); both.any())
        return std::max(x->first, y->first) * kLineBytes + first_byte(both);
      x->last < y->last ? ++x : ++y;
    }
  }
  return std::nullopt;
}

std::optional<Footprint::Conflict> Footprint::conflict(const Footprint& second) const {
  struct Pair {
    What first, second;
  };
  // What a reader gets is the most telling.
  constexpr Pair kPairs[] = {
      {What::kWrite, What::kRead},  {What::kWrite, What::kStrongRead},  {What::kStrongWrite, What::kRead},
      {What::kWrite, What::kWrite}, {What::kWrite, What::kStrongWrite}, {What::kStrongWrite, What::kWrite},
      {What::kRead, What::kWrite},  {What::kRead, What::kStrongWrite},  {What::kStrongRead, What::kWrite},
  };
  for (const Pair& p : kPairs)
    if (const auto at = meet(of(p.first), second.of(p.second)))
      return Conflict{*at, sim::writes(p.first), sim::writes(p.second)};
  return std::nullopt;
}

bool Footprint::signals(const Footprint& second, What what) const {
  return meet(of(What::kStrongWrite), second.of(what)).has_value();
}

void Footprint::forget(uint64_t at, size_t bytes) {
  const uint64_t first = at / kLineBytes, last = (at + bytes - 1) / kLineBytes;
  for (Runs& runs : runs_) std::erase_if(runs, [&](const Run& r) { return r.last >= first && r.first <= last; });
}

size_t Footprint::runs() const {
  size_t n = 0;
  for (const Runs& runs : runs_) n += runs.size();
  return n;
}

// ---- Races ---------------------------------------------------------------------------------------------

void StreamRaces::Kinds::add(StreamOrder::Kind kind, int n) {
  (kind == StreamOrder::Kind::kLegacy ? legacy : kind == StreamOrder::Kind::kBlocking ? blocking : free) += n;
}

StreamRaces::StreamRaces() : names_{std::make_shared<std::string>("the default stream")}, queued_(1) {}

uint32_t StreamRaces::open(StreamOrder::Kind kind, std::string name) {
  const uint32_t n = order_.open(kind);
  if (n >= names_.size()) names_.resize(n + 1), queued_.resize(n + 1);
  names_[n] = std::make_shared<std::string>(std::move(name));
  used_.erase(n);
  return n;
}

void StreamRaces::close(uint32_t stream) { order_.close(stream); }

Item StreamRaces::submit(uint32_t stream) {
  used_.insert(stream);
  const StreamOrder::Point at = order_.submit(stream);
  return {at, order_.clock(stream), nullptr, 0, names_[stream]};
}

void StreamRaces::enqueue(const Item& item) {
  if (queued_[item.at.stream]++ == 0) queues_.add(order_.kind(item.at.stream), 1);
}

void StreamRaces::dequeue(const Item& item) {
  if (--queued_[item.at.stream] == 0) queues_.add(order_.kind(item.at.stream), -1);
}

void StreamRaces::drop_queue() {
  std::fill(queued_.begin(), queued_.end(), 0);
  queues_ = {};
}

bool StreamRaces::is_before(const Record& record, const Item& item) {
  if (record.at == item.at && item.nodes) return (*item.nodes)[item.node][record.node];
  return StreamOrder::is_before(record.at, item.clock);
}

bool StreamRaces::follows(const Item& item) const {
  if (item.nodes) return true;
  Kinds kinds = queues_;
  if (queued_[item.at.stream] == 0) kinds.add(order_.kind(item.at.stream), 1);
  if (kinds.beside()) return true;
  // Work that is submitted later is behind what the host knows.
  if (!order_.host_knows(item.at)) {
    kinds = {};
    for (const uint32_t stream : used_) kinds.add(order_.kind(stream), 1);
    if (kinds.beside()) return true;
    using Kind = StreamOrder::Kind;
    kinds = {order_.kind(item.at.stream) == Kind::kLegacy,
             order_.count_open([](Kind k) { return k == Kind::kBlocking; }),
             order_.count_open([](Kind k) { return k == Kind::kFree; })};
    if (kinds.beside()) return true;
  }
  return std::any_of(records_.begin(), records_.end(), [&](const Record& r) { return !is_before(r, item); });
}

Finding StreamRaces::finding(const Record& first, const Item& item, const Doer& second,
                             const Footprint::Conflict& conflict,
                             const std::function<std::string(uint64_t)>& describe) const {
  const auto where = [](const std::string& stream, bool in_graph) {
    return in_graph ? " in a graph in " + stream : " in " + stream;
  };
  const bool in_graph = first.at == item.at;
  Finding f;
  f.kind = "race";
  f.message = fmt::format("{}{} {} {}, which {}{} {}: no event or synchronisation orders them", second.name,
                          where(*item.stream, in_graph), conflict.second_writes ? second.does : "reads",
                          describe(conflict.address), first.doer.name, where(*first.stream, in_graph),
                          conflict.first_writes ? first.doer.does : "reads");
  f.kernel = second.kernel.empty() ? first.doer.kernel : second.kernel;
  return f;
}

std::vector<Finding> StreamRaces::ran(const Item& item, Doer doer, Footprint footprint,
                                      const std::function<std::string(uint64_t)>& describe) {
  std::vector<Finding> out;
  for (const Record& r : records_) {
    if (is_before(r, item)) continue;
    const auto conflict = r.footprint.conflict(footprint);
    if (!conflict) continue;
    if (r.footprint.signals(footprint, What::kStrongRead)) continue;
    if ((r.doer.has_locks || doer.has_locks) && r.footprint.signals(footprint, What::kStrongWrite)) continue;
    if (told_.emplace(r.doer.name, doer.name).second) out.push_back(finding(r, item, doer, *conflict, describe));
  }
  if (footprint.runs()) keep({item.at, item.node, item.stream, std::move(doer), std::move(footprint)});
  return out;
}

void StreamRaces::keep(Record record) {
  runs_ += record.footprint.runs();
  records_.push_back(std::move(record));
  while (records_.size() > kMostRecords || (runs_ > kMostRuns && records_.size() > 1)) {
    runs_ -= records_.front().footprint.runs();
    records_.pop_front();
    if (overflow_ == Overflow::kNone) overflow_ = Overflow::kNow;
  }
}

bool StreamRaces::overflows() {
  if (overflow_ != Overflow::kNow) return false;
  overflow_ = Overflow::kTold;
  return true;
}

void StreamRaces::forget_known() {
  if (queues_.legacy + queues_.blocking + queues_.free > 0) return;
  std::erase_if(records_, [&](const Record& r) { return order_.host_knows(r.at); });
  runs_ = 0;
  for (const Record& r : records_) runs_ += r.footprint.runs();
  std::erase_if(used_, [&](uint32_t stream) { return order_.host_knows_all(stream); });
}

void StreamRaces::forget_all() {
  records_.clear();
  runs_ = 0;
  used_.clear();
  told_.clear();
}

void StreamRaces::forget(uint64_t at, size_t bytes) {
  for (Record& r : records_) {
    runs_ -= r.footprint.runs();
    r.footprint.forget(at, bytes);
    runs_ += r.footprint.runs();
  }
}

Footprint StreamRaces::of(const sim::AccessHistory& history, const sim::BufferList& buffers, uint64_t workspace) {
  // The history names lines by their slots. A buffer adds to its lines at the end.
  std::erase_if(known_, [](const auto& known) { return known.second.buffer.expired(); });
  for (const auto& buffer : buffers) {
    Known& known = known_[buffer->base];
    std::lock_guard lock(buffer->mutex);
    if (known.buffer.lock() != buffer) known = {buffer, 0};
    for (; known.lines < buffer->lines.size(); ++known.lines) {
      const auto& [line, slot] = buffer->lines[known.lines];
      if (slot >= lines_.size()) lines_.resize(std::max<size_t>(slot + 1, lines_.size() * 2));
      lines_[slot] = buffer->base / kLineBytes + line;
    }
  }
  struct Touched {
    uint64_t line;
    uint32_t slot;
  };
  std::vector<Touched> touched;
  history.any_line([&](uint32_t slot) {
    if (slot < lines_.size() && lines_[slot] != workspace / kLineBytes) touched.push_back({lines_[slot], slot});
    return false;
  });
  std::sort(touched.begin(), touched.end(), [](const Touched& a, const Touched& b) { return a.line < b.line; });
  Footprint out;
  for (const Touched& t : touched) {
    std::array<LineBits, 4> bits{};
    history.any_record(t.slot, [&](const sim::AccessRecord& r) {
      // Atomics of a narrower scope are no better than plain accesses towards another grid.
      const bool is_strong = sim::is_strong(r.what) && r.scope >= sim::MemoryScope::kGpu;
      const What what = is_strong ? r.what : sim::writes(r.what) ? What::kWrite : What::kRead;
      bits[static_cast<size_t>(what)].add(r.bits);
      return false;
    });
    for (size_t what = 0; what < bits.size(); ++what)
      if (bits[what].any()) out.add(t.line, static_cast<What>(what), bits[what]);
  }
  return out;
}

}  // namespace roofgen::shim
