// Arguments that a mutant does the same as its kernel. Each is a proof for all contents of the tensors, but only for
// the launch that was tested: its sizes decide which predicates are always true.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>

#include "lab/mutants/kernel_file.h"

namespace roofgen::mutants {

bool never_traps(const Mutant& m, const Edits& edits) {
  if (m.file) return is_clean(m, edits);
  const auto evaluation = m.kernel->verify_whole_launch(m.kernel->code().with(edits));
  return evaluation && evaluation->verification.passed;
}

namespace {

std::string guard_text(const PtxStmt& s, bool negated) {
  return fmt::format("@{}{} ", s.guard_negated != negated ? "!" : "", s.guard);
}

bool is_copy_to_shared(const PtxStmt& s) { return s.name.starts_with("cp.async.c") && s.operands.size() == 4; }

/// A copy whose zero fill nobody needs, by an argument below.
bool needs_no_zeros(const Mutant& m, const PtxStmt& copy) {
  return is_copy_to_shared(copy) &&
         !arguments_for(*m.kernel, "zero fill ignored", m.kernel->template_line(copy), copy).empty();
}

}  // namespace

bool is_never_executed(const Mutant& m, const PtxStmt& s) {
  return never_traps(m, {{&s, (s.guard.empty() ? "" : guard_text(s, false)) + "trap; " + to_text(s)}});
}

bool is_never_true(const Mutant& m) {
  const PtxStmt& s = *m.statement;
  if (!s.guard.empty())
    return never_traps(m, {{&s, guard_text(s, m.rule == "predicate negated") + "trap; " + to_text(s)}});
  if (!s.name.starts_with("setp")) return false;
  return never_traps(m, {{&s, fmt::format("{} @{} trap; ", to_text(s), s.operands[0].name)}});
}

namespace {

/// Runs the kernel and its mutant side by side: each register that the changed value reaches has a twin with the
/// original's value. Where such a value decides anything, the two must agree.
class SideBySide {
 public:
  SideBySide(const Mutant& m) : m_(m), code_(m.kernel->code()) {
    reached_.insert(m.statement->operands[0].name);
    for (bool more = true; more;) {
      more = false;
      for (const PtxStmt& s : code_.body())
        if (reads_reached(s) && is_copyable(s)) more |= reached_.insert(s.operands[0].name).second;
    }
  }

  Edits edits() const {
    Edits out;
    std::string declared = ".reg .pred %mutant_differs; ";
    for (const std::string_view name : reached_)
      declared += fmt::format(".reg {} {}; ", type_text(code_.type_of(name)), twin(name));
    for (const PtxStmt& s : code_.body()) {
      if (s.kind != PtxStmt::Kind::kInstruction) continue;
      std::string text = std::exchange(declared, "");
      if (&s == m_.statement) {
        text += with_twins(s) + " " + m_.after;
      } else if (is_copyable(s) && reached_.count(s.operands[0].name)) {
        text += with_twins(s) + " " + to_text(s);
      } else if (needs_no_zeros(m_, s) && reached_in(s) == std::vector{s.operands[3].name}) {
        text += to_text(s);
      } else if (may_fall_through(s)) {
        const auto goes = [&](std::string_view guard) {
          return fmt::format("{} %mutant_differs, {}; ", s.guard_negated ? "not.pred" : "mov.pred", guard);
        };
        text += goes(s.guard) +
                fmt::format("@%mutant_differs {} %mutant_differs, {}; @%mutant_differs trap; ",
                            s.guard_negated ? "mov.pred" : "not.pred", twin(s.guard)) +
                to_text(s);
      } else {
        for (const std::string_view name : reached_in(s)) text += compare(name);
        text += to_text(s);
        if (has_result(s))
          for (const std::string_view name : registers_in(s.operands[0]))
            if (reached_.count(name))
              text += fmt::format(" {}mov{} {}, {};", s.guard.empty() ? "" : guard_text(s, false), mov_type(name),
                                  twin(name), name);
      }
      out[&s] = text;
    }
    return out;
  }

 private:
  static std::string twin(std::string_view name) { return fmt::format("%mutant_{}", name.substr(1)); }
  static std::string type_text(sim::PtxType type) {
    return type.bits == 1 ? ".pred" : fmt::format(".{}{}", type.kind, type.bits);
  }
  std::string mov_type(std::string_view name) const {
    const unsigned bits = code_.type_of(name).bits;
    return bits == 1 ? ".pred" : fmt::format(".b{}", bits);
  }

  std::vector<std::string_view> reached_in(const PtxStmt& s) const { return read_of(reached_, s); }
  bool reads_reached(const PtxStmt& s) const { return !reached_in(s).empty(); }

  /// A branch that the mutant need not take where the kernel does, by an argument below. Only its guard is reached.
  bool may_fall_through(const PtxStmt& s) const {
    if (!s.name.starts_with("bra") || !reached_.count(s.guard)) return false;
    const auto dropped = arguments_for(*m_.kernel, "branch dropped", m_.kernel->template_line(s), s);
    return std::any_of(dropped.begin(), dropped.end(), [](const Argument* a) { return !a->never; });
  }

  /// An operation of one lane on values that no tensor decides.
  bool is_copyable(const PtxStmt& s) const {
    if (!has_result(s) || !s.guard.empty() || s.operands[0].kind != PtxOperand::Kind::kName ||
        !s.operands[0].second.empty() || code_.type_of(s.operands[0].name).bits == 0)
      return false;
    for (const char* other : {"ld", "shfl", "vote", "match", "atom", "mma", "wmma", "ldmatrix", "cvta"})
      if (s.name.starts_with(std::string(other) + ".") && !s.name.starts_with("ld.param.")) return false;
    for (size_t i = 1; i < s.operands.size(); ++i)
      for (const std::string_view name : registers_in(s.operands[i]))
        if (code_.depends_on_data(name)) return false;
    return true;
  }

  PtxOperand with_twin(PtxOperand o) const {
    if (reached_.count(o.name)) o.name = keep(twin(o.name));
    for (PtxOperand& item : o.items) item = with_twin(item);
    return o;
  }
  std::string with_twins(const PtxStmt& s) const {
    PtxStmt copy = s;
    for (PtxOperand& o : copy.operands) o = with_twin(o);
    return to_text(copy);
  }
  std::string compare(std::string_view name) const {
    const std::string test = code_.type_of(name).bits == 1 ? "xor.pred" : "setp.ne" + mov_type(name);
    return fmt::format("{} %mutant_differs, {}, {}; @%mutant_differs trap; ", test, name, twin(name));
  }

  const Mutant& m_;
  const Code& code_;
  std::set<std::string_view> reached_;
};

/// The registers of a text, in its order.
std::vector<std::string_view> registers_of(const std::string& text) {
  static const std::regex kRegister("%[a-z]+[0-9]+");
  std::vector<std::string_view> out;
  for (std::sregex_iterator at(text.begin(), text.end(), kRegister), end; at != end; ++at)
    out.push_back(keep(at->str()));
  return out;
}

/// Neither the instruction nor its replacement reads a register that depends on data.
bool is_free_of_data(const Mutant& m) {
  for (const std::string_view name : registers_of(to_text(*m.statement) + m.after))
    if (name != m.statement->operands[0].name && m.code().depends_on_data(name)) return false;
  return true;
}

/// A trap where two values differ; both are registers of the same type, or one is a number.
std::string trap_unless_equal(const Code& code, std::string_view a, const std::string& b) {
  const unsigned bits = code.type_of(a).bits;
  return fmt::format("{{ .reg .pred %mutant_differs; {} %mutant_differs, {}, {}; @%mutant_differs trap; }} ",
                     bits == 1 ? "xor.pred" : fmt::format("setp.ne.b{}", bits), a, b);
}

/// Only registers were changed, and the new ones have the values of the old.
bool same_operands(const Mutant& m) {
  const Code& code = m.kernel->code();
  const std::string before = to_text(*m.statement);
  const auto old_ones = registers_of(before), new_ones = registers_of(m.after);
  static const std::regex kRegister("%[a-z]+[0-9]+");
  if (std::regex_replace(before, kRegister, "%") != std::regex_replace(m.after, kRegister, "%")) return false;
  std::string traps;
  for (size_t i = 0; i < old_ones.size(); ++i) {
    if (old_ones[i] == new_ones[i]) continue;
    if (code.depends_on_data(old_ones[i]) || code.depends_on_data(new_ones[i])) return false;
    if (code.type_of(old_ones[i]).bits != code.type_of(new_ones[i]).bits) return false;
    traps += trap_unless_equal(code, old_ones[i], std::string(new_ones[i]));
  }
  return never_traps(m, {{m.statement, traps + before}});
}

/// The new register was copied from the old one, with no branch and no other writer in between.
bool is_copy(const Mutant& m) {
  const std::vector<PtxStmt>& body = m.kernel->code().body();
  const auto old_ones = registers_of(to_text(*m.statement)), new_ones = registers_of(m.after);
  if (m.rule != "neighbouring register" || old_ones.size() != new_ones.size()) return false;
  size_t changed = 0;
  while (changed < old_ones.size() && old_ones[changed] == new_ones[changed]) ++changed;
  if (changed == old_ones.size()) return false;
  for (const PtxStmt* s = m.statement; s-- != body.data();) {
    if (s->kind != PtxStmt::Kind::kInstruction || s->name.starts_with("bra")) return false;
    if (!has_result(*s)) continue;
    for (const std::string_view name : registers_in(s->operands[0])) {
      if (name == new_ones[changed])
        return s->name.starts_with("mov.") && s->operands[1].name == old_ones[changed] && s->guard.empty();
      if (name == old_ones[changed]) return false;
    }
  }
  return false;
}

/// A selection whose changed source is never the selected one.
bool is_never_selected(const Mutant& m) {
  const PtxStmt& s = *m.statement;
  if (!s.name.starts_with("selp") || m.kernel->code().depends_on_data(s.operands[3].name)) return false;
  const bool first = m.after.find(fmt::format(", {}, ", to_text(s.operands[1]))) == std::string::npos;
  const bool second =
      m.after.find(fmt::format(", {}, {};", to_text(s.operands[2]), s.operands[3].name)) == std::string::npos;
  return first != second &&
         never_traps(m, {{&s, fmt::format("@{}{} trap; {}", first ? "" : "!", s.operands[3].name, to_text(s))}});
}

}  // namespace

static bool is_called_by(const Kernel& kernel, const PtxStmt& s, const std::string& text) {
  const std::vector<Where> calls = kernel.callers(s);
  return std::any_of(calls.begin(), calls.end(),
                     [&](const Where& call) { return std::regex_search(kernel.text_of(call), std::regex(text)); });
}

static const std::vector<Argument>& arguments() {
  static const std::vector<Argument> kArguments = {
      // Work that may be left out, or done twice.
      {"(branch|guard) dropped", "attention/online_softmax.cuh", "if \\(rescale\\)",
       "rescaling is right where none is needed"},
      {"float constant doubled|comparison off by one|add for multiply|operation dropped",
       "attention/online_softmax.cuh", "exceeds.*kMaxLag", "lazy rescaling may begin at any lag that p can represent"},
      {"branch dropped|comparison off by one", "attention/.*",
       R"(< (tiles|steps)\)? load|steps > 0\)? load|loader.more\(\)\) loader)", "a tile is loaded that no step reads"},
      {"branch dropped", "attention/pointwise.cu.jinja", R"(if \(here\[i\]\) piece)",
       "a piece is loaded that is not used"},
      {"branch dropped", "attention/pointwise.cu.jinja", R"(if \(here\[i\]\) \{|if \(!here\[i\]\) continue)",
       "a piece that the mask hides is written as -inf", false, "mask$"},
      {"sign lost", "attention/softmax.cu.jinja", R"(valid > 2 \* i)", "no score is loaded where no key is left"},
      {"comparison (negated|off by one)|operands exchanged", "attention/softmax.cu.jinja", R"(valid > 2 \* i)",
       "the mask hides the keys past the end, too, and only the last piece, of three keys, is incomplete", false,
       "mask.softmax$"},
      {"float constant doubled", "attention/softmax.cu.jinja", "i < kChunks", "a row without a piece stores nothing",
       false, "mask.softmax$", "^mov.f32"},
      {"constant off by one", "(attention/.*)?", "", "the largest negative number rounds to -inf", false, "mask",
       "-8388608"},
      {"add for sub|operation dropped", "attention/softmax.cu.jinja", R"(sum \+= )", "the sum starts at 0", false, "",
       R"(^(add|sub)\.f32 .*, 0f00000000;)"},
      {"float constant doubled", "attention/softmax.cu.jinja", R"(== neg_inf\(\))",
       "a row without a key has no piece, and a maximum of 0 gives the same shift", false, "unfused", "^(setp|mov)"},
      {"zero fill ignored", "lib/async_copy.cuh", "", "scores that a row does not see are masked after the load", false,
       "softmax.pv", "", false, 0},
      {"branch dropped|constant off by one", "attention/softmax.cu.jinja", R"(needed(\(i\)| = ))",
       "scores beyond the row's keys are -inf"},
      {"constant off by one|comparison off by one|sign lost|branch dropped", "attention/softmax.cu.jinja",
       R"(valid > 0\) data)", "scores beyond the row's keys become -inf after the load"},
      {"comparison off by one", "attention/softmax.cu.jinja", "first >= keys", "no key is left either way"},
      {"branch dropped", "attention/fused(.cu.jinja|_tile.cuh)", R"(row0 >= q_len|tile.empty\(\))",
       "rows beyond a short sequence are not written"},
      {"min for max|operation dropped", "attention/.*", R"(min\(row0 \+ BM, q_len\))",
       "tiles are computed that no row sees: their scores are hidden"},
      {"min for max", "attention/pointwise.cu.jinja", R"(min\(key \+ 8, kv_len\))",
       "a piece is taken for partly visible, and each of its elements is judged"},
      {"comparison off by one", "gemm/gemm.cu.jinja", R"(while \(k_left >)", "one more step multiplies zeros"},
      {"min for max", "lib/row_slice.cuh", "full_end\\(max", "full groups are loaded element by element"},
      {"branch dropped|comparison .*|sign lost", "rows/rows.cu.jinja", R"(holds\(step\)\) continue)",
       "terms of groups beyond the row are neutral"},
      {"branch dropped", "lib/row_slice.cuh", R"(if \(full\(step\)\))",
       "full groups are loaded and stored element by element", false, "", "^@%"},
      {"predicate negated", "lib/row_slice.cuh", R"(if \(full\(step\)\))",
       "all groups are full, and loaded and stored element by element", false, "", "^@%", true},
      {"constant off by one", "attention/modifiers.cuh.jinja", "block >= tiles",
       "tiles past the last one are not loaded"},
      {"guard dropped|predicate negated", "attention/(softmax_pv.cu.jinja|(every_tile|visible_tiles).cuh)",
       R"(j < unmasked|number < tile.unmasked|(here|visible).whole\))", "a masked step is right for every tile"},
      {"min for max", "attention/scores.cu.jinja", R"(min\(kv_len, key0 \+ kStrip \* BN\))",
       "tiles of the next strip are computed twice, and those past the end are not written"},
      {"min for max", "attention/(row_tile.cuh|(pv|softmax_pv).cu.jinja)", R"(min\(steps, max\(0)",
       "tiles are computed that no row sees"},
      {"constant off by one|shift the other way", "lib/math.cuh", "int ceil_div",
       "one more tile is computed, which no row sees", false, "^attention"},
      {"branch dropped", "attention/(softmax|pointwise).cu.jinja", R"(visible_part|\.all|first >= keys|whole\[i\])",
       "elements of a visible piece are judged one by one"},
      {"barrier dropped", "gemm/gemm.cu.jinja",
       "sync_warps = ", "row totals lie behind the tiles, where no warp has written before", false, "reduces"},
      {"wait dropped|wait for one group less", "lib/async_copy.cuh", "wait_group",
       "the copies that are pending behind the loop write zeros behind the staging area", false, "^grouped gemm$",
       "wait_group 0"},
      // The same result by another way.
      {"constant off by one", "lib/(math|row_reduce).cuh", "__shfl_xor_sync", "the lanes still span the warp"},
      {"predicate negated|constant off by one|comparison negated|branch dropped", "lib/row_reduce.cuh",
       R"(lane == 0\) slots|lane = threadIdx.x % 32)", "all lanes of a warp have the same total"},
      {"predicate negated|branch dropped|other bit operation", "gemm/row_totals.cuh", R"(lane % 4 == 0\) rows)",
       "the lanes of a quad have the same total"},
      {"predicate negated|branch dropped|other bit operation", "attention/store_output.cuh",
       R"(lane % 4 == 0 && tile.rows.used)",
       "the lanes of a quad have the same sum; rows past the end would be out of bounds", false,
       "^attention( causal| modified)?$"},
      {"branch dropped|(comparison|predicate) negated", "attention/softmax.cu.jinja", R"(lane == 0 && row < q_len)",
       "the threads of a row have the same sum; rows past the end would be out of bounds"},
      {"(comparison|predicate) negated", "rows/rows.cu.jinja", R"(lane == 0 && at\[r\].count > 0)",
       "the threads of a row have the same totals; rows past the end would be out of bounds"},
      {"constant off by one", "gemm/row_totals.cuh", "step < 4; step", "the lanes still span the quad"},
      {"wrong axis", "rows/rows.cu.jinja", R"(threadIdx.x % kRowThreads)", "the threads of a row have the same totals"},
      {"float constant doubled", "(attention/(online_softmax.cuh|softmax.cu.jinja)|lib/row_reduce.cuh)",
       R"(== neg_inf\(\) \? 0.0f)", "e^-inf is 0, whatever is subtracted", false, "", "^selp"},
      {"float constant doubled", "attention/online_softmax.cuh", R"(== neg_inf\(\))",
       "every row of these sees a key, and a maximum of 0 gives the same shift", false, "", "^setp", true},
      {"float constant doubled", "attention/softmax.cu.jinja", R"(float m = neg_inf|auto needed)",
       "rows without a key have no first score, and 0 gives the same shift", false, "", "^mov"},
      {"float constant doubled", "attention/(store_output.cuh|softmax_pv.cu.jinja)", R"(bool empty =)",
       "O is 0 without a key", false, "", "^mov"},
      {"branch dropped", "attention/(store_output.cuh|softmax_pv.cu.jinja)", R"(empty \? 0.0f)",
       "every row of these sees a key", false, "", "", true},
      {"float constant doubled", "attention/every_tile.cuh", "number < tile.unmasked",
       "the first rescaling multiplies by e^-inf", false, "", "^mov"},
      {"operation dropped", "lib/warp_tile.cuh", R"(factor\[i\]\[h\])", "the factor of products is 1", false, "qk$"},
      {"vector elements exchanged", "lib/mma.cuh", "", "the first product is added to zeros", false, "", "^mma"},
      {"zero fill ignored", "lib/async_copy.cuh", "", "an integer times the other operand's 0 is 0", false, "int8"},
      {"zero fill ignored|branch dropped|other bit operation|operation dropped", "lib/(async_copy|operand_copy).cuh",
       "", "columns past the end of a line are not stored, and lines past the last one are out of bounds", false,
       "gemm odd"},
      {"float constant doubled", "(rows/rows.cu.jinja|lib/pointwise.cuh)", "Reduction::neutral|fmaxf|max",
       "0 is neutral in a maximum of magnitudes", false, "quanti"},
      {"float constant doubled|operation dropped", "lib/pointwise.cuh", R"(min.nan|min_nan|min.NaN)",
       "the argument of e^x is never positive", false, "softmax"},
      {"float constant doubled", "attention/online_softmax.cuh", R"(== neg_inf\(\))",
       "every row sees a key, and a maximum of 0 gives the same shift", false, "^attention$"},
      // Order.
      {"order relaxed", "lib/barrier.cuh", "", "who expects bytes has written nothing for the others", false, "",
       "^mbarrier.arrive.expect_tx"},
      {"order relaxed", "lib/barrier.cuh", "", "the producer has written nothing for the others", false, "", "", false,
       -1, R"(barrier_arrive\(q_landed\))"},
      {"order relaxed", "lib/barrier.cuh", "", "the next tile's wait for its place of Q comes after this arrival",
       false, "", "", false, -1, R"(\(kSeveral\) consumer.release_v)"},
      {"order relaxed|phase not waited for|wait without repetition", "lib/barrier.cuh", "",
       "nobody has used the first stage before", false, "", "", false, -1, R"(\(!kSeveral\) load_k)"},
      {"half of acq_rel", "lib/arrival.cuh", "", "who stores a part reads nothing after its arrival", false, "", "",
       false, -1, "kNeverLast"},
      {"fence dropped", "lib/wgmma.cuh", "", "nothing has used O or P since the fence before the scores", false, "", "",
       false, -1, R"(consumer.start_values\(o, p\))"},
      {"barrier not waited for", "lib/barrier.cuh", "", "turns order when products start, no data", false, "", "",
       false, -1, R"(turns.wait\(\))"},
      {"another count of stages", "gemm/gemm.cu.jinja", R"(while \(k_left > )",
       "one more step multiplies zeros that copies past the end have left", false, "", "-32;$"},
      {"wait dropped|wait for one group less|warp barrier dropped", "lib/(tensor_copy|tensor_stage).cuh", "",
       "each slab of the staging area is used once", false, "gated"},
      // Accuracy.
      {"vector elements exchanged", "lib/(math|convert).cuh", "", "the terms of a total in another order", true,
       "softmax|norm"},
      {"vector elements exchanged", "gemm/row_totals.cuh", "w < kWarpsN", "the parts of a total in another order",
       true},
      {"operation dropped", "lib/math.cuh", "0xffff0000u",
       "the lower half adds less than the last bit of bf16, the error of the stored input", true, "unfused"},
      {"neighbouring register|operands exchanged|operation dropped|float constant doubled", "lib/pointwise.cuh",
       R"(float lost =|lost\))", "the lost bits of an exponent, below the bound of e^x", true, "softmax"},
      {"float constant doubled", "lib/pointwise.cuh", "min.NaN", "the function is constant beyond the limit", true,
       "gemm"},
      {"constant off by one", "lib/math.cuh", "0xffff0000u", "the last bit of an fp32 number", true},
      {"constant off by one", "attention/softmax.cu.jinja", "kNegInfPair|neg_inf", "e^-3e38 is 0 as well", true},
      {"comparison .*|float constant doubled|operation dropped", "lib/pointwise.cuh", "return tanhf",
       "both of CUDA's formulas hold around the threshold", true},
  };
  return kArguments;
}

std::vector<const Argument*> arguments_for(const Kernel& kernel, const std::string& rule, const Where& where,
                                           const PtxStmt& before) {
  std::vector<const Argument*> out;
  for (const Argument& a : arguments())
    if (std::regex_match(rule, std::regex(a.rule)) && std::regex_match(where.file, std::regex(a.file)) &&
        std::regex_search(kernel.text_of(where), std::regex(a.line)) &&
        std::regex_search(kernel.name(), std::regex(a.kernel)) &&
        std::regex_search(to_text(before), std::regex(a.before)) &&
        (a.tensor < 0 || (is_copy_to_shared(before) && kernel.code().parameters_in(before.operands[1].name) ==
                                                           std::set<size_t>{static_cast<size_t>(a.tensor)})) &&
        (!*a.caller || is_called_by(kernel, before, a.caller)))
      out.push_back(&a);
  return out;
}

static std::string with_one_arrival_more(const PtxStmt& init) {
  PtxStmt copy = init;
  copy.operands[1] = {};
  copy.operands[1].name = "%mutant_count";
  return fmt::format("{{ .reg .b32 %mutant_count; add.s32 %mutant_count, {}, 1; {} }}", to_text(init.operands[1]),
                     to_text(copy));
}

/// A scope of one CTA has all threads of the launch in it (PTX ISA, "Scope").
static bool is_alone(const Mutant& m) { return m.file && m.file->request.grid.count() == 1; }

/// Of a mutant of order. That values agree proves nothing here: they are those of one order.
static std::string order_equivalence(const Mutant& m) {
  const Code& code = m.code();
  // A wait that sleeps until its phase has ended never executes the branch behind it.
  const PtxStmt* wait = m.statement->name.starts_with("bra") ? wait_before(code, *m.statement) : nullptr;
  const PtxStmt& s = wait ? *wait : *m.statement;
  // The data of a file is part of its launch. Sizes alone decide how many tiles of scores are masked.
  const bool of_data = !m.file && (code.is_under_data(s) || (!s.guard.empty() && code.depends_on_data(s.guard))) &&
                       !is_called_by(*m.kernel, s, "next >= unmasked");
  if (!of_data && is_never_executed(m, s)) return "the launch never executes it";
  if (m.rule == "scope narrowed" && is_alone(m)) return "the launch has one CTA";
  if (m.rule == "another count of stages" && is_free_of_data(m) && never_traps(m, SideBySide(m).edits()))
    return "the same effect in every thread of the launch";
  // The simulator lands copies and ends products at the last moment, so one run stands for all.
  static const std::regex kGroups(R"(^(cp\.async\.(wait|commit)|wgmma\.(wait|commit)))");
  const bool group = std::regex_search(std::string(s.name), kGroups);
  if (group && never_traps(m, {{&s, m.after}}))
    return "every copy has landed before its bytes are used, in every CTA of the launch";
  // A wait for an mbarrier counts for all lanes of its warp (docs/use/check-limits.md), so a run proves nothing there.
  if (m.rule == "warp barrier dropped" && code.ptx().find("mbarrier") == std::string::npos &&
      never_traps(m, {{&s, m.after}}))
    return "other barriers order the accesses of the lanes, in every CTA of the launch";
  // Which warps meet at a barrier of the CTA is decided for all orders of the warps (docs/use/findings.md).
  if (m.rule == "another barrier" && never_traps(m, {{&s, m.after}}))
    return "the same warps meet under the other number";
  // An arrival counts and releases for the waits of its phase alone. Without it these would never end.
  const bool arrives = s.name.starts_with("mbarrier.arrive.") && s.name.find("expect_tx") == std::string_view::npos;
  if (arrives && !of_data && never_traps(m, {{&s, ";"}})) return "the launch waits for no phase with this arrival";
  // By hand, of tests/check/right and today: none has threads that each write a word and then read the other's, which
  // is what fence.sc is for (PTX ISA, "Fence-SC"), and whoever expects bytes has written nothing for those who wait.
  if (m.file && m.rule == "fence not sequential") return "no two threads each write a word and read the other's";
  if (m.file && m.rule == "order relaxed" && s.name.starts_with("mbarrier.arrive.expect_tx"))
    return "who expects bytes has written nothing for the others";
  // With one arrival more than there are, no phase of the mbarrier ends.
  if (s.name.starts_with("mbarrier.init") && never_traps(m, {{&s, with_one_arrival_more(s)}}))
    return "the launch waits for no phase of this mbarrier";
  return "";
}

std::string equivalence(const Mutant& m) {
  if (m.group == Group::kOrder) return order_equivalence(m);
  const PtxStmt& s = *m.statement;
  const Code& code = m.kernel->code();
  const bool one_result =
      has_result(s) && s.operands[0].kind == PtxOperand::Kind::kName && s.operands[0].second.empty();
  if (one_result && code.is_dead(s.operands[0].name)) return "no instruction reads the result";
  // What follows depends on sizes, thread and CTA only.
  const bool guarded = !s.guard.empty();
  if (is_copy(m)) return "the register is a copy of the other";
  if (code.is_under_data(s) || (guarded && code.depends_on_data(s.guard))) return "";
  if (is_never_executed(m, s)) return "the launch never executes it";
  if (m.rule == "branch dropped" && never_traps(m, {{&s, guard_text(s, false) + "trap; " + to_text(s)}}))
    return "the launch never takes the branch";
  if (m.rule == "guard dropped" && never_traps(m, {{&s, guard_text(s, true) + "trap; " + to_text(s)}}))
    return "the guard is always true in the launch";
  if (m.rule == "zero fill ignored" && !code.depends_on_data(s.operands[3].name) &&
      never_traps(m,
                  {{&s, trap_unless_equal(code, s.operands[3].name, std::to_string(s.operands[2].bits)) + to_text(s)}}))
    return "the copy is always complete in the launch";
  if (needs_no_zeros(m, s) && (m.rule == "copy dropped" || m.rule == "smaller vector") &&
      never_traps(m, {{&s, trap_unless_equal(code, s.operands[3].name, "0") + to_text(s)}}))
    return "the copy writes zeros only, and nobody needs them";
  if (is_never_selected(m)) return "the changed source is never selected in the launch";
  if (same_operands(m)) return "the registers have the same values in the launch";
  if ((m.rule == "wait dropped" || m.rule == "wait for one group less" || m.rule == "commit dropped") &&
      never_traps(m, {{&s, m.after}}))
    return "every copy has landed before its bytes are used, in every CTA of the launch";
  if (m.rule == "warp barrier dropped" && never_traps(m, {{&s, m.after}}))
    return "other barriers order the accesses of the lanes, in every CTA of the launch";
  if (one_result && !guarded && is_free_of_data(m) && never_traps(m, SideBySide(m).edits()))
    return "the same effect in every thread of the launch";
  return differs_in_unused_bits(m) ? "no thread of the launch uses the bits that differ" : "";
}

}  // namespace roofgen::mutants
