// Kernel templates read as CUDA: short lines, few tags, braces that no tag opens or closes alone, short kernels.
// docs/internals/templates.md has the figures of each; ROOFGEN_UPDATE_GOLDEN=1 writes them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

namespace roofgen::templates_test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestLine = 120, kMostTagLines = 60, kLongestBody = 120;
constexpr long kLongestHeader = 32;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

/// The text with blanks for comments of Jinja and of C++, outputs, and literals, so that the braces that are left are
/// those of the code and of no tag. Line breaks stay.
std::string code_of(const std::string& text) {
  std::string out = text;
  const auto blank = [&](size_t from, size_t to) {
    for (size_t i = from; i < std::min(to, out.size()); ++i)
      if (out[i] != '\n') out[i] = ' ';
    return to;
  };
  const auto after = [&](const char* end, size_t from) {
    const size_t at = text.find(end, from);
    return at == std::string::npos ? text.size() : at + std::char_traits<char>::length(end);
  };
  for (size_t at = 0; at < text.size();) {
    const std::string_view two = std::string_view(text).substr(at, 2);
    if (two == "{#")
      at = blank(at, after("#}", at + 2));
    else if (two == "{{")
      at = blank(at, after("}}", at + 2));
    else if (two == "{%")
      at = after("%}", at + 2);
    else if (two == "//")
      at = blank(at, std::min(text.find('\n', at), text.size()));
    else if (text[at] == '"' ||
             (text[at] == '\'' && at > 0 && !std::isalnum(static_cast<unsigned char>(text[at - 1])))) {
      size_t end = at + 1;  // an output in a literal may have quotes of its own
      while (end < text.size() && text[end] != text[at] && text[end] != '\n')
        end = text.compare(end, 2, "{{") == 0 ? after("}}", end) : text[end] == '\\' ? end + 2 : end + 1;
      at = blank(at, end + 1);
    } else {
      ++at;
    }
  }
  return out;
}

struct Figures {
  size_t tag_lines = 0, conditions = 0, longest_line = 0, body = 0;
  std::string header;               ///< the comment at its top
  std::vector<std::string> faults;  ///< "LINE: what"
};

/// Tags of the code, with the depth of braces at each. A branch starts again at the depth before its condition.
void read_tags(const std::string& code, Figures& out) {
  struct Open {
    std::string tag;
    int depth;
    size_t line;
  };
  std::vector<Open> open;
  int depth = 0;
  size_t line = 1, counted = 0;  // counted: the last line that has a part of a tag
  for (size_t at = 0; at < code.size(); ++at) {
    if (code[at] == '\n') ++line;
    if (code[at] == '}') --depth;
    if (code[at] != '{') continue;
    if (code.compare(at, 2, "{%") != 0) {
      ++depth;
      continue;
    }
    const size_t end = std::min(code.find("%}", at), code.size() - 1);
    const size_t begin = code.find_first_not_of("{%-+ \n", at);
    const std::string tag = code.substr(begin, code.find_first_of(" %-+\n", begin) - begin);
    for (size_t i = at; i <= end; ++i) {
      if (counted < line) ++out.tag_lines, counted = line;
      line += code[i] == '\n';
    }
    out.conditions += tag == "if" || tag == "elif";
    if (tag == "if" || tag == "for" || tag == "macro") {
      open.push_back({tag, depth, line});
    } else if (!open.empty() && (tag == "elif" || tag == "else" || tag == "end" + open.back().tag)) {
      if (depth != open.back().depth)
        out.faults.push_back(fmt::format("{}: the code since the tag `{}` of line {} {} {} that it does not {}", line,
                                         open.back().tag, open.back().line,
                                         depth > open.back().depth ? "opens" : "closes",
                                         std::abs(depth - open.back().depth) == 1 ? "a brace" : "braces",
                                         depth > open.back().depth ? "close" : "open"));
      depth = open.back().depth;
      if (tag.starts_with("end")) open.pop_back();
    }
    at = end + 1;
  }
}

/// Lines of the longest kernel between the line that opens its body and the brace that closes it.
void read_bodies(const std::vector<std::string>& lines, Figures& out) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find("__global__") == std::string::npos) continue;
    const size_t declared = i + 1;
    while (i < lines.size() && !lines[i].ends_with("{")) ++i;
    const size_t opens = i;
    while (i < lines.size() && lines[i] != "}") ++i;
    const size_t body = i - std::min(i, opens + 1);
    if (body > kLongestBody)
      out.faults.push_back(fmt::format("{}: the body of this kernel has {} lines, at most {} were expected", declared,
                                       body, kLongestBody));
    out.body = std::max(out.body, body);
  }
}

Figures figures_of(const std::string& text) {
  Figures out;
  const std::vector<std::string> lines = lines_of(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    out.longest_line = std::max(out.longest_line, lines[i].size());
    if (lines[i].size() > kLongestLine)
      out.faults.push_back(
          fmt::format("{}: {} columns, at most {} were expected", i + 1, lines[i].size(), kLongestLine));
  }
  for (size_t i = 0; i < lines.size() && lines[i].starts_with("//"); ++i) out.header += lines[i] + "\n";
  read_tags(code_of(text), out);
  if (out.tag_lines > kMostTagLines)
    out.faults.push_back(fmt::format("1: {} lines with tags, at most {} were expected", out.tag_lines, kMostTagLines));
  read_bodies(lines, out);
  return out;
}

/// Of all files below templates/ that become parts of kernels, by name.
const std::map<std::string, Figures>& templates() {
  static const std::map<std::string, Figures> all = [] {
    std::map<std::string, Figures> out;
    const fs::path root = ROOFGEN_SOURCE_DIR "/templates";
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const std::string name = fs::relative(entry.path(), root).generic_string();
      if (entry.is_regular_file() && !name.starts_with("bundle/") && !name.starts_with("plots/"))
        out[name] = figures_of(text_of(entry.path()));
    }
    return out;
  }();
  return all;
}

TEST(Templates, ReadAsCuda) {
  EXPECT_GT(templates().size(), 90u);
  for (const auto& [name, figures] : templates())
    for (const std::string& fault : figures.faults) ADD_FAILURE() << "templates/" << name << ":" << fault;
}

/// What a kernel computes, after whose design, and what its choices gained.
TEST(Templates, OpenWithAHeader) {
  for (const auto& [name, figures] : templates()) {
    if (!name.ends_with(".cu.jinja") || name.starts_with("ceilings/")) continue;
    EXPECT_LE(std::count(figures.header.begin(), figures.header.end(), '\n'), kLongestHeader) << name;
    for (const char* part : {"\n// Design: ", "\n// Ladder"})
      EXPECT_NE(figures.header.find(part), std::string::npos)
          << "templates/" << name << ":1: \"" << part + 1 << "\" was expected in the comment at its top";
  }
}

TEST(Templates, FaultsAreFound) {
  const auto faults = [](const std::string& text) {
    return fmt::format("{}", fmt::join(figures_of(text).faults, "; "));
  };
  EXPECT_EQ(faults("{% if a %}\nf() {\n{% else %}\ng() {\n{% endif %}\n}\n"),
            "3: the code since the tag `if` of line 1 opens a brace that it does not close; "
            "5: the code since the tag `if` of line 1 opens a brace that it does not close");
  EXPECT_EQ(faults("{% macro m() %}\n}\n{% endmacro %}\n"),
            "3: the code since the tag `macro` of line 1 closes a brace that it does not open");
  EXPECT_EQ(faults("{% if a %}\nf(\"{ {{ \"}\" }}\"); // {\n{# { #}{{ x }}'{'\n{% endif %}\n"), "");
  EXPECT_EQ(faults(std::string(121, 'x') + "\n"), "1: 121 columns, at most 120 were expected");
  std::string long_kernel = "__global__ void k(\n    int n) {\n", tags;
  for (int i = 0; i < 121; ++i) long_kernel += "  ++n;\n";
  EXPECT_EQ(faults(long_kernel + "}\n"), "1: the body of this kernel has 121 lines, at most 120 were expected");
  for (int i = 0; i < 61; ++i) tags += i ? "{% set x = 1 %}\n" : "{% set x = 1 if a else\n           2 %}\n";
  EXPECT_EQ(faults(tags), "1: 62 lines with tags, at most 60 were expected");
}

TEST(Templates, TheTableInTheDocs) {
  const std::string path = ROOFGEN_SOURCE_DIR "/docs/internals/templates.md", page = text_of(path);
  const std::string begin = "<!-- templates:begin -->\n", end = "<!-- templates:end -->";
  const size_t from = page.find(begin), to = page.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos) << path;
  std::string table =
      "| template | lines with tags | conditions | longest line | body |\n| --- | --- | --- | --- | --- |\n";
  for (const auto& [name, f] : templates())
    if (name.ends_with(".cu.jinja"))
      table += fmt::format("| `{}` | {} | {} | {} | {} |\n", name, f.tag_lines, f.conditions, f.longest_line, f.body);
  const std::string now = page.substr(0, from + begin.size()) + table + page.substr(to);
  if (std::getenv("ROOFGEN_UPDATE_GOLDEN")) std::ofstream(path) << now;
  EXPECT_EQ(text_of(path), now);
}

}  // namespace
}  // namespace roofgen::templates_test
