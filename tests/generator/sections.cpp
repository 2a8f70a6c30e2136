#include "tests/generator/sections.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/generator/json_value.h"

namespace roofgen::test {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

Case parse_case(const std::filesystem::path& path) {
  Case c{path.string(), path.stem().string(), {}, {}, {}};
  std::istringstream in(read_file(path));
  std::string* current = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("=== template ")) {
      const std::string name = line.substr(13);
      if (c.main.empty()) c.main = name;
      current = &c.templates[name];
    } else if (line.starts_with("=== ")) {
      current = &c.sections[line.substr(4)];
    } else if (current) {
      *current += line + "\n";
    }
  }
  return c;
}

}  // namespace

std::vector<Case> read_cases(const std::string& folder) {
  std::vector<Case> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(ROOFGEN_SOURCE_DIR "/tests/generator/") + folder))
    if (entry.path().extension() == ".txt") out.push_back(parse_case(entry.path()));
  std::sort(out.begin(), out.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return out;
}

Result<jinja::Rendered> render_case(const Case& c) {
  const auto loader = [&](std::string_view name) -> std::optional<std::string> {
    auto it = c.templates.find(std::string(name));
    return it == c.templates.end() ? std::nullopt : std::optional(it->second);
  };
  auto it = c.sections.find("context");
  return jinja::render(loader, c.main, it == c.sections.end() ? expr::Map{} : parse_context(it->second));
}

bool update_section(const Case& c, const std::string& section, const std::string& text) {
  if (!std::getenv("ROOFGEN_UPDATE_GOLDEN")) return false;
  const std::string whole = read_file(c.path), header = "=== " + section + "\n";
  const size_t at = whole.find(header);
  std::string out = whole.substr(0, std::min(at, whole.size())) + header + text;
  if (at != whole.npos)
    if (const size_t next = whole.find("\n=== ", at + header.size() - 1); next != whole.npos)
      out += whole.substr(next + 1);
  std::ofstream(c.path, std::ios::binary) << out;
  return true;
}

}  // namespace roofgen::test
