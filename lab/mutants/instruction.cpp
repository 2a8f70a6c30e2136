#include "lab/mutants/instruction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <regex>
#include <stdexcept>

#include "runtime/sim/ptx_parser.h"

namespace roofgen::mutants {
namespace {

/// The statement's bytes in the text, from its guard to its semicolon.
std::pair<size_t, size_t> place_of(std::string_view text, const PtxStmt& s) {
  size_t begin = static_cast<size_t>(s.name.data() - text.data());
  if (!s.guard.empty()) begin = text.rfind('@', static_cast<size_t>(s.guard.data() - text.data()));
  return {begin, text.find(';', begin) + 1};
}

}  // namespace

std::string_view keep(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> kept;
  const std::lock_guard lock(mutex);
  return *kept.insert(std::move(text)).first;
}

std::string to_text(const PtxOperand& o) {
  const auto offset = [&] { return o.bits == 0 ? std::string() : fmt::format("+{}", static_cast<int64_t>(o.bits)); };
  std::vector<std::string> items;
  for (const PtxOperand& item : o.items) items.push_back(to_text(item));
  switch (o.kind) {
    case PtxOperand::Kind::kName:
      return fmt::format("{}{}{}{}{}", o.negated ? "!" : "", o.name, offset(), o.second.empty() ? "" : "|", o.second);
    case PtxOperand::Kind::kInteger: return fmt::format("{}", static_cast<int64_t>(o.bits));
    case PtxOperand::Kind::kFloat:
      return o.float_bits == 64 ? fmt::format("0d{:016X}", o.bits) : fmt::format("0f{:08X}", o.bits & 0xffffffff);
    case PtxOperand::Kind::kVector: return fmt::format("{{{}}}", fmt::join(items, ", "));
    case PtxOperand::Kind::kList: return fmt::format("({})", fmt::join(items, ", "));
    case PtxOperand::Kind::kAddress: break;
  }
  const std::string base = o.name.empty() ? std::to_string(o.bits) : std::string(o.name) + offset();
  return fmt::format("[{}{}{}]", base, items.empty() ? "" : ", ", fmt::join(items, ", "));
}

std::string to_text(const PtxStmt& s) {
  std::vector<std::string> operands;
  for (const PtxOperand& o : s.operands) operands.push_back(to_text(o));
  const std::string guard = s.guard.empty() ? "" : fmt::format("@{}{} ", s.guard_negated ? "!" : "", s.guard);
  return fmt::format("{}{}{}{};", guard, s.name, operands.empty() ? "" : " ", fmt::join(operands, ", "));
}

std::vector<std::string_view> registers_in(const PtxOperand& o) {
  std::vector<std::string_view> out;
  for (const std::string_view name : {o.name, o.second})
    if (name.starts_with('%')) out.push_back(name);
  for (const PtxOperand& item : o.items)
    for (const std::string_view name : registers_in(item)) out.push_back(name);
  return out;
}

bool has_result(const PtxStmt& s) {
  if (s.operands.empty() || s.operands[0].kind == PtxOperand::Kind::kAddress) return false;
  for (const char* none : {"st", "bra", "bar", "barrier", "cp", "red", "call", "membar", "fence", "griddepcontrol"})
    if (s.name == none || s.name.starts_with(std::string(none) + ".")) return false;
  return true;
}

std::vector<std::string_view> read_of(const std::set<std::string_view>& registers, const PtxStmt& s) {
  std::vector<std::string_view> out;
  if (s.kind != PtxStmt::Kind::kInstruction) return out;
  if (registers.count(s.guard)) out.push_back(s.guard);
  for (size_t i = has_result(s) ? 1 : 0; i < s.operands.size(); ++i)
    for (const std::string_view name : registers_in(s.operands[i]))
      if (registers.count(name)) out.push_back(name);
  return out;
}

std::string with_percent(std::string ptx) {
  static const std::regex kDeclared(R"(\.reg \.\w+ (\w[\w, ]*);)"), kName(R"(\w+)");
  std::set<std::string> names;
  for (std::sregex_iterator at(ptx.begin(), ptx.end(), kDeclared), end; at != end; ++at) {
    const std::string list = at->str(1);
    for (std::sregex_iterator name(list.begin(), list.end(), kName); name != end; ++name) names.insert(name->str());
  }
  if (names.empty()) return ptx;
  return std::regex_replace(ptx, std::regex(fmt::format(R"(([ ,{{\[@!])({})\b)", fmt::join(names, "|"))), "$1%$2");
}

Code::Code(std::string ptx, const std::vector<size_t>& sizes, const std::string& kernel)
    : ptx_(with_percent(std::move(ptx))) {
  auto parsed = sim::parse_ptx(ptx_, "kernel.ptx");
  if (!parsed) throw std::runtime_error(to_string(parsed.error()));
  module_ = std::move(*parsed);
  for (size_t i = 0; i < module_.functions.size(); ++i)
    if (kernel.empty() || (module_.functions[i].name == kernel && module_.functions[i].defined)) function_ = i;
  for (const PtxStmt& s : body()) {
    if (s.kind != PtxStmt::Kind::kInstruction) continue;
    if (!s.guard.empty()) readers_[s.guard].push_back(&s);
    for (size_t i = 0; i < s.operands.size(); ++i)
      for (const std::string_view name : registers_in(s.operands[i]))
        (i == 0 && has_result(s) ? writers_ : readers_)[name].push_back(&s);
  }
  trace_data(sizes);
}

std::string Code::with(const std::map<const PtxStmt*, std::string>& replacements) const {
  std::string out;
  size_t done = 0;
  for (const auto& [statement, text] : replacements) {  // in the order of the text, in which they lie in memory
    const auto [begin, end] = place_of(ptx_, *statement);
    out += ptx_.substr(done, begin - done) + text;
    done = end;
  }
  return out + ptx_.substr(done);
}

std::string Code::printed() const {
  std::map<const PtxStmt*, std::string> all;
  for (const PtxStmt& s : body())
    if (s.kind == PtxStmt::Kind::kInstruction) all[&s] = to_text(s);
  return with(all);
}

sim::PtxType Code::type_of(std::string_view name) const {
  for (const PtxStmt& s : body()) {
    if (s.kind != PtxStmt::Kind::kReg || !name.starts_with(s.name)) continue;
    const std::string number(name.substr(s.name.size()));
    if (s.count == 0 ? number.empty()
                     : !number.empty() && number.find_first_not_of("0123456789") == std::string::npos &&
                           std::stoull(number) < s.count)
      return s.type;
  }
  return {0, 0};
}

uint64_t Code::max_threads() const {
  const sim::PtxFunction& f = function();
  const auto& most = f.reqntid[0] ? f.reqntid : f.maxntid;
  uint64_t out = most[0];
  for (const int i : {1, 2}) out *= std::max(1u, most[i]);
  return out;
}

/// Marks what depends on data, until nothing is added.
void Code::trace_data(const std::vector<size_t>& sizes) {
  // Registers with addresses of lengths.
  std::set<std::string_view> of_sizes;
  for (const size_t i : sizes) of_sizes.insert(params()[i].name);
  const auto reads = [](const PtxStmt& s, const std::set<std::string_view>& names) {
    bool found = !s.guard.empty() && names.count(s.guard);
    for (size_t i = 1; i < s.operands.size(); ++i) {
      found |= names.count(s.operands[i].name) != 0;
      for (const std::string_view source : registers_in(s.operands[i])) found |= names.count(source) != 0;
    }
    return found;
  };
  const auto loads = [](const PtxStmt& s) {
    for (const char* opcode : {"ld.", "atom.", "mma.", "wmma.", "ldmatrix."})
      if (s.name.starts_with(opcode) && !s.name.starts_with("ld.param.")) return true;
    return false;
  };
  for (bool more = !sizes.empty(); more;) {
    more = false;
    for (const auto& [name, writers] : writers_)
      for (const PtxStmt* s : writers) more |= !loads(*s) && reads(*s, of_sizes) && of_sizes.insert(name).second;
  }
  for (bool more = true; more;) {
    more = mark_branches();
    for (const auto& [name, writers] : writers_)
      for (const PtxStmt* s : writers) {
        // Of several writers, data decides which was the last.
        const bool chosen = writers.size() > 1 && under_data_.count(s);
        if (chosen || reads(*s, of_data_) || (loads(*s) && !reads(*s, of_sizes))) more |= of_data_.insert(name).second;
      }
  }
}

/// Marks the statements that a branch on data may skip: those up to its target and, where branches among them lead
/// further down, up to there.
bool Code::mark_branches() {
  bool more = false;
  std::map<std::string_view, size_t> labels;
  for (size_t i = 0; i < body().size(); ++i)
    if (body()[i].kind == PtxStmt::Kind::kLabel) labels[body()[i].name] = i;
  const auto target = [&](const PtxStmt& s) {
    const bool branch = s.kind == PtxStmt::Kind::kInstruction && (s.name == "bra" || s.name.starts_with("bra."));
    const auto label = branch ? labels.find(s.operands[0].name) : labels.end();
    return label == labels.end() ? std::optional<size_t>() : label->second;
  };
  for (size_t i = 0; i < body().size(); ++i) {
    const auto to = target(body()[i]);
    if (!to || body()[i].guard.empty() || !of_data_.count(body()[i].guard)) continue;
    size_t end = std::max(i, *to);
    for (size_t j = std::min(i, *to); j < end; ++j) {
      more |= under_data_.insert(&body()[j]).second;
      if (const auto further = target(body()[j])) end = std::max(end, *further);
    }
  }
  return more;
}

std::set<size_t> Code::parameters_in(std::string_view address) const {
  std::set<size_t> out;
  std::set<std::string_view> seen;
  std::vector<std::string_view> left{address};
  while (!left.empty()) {
    const std::string_view name = left.back();
    left.pop_back();
    const auto writers = writers_.find(name);
    if (type_of(name).bits != 64 || !seen.insert(name).second || writers == writers_.end()) continue;
    for (const PtxStmt* s : writers->second)
      for (size_t i = 1; i < s->operands.size(); ++i) {
        const PtxOperand& o = s->operands[i];
        if (!s->name.starts_with("ld.param."))
          for (const std::string_view source : registers_in(o)) left.push_back(source);
        for (size_t p = 0; s->name.starts_with("ld.param.") && p < params().size(); ++p)
          if (params()[p].name == o.name) out.insert(p);
      }
  }
  return out;
}

}  // namespace roofgen::mutants
