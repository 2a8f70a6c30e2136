// Rules of order: the memory consistency model of the PTX ISA (chapter "Memory Consistency Model"), its fences and
// proxies, and the phases of barriers. Each makes an order weaker, or counts a phase wrongly.
#include <algorithm>
#include <set>

#include "lab/mutants/replace.h"

namespace roofgen::mutants {
namespace {

using Kind = PtxOperand::Kind;

// ---- Semantics and scopes ----------------------------------------------------------------------

/// `.release`, `.acquire` and `.acq_rel` become `.relaxed`. Without a qualifier an mbarrier's arrivals and waits are
/// `.release.cta` and `.acquire.cta`, and `barrier.cluster.arrive` is `.release` (PTX ISA, "mbarrier.arrive",
/// "mbarrier.try_wait", "barrier.cluster"); a wait for the cluster's barrier has no relaxed form.
void relax(const Code&, const PtxStmt& s, Replacements& out) {
  static const std::regex kOrdered(R"(\.(release|acquire|acq_rel)\b)");
  const std::string name(s.name);
  if (std::regex_search(name, kOrdered))
    rename(out, s, std::regex_replace(name, kOrdered, ".relaxed"));
  else if (name.find(".relaxed") != std::string::npos)
    return;
  else if (name.starts_with("mbarrier."))
    rename(out, s, replaced(name, R"((\.shared|\.b64))", ".relaxed.cta$1"));
  else if (name.starts_with("barrier.cluster.arrive"))
    rename(out, s, replaced(name, R"(arrive)", "arrive.relaxed"));
}

/// One half of `.acq_rel`.
void halve_order(const Code&, const PtxStmt& s, Replacements& out) {
  for (const char* half : {".acquire", ".release"}) rename(out, s, replaced(s.name, R"(\.acq_rel)", half));
}

/// An atomic without a scope has that of the GPU (PTX ISA, "atom").
void narrow_scope(const Code&, const PtxStmt& s, Replacements& out) {
  static const std::regex kScope(R"(\.(sys|gpu|cluster)(?!.*::cluster\.(sys|gpu|cluster))\b)");
  const std::string name(s.name);
  if (name.starts_with("membar.")) return rename(out, s, "membar.cta");
  if (name.starts_with("fence.mbarrier_init") || name.starts_with("fence.proxy")) return;
  if (std::regex_search(name, kScope))
    rename(out, s, replaced(name, R"(\.(sys|gpu|cluster)\b)", ".cta"));
  else if ((name.starts_with("atom.") || name.starts_with("red.")) && name.find(".cta") == std::string::npos &&
           name.find("shared") == std::string::npos)
    rename(
        out, s,
        replaced(name, R"(^(atom|red)(\.(relaxed|acquire|release|acq_rel))?)",
                 name.find(".acq") != std::string::npos || name.find(".rel") != std::string::npos ? "$1$2.cta"
                                                                                                  : "$1.relaxed.cta"));
}

/// A strong access becomes a weak one, which races with every other.
void weaken_access(const Code&, const PtxStmt& s, Replacements& out) {
  rename(out, s, replaced(s.name, R"(^(ld|st)\.(volatile|(relaxed|acquire|release)\.(cta|cluster|gpu|sys)))", "$1"));
}

// ---- Fences and proxies ------------------------------------------------------------------------

/// Without sequential consistency: two threads that each write and then read the other's word may both read the old
/// value.
void fence_without_sc(const Code&, const PtxStmt& s, Replacements& out) {
  const std::string name(s.name);
  rename(out, s,
         name.starts_with("fence.") ? replaced(name, R"(\.sc)", ".acq_rel")
         : name == "membar.gl"      ? "fence.acq_rel.gpu"
                                    : replaced(name, "membar", "fence.acq_rel"));
}

/// A proxy fence of one state space, or of another one.
void other_space_of_proxy(const Code&, const PtxStmt& s, Replacements& out) {
  for (const char* space : {".global", ".shared::cta"})
    rename(out, s,
           replaced(s.name, R"(^(fence\.proxy\.async)(\.shared::(cta|cluster)|\.global)?$)",
                    fmt::format("$1{}", space).c_str()));
}

// ---- Barriers ----------------------------------------------------------------------------------

bool is_cta_barrier(std::string_view name) {
  static const std::regex kBarrier(R"(^(bar|barrier)(\.cta)?\.(sync|arrive|red))");
  return std::regex_search(std::string(name), kBarrier);
}

/// The operand with the number of threads; 0: none. A reduction has its result in front and a predicate behind.
size_t count_operand(const PtxStmt& s) {
  const bool reduces = s.name.find(".red") != std::string_view::npos;
  return s.operands.size() > (reduces ? 3 : 1) ? (reduces ? 2 : 1) : 0;
}

/// The instruction with a number in place of an operand, or with a register that a first instruction computes.
void change_operand(const PtxStmt& s, size_t i, const char* operation, int64_t by, Replacements& out) {
  const PtxOperand& o = s.operands[i];
  if (o.kind == Kind::kInteger) {
    const std::string op = operation;
    return add(out, s, [&](PtxStmt& c) {
      uint64_t& bits = c.operands[i].bits;
      bits = op == "xor"   ? bits ^ static_cast<uint64_t>(by)
             : op == "and" ? bits & static_cast<uint64_t>(by)
                           : bits + static_cast<uint64_t>(by);
    });
  }
  if (o.kind != Kind::kName || !o.name.starts_with('%')) return;
  PtxStmt copy = s;
  copy.operands[i].name = "%mutant_operand";
  out.push_back(fmt::format("{{ .reg .b32 %mutant_operand; {}.{} %mutant_operand, {}, {}; {} }}", operation,
                            operation[0] == 'a' && operation[1] == 'd' ? "s32" : "b32", o.name, by, to_text(copy)));
}

/// Another number that the kernel uses; of a number in a register, the next.
void other_barrier(const Code& code, const PtxStmt& s, Replacements& out) {
  const size_t at = s.name.find(".red") != std::string_view::npos ? 1 : 0;
  if (s.operands[at].kind != Kind::kInteger) return change_operand(s, at, "add", 1, out);
  std::set<uint64_t> used;
  for (const PtxStmt& other : code.body())
    if (other.kind == PtxStmt::Kind::kInstruction && is_cta_barrier(other.name) && !other.operands.empty() &&
        other.operands[0].kind == Kind::kInteger)
      used.insert(other.operands[0].bits);
  for (const uint64_t number : used) add(out, s, [&](PtxStmt& c) { c.operands[at].bits = number; });
}

/// One warp more or less. A barrier without a count is one of all threads.
void other_thread_count(const Code& code, const PtxStmt& s, Replacements& out) {
  if (const size_t i = count_operand(s))
    for (const int64_t by : {-32, 32}) change_operand(s, i, "add", by, out);
  else if (const uint64_t threads = code.max_threads(); threads > 32 && s.operands.size() == 1)
    add(out, s, [&](PtxStmt& c) {
      c.operands.push_back(c.operands[0]);
      c.operands[1].kind = Kind::kInteger;
      c.operands[1].bits = threads - 32;
    });
}

/// An arrival that does not wait.
void arrive_only(const Code&, const PtxStmt& s, Replacements& out) {
  if (count_operand(s)) rename(out, s, replaced(s.name, R"(\.sync)", ".arrive"));
}

void halve_mask(const Code&, const PtxStmt& s, Replacements& out) { change_operand(s, 0, "and", 0xffff, out); }

// ---- Phases of mbarriers -----------------------------------------------------------------------

void invert_parity(const Code&, const PtxStmt& s, Replacements& out) {
  if (s.operands.size() > 2) change_operand(s, 2, "xor", 1, out);
}

void other_arrival_count(const Code&, const PtxStmt& s, Replacements& out) {
  if (s.operands.size() > 1)
    for (const int64_t by : {-1, 1}) change_operand(s, 1, "add", by, out);
}

/// 16 bytes are the least that a bulk copy moves.
void other_bytes(const Code&, const PtxStmt& s, Replacements& out) {
  for (const int64_t by : {-16, 16}) change_operand(s, s.operands.size() - 1, "add", by, out);
}

/// An arrival that expects no bytes.
void expect_nothing(const Code&, const PtxStmt& s, Replacements& out) {
  if (!s.name.starts_with("mbarrier.arrive")) return out.push_back(";");
  add(out, s, [&](PtxStmt& c) {
    c.name = keep(replaced(s.name, R"(\.expect_tx)", ""));
    c.operands.pop_back();
  });
}

/// The wait has always succeeded.
void wait_for_nothing(const Code&, const PtxStmt& s, Replacements& out) {
  out.push_back(fmt::format("{}setp.eq.u32 {}, 0, 0;", guard_of(s), s.operands[0].name));
}

/// A branch back to the wait is dropped, and one out of its loop is always taken.
void wait_once(const Code& code, const PtxStmt& s, Replacements& out) {
  if (s.guard.empty() || !wait_before(code, s)) return;
  const auto& body = code.body();
  const auto label = std::find_if(body.begin(), body.end(), [&](const PtxStmt& other) {
    return other.kind == PtxStmt::Kind::kLabel && other.name == s.operands[0].name;
  });
  if (label == body.end()) return;
  if (&*label < &s)
    out.push_back(";");
  else
    add(out, s, [](PtxStmt& c) { c.guard = {}; });
}

// ---- Asynchronous copies -----------------------------------------------------------------------

void wait_for_less(const Code&, const PtxStmt& s, Replacements& out) {
  add(out, s, [](PtxStmt& c) { ++c.operands[0].bits; });
}

/// The number of stages at which a ring begins again: one more or less.
void other_stage_count(const Code&, const PtxStmt& s, Replacements& out) {
  for (size_t i = 1; i < s.operands.size(); ++i)
    if (s.operands[i].kind == Kind::kInteger)
      for (const int64_t by : {-1, 1}) change_operand(s, i, "add", by, out);
}

const std::vector<Rule> kDroppingRules = {
    {"wait for one group less", R"(^(cp\.async\.(bulk\.)?|wgmma\.)wait_group)", nullptr, wait_for_less},
    {"commit dropped", R"(^(cp\.async\.(bulk\.)?|wgmma\.)commit_group)", nullptr, drop, true},
    {"wait dropped", R"(^(cp\.async\.(wait|bulk\.wait)|wgmma\.wait_group|griddepcontrol\.wait))", nullptr, drop, true},
    {"barrier dropped", R"(^(bar|barrier)(\.cta|\.cluster)?\.(sync|red|arrive|wait))", nullptr, drop, true},
    {"warp barrier dropped", R"(^bar\.warp\.sync)", nullptr, drop, true},
    {"fence dropped", R"(^(membar|fence|wgmma\.fence))", nullptr, drop, true},
};

const std::vector<Rule> kOrderRules = {
    {"order relaxed", R"(^(ld|st|atom|red|mbarrier\.(arrive|try_wait|test_wait)|barrier\.cluster\.arrive)\b)", nullptr,
     relax, true},
    {"half of acq_rel", R"(^(atom|red)\b.*\.acq_rel\b)", nullptr, halve_order, true},
    {"scope narrowed", R"(^(ld|st|atom|red|fence|membar|mbarrier)\.)", nullptr, narrow_scope, true},
    {"strong access weakened", R"(^(ld|st)\.(volatile|relaxed|acquire|release)\b)", nullptr, weaken_access, true},
    {"fence not sequential", R"(^(fence\.sc|membar))", nullptr, fence_without_sc, true},
    {"proxy fence of one space", R"(^fence\.proxy\.async)", nullptr, other_space_of_proxy, true},
    {"another barrier", R"(^(bar|barrier)(\.cta)?\.(sync|arrive|red))", nullptr, other_barrier, true},
    {"barrier of other threads", R"(^(bar|barrier)(\.cta)?\.(sync|arrive|red))", nullptr, other_thread_count, true},
    {"barrier not waited for", R"(^(bar|barrier)(\.cta)?\.sync)", nullptr, arrive_only, true},
    {"half of a warp's mask", R"(^bar\.warp\.sync)", nullptr, halve_mask, true},
    {"parity inverted", R"(^mbarrier\.(try|test)_wait\.parity)", nullptr, invert_parity, true},
    {"another count of arrivals", R"(^mbarrier\.init)", nullptr, other_arrival_count, true},
    {"mbarrier not initialised", R"(^mbarrier\.init)", nullptr, drop, true},
    {"other bytes expected", R"(^mbarrier\..*expect_tx)", nullptr, other_bytes, true},
    {"no bytes expected", R"(^mbarrier\..*expect_tx)", nullptr, expect_nothing, true},
    {"arrival dropped", R"(^(cp\.async\.)?mbarrier\.arrive)", nullptr, drop, true},
    {"phase not waited for", R"(^mbarrier\.(try|test)_wait)", nullptr, wait_for_nothing, true},
    {"wait without repetition", R"(^bra\b)", nullptr, wait_once, true},
    {"asynchronous copy dropped", R"(^(cp\.async\.bulk|st\.async|red\.async)(?!.*(commit|wait)))", nullptr, drop, true},
    {"bulk wait for reads only", R"(^cp\.async\.bulk\.wait_group(?!\.read))", "cp.async.bulk.wait_group.read", nullptr,
     true},
    {"another count of stages", R"(^(setp|rem|div)\b)", nullptr, other_stage_count, true, false, "[sS]tages"},
};

}  // namespace

/// By one of the few instructions between.
const PtxStmt* wait_before(const Code& code, const PtxStmt& branch) {
  std::set<std::string_view> from{branch.guard};
  const PtxStmt* first = code.body().data();
  for (const PtxStmt* s = &branch; s-- != first && &branch - s < 12;) {
    if (s->kind != PtxStmt::Kind::kInstruction || !has_result(*s) || !from.count(s->operands[0].name)) continue;
    if (s->name.starts_with("mbarrier.t")) return s;
    for (size_t i = 1; i < s->operands.size(); ++i)
      for (const std::string_view name : registers_in(s->operands[i])) from.insert(name);
  }
  return nullptr;
}

const std::vector<Rule>& dropping_rules() { return kDroppingRules; }
const std::vector<Rule>& order_rules() { return kOrderRules; }

}  // namespace roofgen::mutants
