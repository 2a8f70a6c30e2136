// Planted bugs from text files (tests/cli/planted/*.txt), one file for each kind. A line is `key: value`, a blank line
// ends a case, `#` begins a comment; \n in a value is the end of a line. Keys: name; file (below the source folder),
// from and to, which may follow each other more than once; job, the arguments of `tune`; why the kernel is wrong on a
// GPU. A case without an edit is a right kernel, which must be verified.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/wrong_kernel.h"

namespace roofgen::test {

struct Planted {
  struct Edit {
    std::string file, from, to;
  };
  std::string kind, name, job, why;
  std::vector<Edit> edits;
};

inline void PrintTo(const Planted& p, std::ostream* out) { *out << p.kind << "_" << p.name; }

inline std::vector<Planted> read_planted(const std::filesystem::path& path) {
  std::vector<Planted> out;
  std::ifstream in(path);
  bool open = false;
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.empty()) open = false;
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    const std::string key = line.substr(0, colon), value = replaced(line.substr(colon + 2), "\\n", "\n");
    if (!open) out.push_back({path.stem().string(), {}, {}, {}, {}});
    open = true;
    Planted& p = out.back();
    if (key == "name") p.name = value;
    if (key == "job") p.job = value;
    if (key == "why") p.why = value;
    if (key == "file") p.edits.push_back({value, "", ""});
    if (key == "from") p.edits.back().from = value;
    if (key == "to") p.edits.back().to = value;
  }
  return out;
}

/// The first case of each file, which stands for its kind in the fast suite, or all others.
inline std::vector<Planted> planted(bool first) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(ROOFGEN_SOURCE_DIR "/tests/cli/planted"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Planted> out;
  for (const auto& file : files) {
    const std::vector<Planted> cases = read_planted(file);
    const auto second = cases.begin() + (cases.empty() ? 0 : 1);
    out.insert(out.end(), first ? cases.begin() : second, first ? second : cases.end());
  }
  return out;
}

inline void expect_as_planted(const Planted& p) {
  const Home home;
  for (const Planted::Edit& edit : p.edits) {
    std::string right = home.read("edited/" + edit.file);
    if (right.empty()) {
      std::ifstream in(std::string(ROOFGEN_SOURCE_DIR "/") + edit.file);
      right.assign(std::istreambuf_iterator<char>(in), {});
    }
    const std::string wrong = replaced(right, edit.from, edit.to);
    ASSERT_NE(wrong, right) << edit.file << " does not contain " << edit.from;
    home.write("edited/" + edit.file, wrong);
  }
  const std::string edited = p.edits.empty() ? "" : " --data-dir edited";
  const Outcome o = home.run("tune " + p.job + " --evals 1 --executor sim" + edited);
  if (p.edits.empty()) {
    EXPECT_EQ(o.exit, 0) << o.out << o.err;
    EXPECT_EQ(o.err, "");
  } else {
    EXPECT_EQ(o.exit, 1) << p.why << "\n" << o.out << o.err;
    EXPECT_NE(o.err.find("nothing was verified: verify: "), std::string::npos) << o.err;
  }
}

}  // namespace roofgen::test
