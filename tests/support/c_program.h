// C programs that tests write, build and run.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace roofgen::test {

/// Builds `sources` (a pattern of the shell) of a folder without a warning and runs the program: its output is in
/// out.txt there.
inline void build_and_run_c(const std::filesystem::path& folder, const char* sources) {
  const std::string command =
      fmt::format("cd '{}' && cc -std=c11 -Wall -Wextra -Werror {} -o program -ldl 2>build.txt && ./program >out.txt",
                  folder.string(), sources);
  const int status = std::system(command.c_str());
  std::stringstream build;
  build << std::ifstream(folder / "build.txt").rdbuf();
  EXPECT_EQ(status, 0) << build.str();
}

}  // namespace roofgen::test
