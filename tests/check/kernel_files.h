// Kernels in files whose first lines state the launch and the expected findings:
//
//   // grid: 8  block: 64  smem: 1024
//   // args: [...]
//   // finds: race at 11
//   // with NO_FENCE: race          the same kernel with the macro NO_FENCE, and its findings
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "check/check.h"

namespace roofgen::check {

struct Kernel {
  std::string name, file, text;
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

inline std::vector<Kernel> kernels_in(const std::string& directory, const std::string& prefix = "") {
  std::vector<Kernel> out;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    Kernel k{entry.path().stem().string(), entry.path().filename().string(), {}, {}};
    if (!k.name.starts_with(prefix)) continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    k.text = text.str();
    std::istringstream lines(k.text);
    std::vector<std::pair<std::string, std::string>> others;  // a macro, the findings with it
    for (std::string line; std::getline(lines, line) && line.starts_with("// ");) {
      if (line.starts_with("// with ")) {
        const size_t colon = line.find(": ");
        others.emplace_back(line.substr(8, colon - 8), line.substr(colon + 2));
      } else {
        add_fields(line.substr(3), k.says);
      }
    }
    for (const auto& [macro, finds] : others) {
      Kernel changed = k;
      changed.name += "_" + macro;
      changed.says["finds"] = finds;
      changed.says["macro"] = macro;
      out.push_back(std::move(changed));
    }
    out.push_back(std::move(k));
  }
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
