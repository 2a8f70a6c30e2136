// docs/internals/instructions.md: which forms of the PTX ISA the simulator executes. Each form of instruction_forms.txt
// is decoded as the one instruction of a kernel.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/sim/decode.h"
#include "runtime/sim/ptx_parser.h"

namespace roofgen::sim_test::instructions_test {
namespace {

using namespace sim;

/// All texts of a pattern: [x] with and without, (a|b) each; both may hold others.
std::vector<std::string> expanded(std::string_view pattern) {
  const size_t open = pattern.find_first_of("[(");
  if (open == pattern.npos) return {std::string(pattern)};
  size_t close = open, depth = 0;
  std::vector<size_t> bars{open};
  for (; close < pattern.size(); ++close) {
    const char c = pattern[close];
    if (c == '[' || c == '(') ++depth;
    if ((c == ']' || c == ')') && --depth == 0) break;
    if (c == '|' && depth == 1 && pattern[open] == '(') bars.push_back(close);
  }
  bars.push_back(close);
  std::vector<std::string> inside, out;
  if (pattern[open] == '[') inside.emplace_back();
  for (size_t i = 0; i + 1 < bars.size(); ++i)
    for (std::string& text : expanded(pattern.substr(bars[i] + 1, bars[i + 1] - bars[i] - 1)))
      inside.push_back(std::move(text));
  for (const std::string& tail : expanded(pattern.substr(close + 1)))
    for (const std::string& middle : inside) out.push_back(std::string(pattern.substr(0, open)) + middle + tail);
  return out;
}

/// The letter of the registers for a type; 0: it is no type.
char register_of(std::string_view type) {
  static const std::map<std::string_view, char> kLetters = {
      {"pred", 'p'}, {"b8", 'h'},    {"u8", 'h'},    {"s8", 'h'},     {"b16", 'h'},   {"u16", 'h'},
      {"s16", 'h'},  {"f16", 'h'},   {"bf16", 'h'},  {"b32", 'r'},    {"u32", 'r'},   {"s32", 'r'},
      {"f32", 'r'},  {"f16x2", 'r'}, {"u16x2", 'r'}, {"bf16x2", 'r'}, {"s16x2", 'r'}, {"tf32", 'r'},
      {"b64", 'l'},  {"u64", 'l'},   {"s64", 'l'},   {"f64", 'l'},    {"f32x2", 'l'}};
  const auto at = kLetters.find(type);
  return at == kLetters.end() ? 0 : at->second;
}

/// The operands with the registers of the opcode's types.
std::string operands_for(const std::string& opcode, std::string operands) {
  char first = 0, last = 0;
  for (const std::string_view part : split_opcode(opcode))
    if (const char letter = register_of(part)) first = first ? first : letter, last = letter;
  for (const auto& [mark, letter] : {std::pair('@', last), {'^', first}})
    for (size_t at = operands.find(mark); at != operands.npos; at = operands.find(mark))
      operands.replace(at, 1, letter ? std::string("%") + letter : "?");
  return operands == "-" ? "" : operands;
}

enum class Coverage { kExecuted, kOrders, kHint, kNotModelled };

/// What the decoder makes of the instruction; errors that are not about the instruction fail the test.
Coverage coverage_of(const std::string& text) {
  const bool tensor = text.starts_with("tcgen05");
  const std::string ptx = fmt::format(
      ".version 9.0\n.target {}\n.address_size 64\n.visible .entry k(.param .u64 q) {{\n.reg .pred %p<4>;\n"
      ".reg .b16 %h<10>;\n.reg .b32 %r<12>;\n.reg .b64 %l<12>;\n.reg .b128 %q<4>;\n{};\ndone:\nret;\n}}\n",
      text.starts_with("tcgen05.ld.red") ? "sm_103a"
      : tensor                           ? "sm_100a"
                                         : "sm_90a",
      text);
  const Result<PtxModule> module = parse_ptx(ptx, "form.ptx");
  if (!module) {
    ADD_FAILURE() << text << ": " << to_string(module.error());
    return Coverage::kNotModelled;
  }
  const Result<Kernel> kernel = decode_kernel(
      *module, module->functions[0], OpcodeTable::host(), [](const PtxVar&) -> Result<uint64_t> { return kGlobalBase; },
      "form.ptx", NotModelled::kEndsCta);
  if (!kernel) {
    ADD_FAILURE() << text << ": " << to_string(kernel.error());
    return Coverage::kNotModelled;
  }
  if (!kernel->not_modelled.empty()) return Coverage::kNotModelled;
  const Inst& in = kernel->code[0];
  if (in.kind != Kind::kNop) return Coverage::kExecuted;
  return in.sub ? Coverage::kOrders : Coverage::kHint;
}

constexpr const char* kNames[] = {"executed", "orders", "no effect", "not modelled"};
using Forms = std::vector<std::pair<std::string, Coverage>>;

/// "`form` (2 of 4; not `a`, `b`)": a form of which a part is modelled.
std::string partly_text(const std::string& form, const Forms& forms) {
  constexpr size_t kMostNamed = 4;
  std::vector<std::string> missing;
  for (const auto& [name, coverage] : forms)
    if (coverage == Coverage::kNotModelled) missing.push_back(name);
  std::string out = fmt::format("`{}` ({} of {}; not", form, forms.size() - missing.size(), forms.size());
  for (size_t i = 0; i < std::min(kMostNamed, missing.size()); ++i)
    out += fmt::format("{} `{}`", i ? "," : "", missing[i]);
  return out + (missing.size() > kMostNamed ? " and others)" : ")");
}

/// A list item with its entries, in lines of 120 columns where an entry is not longer.
std::string item(const std::string& lead, const std::vector<std::string>& entries) {
  std::string out, line = "- " + lead + ":";
  for (size_t i = 0; i < entries.size(); ++i) {
    std::istringstream words(entries[i] + (i + 1 < entries.size() ? "," : ""));
    for (std::string word; words >> word;) {
      if (line.size() + 1 + word.size() > 120) out += line + "\n", line = " ";
      line += " " + word;
    }
  }
  return out + line + "\n";
}

/// The forms of one section of the page by what becomes of them.
struct Section {
  std::map<std::string, std::vector<std::string>> by;

  void add(const std::string& form, const Forms& forms) {
    const auto same = [&](const auto& each) { return each.second == forms[0].second; };
    if (std::all_of(forms.begin(), forms.end(), same))
      by[kNames[static_cast<int>(forms[0].second)]].push_back("`" + form + "`");
    else
      by["executed in part"].push_back(partly_text(form, forms));
  }
  std::string text() const {
    std::string out;
    for (const char* name : {"executed", "executed in part", "orders", "no effect", "not modelled"})
      if (const auto at = by.find(name); at != by.end()) out += item(name, at->second);
    return out;
  }
};

TEST(Instructions, ThePageSaysWhatIsExecuted) {
  std::ifstream lines(ROOFGEN_SOURCE_DIR "/tests/sim/instruction_forms.txt");
  ASSERT_TRUE(lines);
  std::string sections;
  Section section;
  std::map<Coverage, int> counts;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '=') {
      sections += section.text();
      section = {};
      sections += fmt::format("\n## {}{}\n", static_cast<char>(std::toupper(line[2])), line.substr(3));
      continue;
    }
    const size_t gap = line.find("  ");
    ASSERT_NE(gap, line.npos) << line;
    Forms forms;
    for (const std::string& opcode : expanded(line.substr(0, gap))) {
      forms.emplace_back(opcode, coverage_of(opcode + " " + operands_for(opcode, line.substr(gap + 2))));
      ++counts[forms.back().second];
    }
    // Of moves the operands say what they are.
    section.add(line.starts_with("mov.") ? line.replace(gap, 2, " ") : line.substr(0, gap), forms);
  }
  sections += section.text();
  const std::string page = fmt::format(
      "# Instructions\n\nWhat the simulator does with the instructions of the PTX ISA 9.0 in kernels of sm_90a, as the "
      "decoder answers for each\nform of `tests/sim/instruction_forms.txt`. `[x]`: with and without; `(a|b)`: each. "
      "Types and forms that are absent are\nnot modelled. Of `wgmma` and `wmma` the page has one shape. `tcgen05` is "
      "decoded for sm_100a.\n\n"
      "- **executed** ({} forms): values, memory and checks as in the ISA.\n"
      "- **orders** ({}): fences and groups. No value changes; the checks follow the order.\n"
      "- **no effect** ({}): hints of caches and time.\n"
      "- **not modelled** ({}): `check` ends a CTA that comes there (docs/use/findings.md, `not-modelled`); `run` and "
      "`tune`\n  refuse the kernel.\n{}",
      counts[Coverage::kExecuted], counts[Coverage::kOrders], counts[Coverage::kHint], counts[Coverage::kNotModelled],
      sections);
  const std::string path = ROOFGEN_SOURCE_DIR "/docs/internals/instructions.md";
  if (std::getenv("ROOFGEN_UPDATE_GOLDEN")) std::ofstream(path) << page;
  std::ostringstream committed;
  committed << std::ifstream(path).rdbuf();
  EXPECT_EQ(committed.str(), page) << "ROOFGEN_UPDATE_GOLDEN=1 writes the page anew";
}

}  // namespace
}  // namespace roofgen::sim_test::instructions_test
