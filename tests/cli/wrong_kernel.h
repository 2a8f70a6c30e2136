// Wrong kernels, planted in a template by one changed line: tune must reject every candidate on its default checks.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/cli/program.h"

namespace roofgen::test {

struct Wrong {
  const char* name;
  const char* file;  ///< below templates/
  const char *from, *to;
  const char* job;
};

inline void PrintTo(const Wrong& w, std::ostream* out) { *out << w.name; }

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

inline void expect_rejected(const Wrong& w) {
  const Home home;
  std::ifstream in(std::string(ROOFGEN_SOURCE_DIR "/templates/") + w.file);
  const std::string right(std::istreambuf_iterator<char>(in), {});
  std::string wrong = right;
  for (const char* tensor : {"k", "v"})
    wrong = replaced(wrong, replaced(w.from, "{}_", std::string(tensor) + "_"),
                     replaced(w.to, "{}_", std::string(tensor) + "_"));
  ASSERT_NE(wrong, right);
  home.write(std::string("wrong/templates/") + w.file, wrong);
  const std::string command = std::string("tune ") + w.job + " --evals 1 --executor sim --data-dir wrong";
  const Outcome o = home.run(command);
  EXPECT_EQ(o.exit, 1) << o.out << o.err;
  EXPECT_NE(o.err.find("nothing was verified: verify: "), std::string::npos) << o.err;
}

}  // namespace roofgen::test
