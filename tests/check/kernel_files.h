// Kernels in files whose first lines state the launch and the expected findings:
//
//   // grid: 8  block: 64  smem: 1024
//   // args: [...]
//   // finds: race at 14           without this line nothing is found
//   // leaves open: orders         the verdict is incomplete
//   // with no_fence: race at 14    the same kernel with the edit no_fence, and its findings
//   //   grid: 4                    what else differs, and words about the edit
//   // with NO_FENCE: race          the same kernel with the macro NO_FENCE
//
// An edit replaces the line before its own, or a part of that line; without text it takes the line away:
//
//     __threadfence();
//     // edit no_fence:
//     flag.store(1, order);
//     // edit relaxed: order => relaxed
//
// If the edit has the name of the file, the kernel without it is NAME_mended. Places in a header of the folder have its
// name: "race at hopper.cuh:34".
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "check/check.h"
#include "tests/support/compile_cache.h"

namespace roofgen::check {

[[noreturn]] inline void bad_kernel_file(const std::string& file, const std::string& message) {
  throw std::runtime_error(file + ": " + message);
}

struct Kernel {
  std::string name, file, folder, text;
  std::map<std::string, std::string> says;  ///< "grid" -> "4", "finds" -> "race at 10"
};
inline void PrintTo(const Kernel& k, std::ostream* out) { *out << k.name; }

/// "grid: 8  block: 64". A list of tests is made of these files in each process, and a regular expression took 50 ms.
inline void add_fields(const std::string& line, std::map<std::string, std::string>& says) {
  std::string* value = nullptr;
  for (size_t at = 0, end; at < line.size(); at = end + 2) {
    end = std::min(line.find("  ", at), line.size());
    const std::string part = line.substr(at, end - at);
    const size_t colon = part.find(": ");
    if (colon != std::string::npos && part.find_first_not_of("abcdefghijklmnopqrstuvwxyz -") == colon)
      (value = &says[part.substr(0, colon)])->assign(part, colon + 2);
    else if (value)
      *value += "  " + part;
  }
}

/// Applies an edit: false if the file has no line `edit NAME`. All lines keep their numbers.
inline bool apply_edit(Kernel& k, const std::string& name) {
  const std::string mark = "// edit ";
  std::vector<std::string> lines;
  std::istringstream in(k.text);
  bool found = false;
  size_t code = 0;  // the line that edits change
  for (std::string line; std::getline(in, line); lines.push_back(line)) {
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (line.compare(indent, mark.size(), mark) != 0) {
      code = lines.size();
      continue;
    }
    const size_t colon = line.find(':', indent);
    if (colon == std::string::npos || line.substr(indent + mark.size(), colon - indent - mark.size()) != name) continue;
    found = true;
    const std::string text = line.size() > colon + 2 ? line.substr(colon + 2) : "";
    std::string& target = lines.at(code);
    if (const size_t arrow = text.find(" => "); arrow == std::string::npos) {
      target = target.substr(0, std::min(target.find_first_not_of(' '), target.size())) + text;
    } else {
      const std::string from = text.substr(0, arrow);
      const size_t at = target.find(from);
      if (at == std::string::npos || target.find(from, at + 1) != std::string::npos)
        bad_kernel_file(k.file, "edit " + name + ": \"" + from + "\" was expected once in \"" + target + "\"");
      target.replace(at, from.size(), text.substr(arrow + 4));
    }
  }
  if (!found) return false;
  k.text.clear();
  for (const std::string& line : lines) k.text += line + "\n";
  return true;
}

inline std::vector<Kernel> kernels_in(const std::string& directory, const std::string& prefix = "") {
  std::vector<Kernel> out;
  const std::string folder = std::filesystem::path(directory).lexically_normal().string();
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".cuh") continue;
    Kernel k{entry.path().stem().string(), entry.path().filename().string(), folder, {}, {}};
    if (!k.name.starts_with(prefix)) continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    k.text = text.str();
    std::istringstream lines(k.text);
    std::vector<std::pair<std::string, std::map<std::string, std::string>>> others;  // a name, what differs with it
    for (std::string line; std::getline(lines, line) && line.starts_with("// ");) {
      if (line.starts_with("// with ")) {
        const size_t colon = line.find(": ");
        others.push_back({line.substr(8, colon - 8), {{"finds", line.substr(colon + 2)}}});
      } else if (!others.empty() && line.starts_with("//   ")) {
        add_fields(line.substr(5), others.back().second);
      } else {
        add_fields(line.substr(3), k.says);
      }
    }
    const std::string stem = k.name;
    for (auto& [name, says] : others) {
      Kernel changed = k;
      for (const auto& [field, value] : says) changed.says[field] = value;
      if (std::none_of(name.begin(), name.end(), [](unsigned char c) { return std::islower(c); })) {
        changed.name = stem + "_" + name;
        changed.says["macro"] = name;
      } else {
        if (!apply_edit(changed, name) && says.size() == 1) bad_kernel_file(k.file, "no line of the edit " + name);
        changed.name = name;
        if (name == stem) k.name = stem + "_mended";
      }
      out.push_back(std::move(changed));
    }
    out.push_back(std::move(k));
  }
  for (Kernel& k : out) k.says.try_emplace("finds", "nothing");
  std::sort(out.begin(), out.end(), [](const Kernel& a, const Kernel& b) { return a.name < b.name; });
  return out;
}

inline Dim3 dims(const std::string& text) {
  Dim3 out;
  std::sscanf(text.c_str(), "%u,%u,%u", &out.x, &out.y, &out.z);
  return out;
}

inline Result<Request> request_of(const Kernel& k) {
  auto says = k.says;
  Request r;
  r.file = k.file;
  r.text = k.text;
  r.include_dirs = {k.folder};
  r.cache_dir = test::shared_compile_cache();
  r.kernel = says["kernel"];
  if (says.count("arch")) r.arch = says["arch"];
  if (says.count("macro")) r.compiler_flags.push_back("--define-macro=" + says["macro"]);
  r.grid = dims(says["grid"]);
  r.block = dims(says["block"]);
  if (says.count("smem")) r.smem_bytes = static_cast<uint32_t>(std::stoul(says["smem"]));
  if (says.count("max-memory")) r.max_memory_bytes = std::stoull(says["max-memory"]) << 20;
  r.cooperative = says.count("cooperative") > 0;
  if (says.count("max-instructions")) r.max_instructions = std::stoull(says["max-instructions"]);
  ROOFGEN_TRY(r.args, parse_arguments(says["args"], "args.json", "."));
  return r;
}

}  // namespace roofgen::check
