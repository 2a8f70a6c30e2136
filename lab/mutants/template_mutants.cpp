// Mutants of the templates: one changed line of a .jinja or .cuh file, compiled again.
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "base/pool.h"
#include "lab/mutants/mutant.h"

namespace roofgen::mutants {
namespace {

struct TextRule {
  const char *name, *from, *to;  ///< a regular expression, and its replacement
  bool orders = false;
};

constexpr TextRule kTextRules[] = {
    {"< to <=", " < ", " <= "},
    {"<= to <", " <= ", " < "},
    {"> to >=", " > ", " >= "},
    {">= to >", " >= ", " > "},
    {"== to !=", " == ", " != "},
    {"+ 1 dropped", R"( \+ 1\b)", ""},
    {"- 1 dropped", R"( - 1\b)", ""},
    {"&& to ||", " && ", " || "},
    {"|| to &&", R"( \|\| )", " && "},
    {"/ to %", " / ", " % "},
    {"% to /", " % ", " / "},
    {"+ to -", R"( \+ )", " - "},
    {"- to +", " - ", " + "},
    {"* to +", R"( \* )", " + "},
    {"+= to =", R"( \+= )", " = "},
    {"*= to =", R"( \*= )", " = "},
    {"min to max", R"(\bmin\()", "max("},
    {"max to min", R"(\bmax\()", "min("},
    {"fmaxf to fminf", R"(\bfmaxf\()", "fminf("},
    {"0.0f to 1.0f", R"(\b0\.0f)", "1.0f"},
    {"1 to 2", R"(\b1\b(?![.]))", "2"},
    {"2 to 1", R"(\b2\b(?![.]))", "1"},
    {"8 to 4", R"(\b8\b(?![.]))", "4"},
    {"true to false", R"(\btrue\b)", "false"},
    {"barrier dropped", R"(__syncthreads\(\);)", ";", true},
    {"warp barrier dropped", R"(__syncwarp\(\);)", ";", true},
    {"wait dropped", R"(cp_async_wait<[^>]*>\(\);)", ";", true},
    {"commit dropped", R"(cp_async_commit\(\);)", ";", true},
};

using Files = std::map<std::string, std::vector<std::string>>;  ///< lines of each template

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

/// The templates that the kernel includes.
Files files_of(const Tools& tools, const Kernel& kernel) {
  Files out;
  const auto rendered = kernel.render([&](std::string_view name) {
    auto text = tools.files.read("templates/" + std::string(name));
    if (!text) return text;
    std::istringstream in(*text);
    std::vector<std::string>& lines = out[std::string(name)];
    lines.clear();
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return text;
  });
  return rendered ? out : Files{};
}

Result<Program> render(const Kernel& kernel, const Files& files, const Mutant& m) {
  return kernel.render([&](std::string_view name) -> std::optional<std::string> {
    const auto file = files.find(std::string(name));
    if (file == files.end()) return std::nullopt;
    if (name != m.where.file) return joined(file->second);
    std::vector<std::string> lines = file->second;
    lines[static_cast<size_t>(m.where.line) - 1] = m.after;
    return joined(lines);
  });
}

bool is_code(const std::string& line) {
  static const std::regex kOther(R"(^\s*(//|#|\{[%#]|template\b|static_assert|asm\b|$))");
  return !std::regex_search(line, kOther);
}

/// The instructions alone.
std::string instructions_of(const std::string& ptx) {
  std::istringstream in(ptx);
  std::string out;
  for (std::string line; std::getline(in, line);)
    if (line.find(".loc") == std::string::npos && line.find("//") == std::string::npos &&
        !line.starts_with(".global") && line.find("info_string") == std::string::npos)
      out += line + "\n";
  return out.substr(0, out.find(".section"));
}

}  // namespace

std::vector<Mutant> template_mutants(const Tools& tools, const std::vector<std::unique_ptr<Kernel>>& kernels,
                                     uint64_t count, uint64_t seed, const std::string& only) {
  std::vector<Mutant> out;
  std::mt19937_64 random(seed);
  for (const auto& kernel : kernels) {
    if (!kernel->wanted) continue;
    const Files files = files_of(tools, *kernel);
    std::map<std::string, std::vector<Mutant>> by_rule;
    for (const TextRule& rule : kTextRules) {
      if (std::string(rule.name).find(only) == std::string::npos) continue;
      const std::regex from(rule.from);
      for (const auto& [file, lines] : files)
        for (size_t i = 0; i < lines.size(); ++i) {
          if (!is_code(lines[i])) continue;
          const std::string code = lines[i].substr(0, lines[i].find("//"));
          for (std::sregex_iterator at(code.begin(), code.end(), from), end; at != end; ++at) {
            std::string text = lines[i];
            text.replace(static_cast<size_t>(at->position()), static_cast<size_t>(at->length()), rule.to);
            Mutant m{kernel.get(), rule.name,    rule.orders,
                     false,        Group::kData, nullptr,
                     lines[i],     text,         {file, static_cast<int>(i) + 1, 0}};
            by_rule[rule.name].push_back(std::move(m));
          }
        }
    }
    // A line of another path through the template changes nothing.
    sample(std::move(by_rule), count, random, out, [&](Mutant& m) {
      auto program = render(*kernel, files, m);
      if (!program || program->source == kernel->program().source) return false;
      m.program = std::move(*program);
      return true;
    });
  }
  return out;
}

void decide_all(const Tools& tools, std::vector<Mutant>& mutants, Pool& pool, const std::function<void()>& done) {
  std::vector<const Program*> programs;
  for (const Mutant& m : mutants) programs.push_back(&m.program);
  tools.compiler->compile_all(programs, [&](CompileOutcome outcome) {
    Mutant& m = mutants[outcome.index];
    if (!outcome.binary) {
      m.fate = Fate::kRefused;
      m.message = outcome.binary.error().message;
      done();
      return true;
    }
    pool.push([&m, &done, ptx = std::move(outcome.binary->ptx)] {
      if (instructions_of(with_percent(ptx)) == instructions_of(m.kernel->code().ptx())) {
        m.fate = Fate::kEquivalent;
        m.by = "the same instructions";
      } else {
        judge(m, m.kernel->verify(ptx));
      }
      done();
    });
    return true;
  });
}

}  // namespace roofgen::mutants
