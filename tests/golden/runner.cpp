// Runs a golden file: commands with their expected output. Usage:
//
//   golden_runner [--update] PROGRAM FILE...
//
// A golden file is a list of sections, each with a first line `=== NAME`:
//
//   === about            purpose of the file; ignored
//   === file NAME        a file to create before the commands run
//   === replace          lines `REGEX => TEXT`, applied to each line, for text that varies between runs (times)
//   === run COMMAND      a command line for sh, and more in the lines below; `roofgen` is PROGRAM, $ROOFGEN_SOURCE the
//                        source tree
//   === stdout           expected standard output of the preceding command; omitted when empty
//   === stderr           expected standard error of a command that exits with 0; omitted when empty
//   === exit CODE        another expected exit code, and the standard error
//
// The commands run in order in one empty folder, which is also HOME and holds the caches. The output shows the folder's
// path as `<dir>` and that of the source tree as `<source>`. --update rewrites the stdout, stderr and exit sections.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/patterns.h"

namespace {

namespace fs = std::filesystem;

struct Section {
  std::string name;  ///< with its argument: "file a.json"
  std::string text;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<Section> parse(const std::string& text) {
  std::vector<Section> sections;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("=== "))
      sections.push_back({line.substr(4), ""});
    else if (!sections.empty())
      sections.back().text += line + "\n";
  }
  return sections;
}

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

struct Replacement {
  std::string pattern, text;
};

std::string normalise(const std::string& text, const fs::path& dir, const std::vector<Replacement>& replacements) {
  std::istringstream in(replace_all(replace_all(text, dir.string(), "<dir>"), ROOFGEN_SOURCE_DIR, "<source>"));
  std::string out;
  for (std::string line; std::getline(in, line);) {
    for (const Replacement& r : replacements) line = roofgen::test::substituted(line, r.pattern, r.text);
    out += line + "\n";
  }
  return out;
}

/// The result sections of a command, without sections that hold the default.
std::vector<Section> run(const std::string& command, const fs::path& dir,
                         const std::vector<Replacement>& replacements) {
  const fs::path scratch = dir.string() + ".out";
  write(scratch / "command", "cd '" + dir.string() + "'\n" + command);
  const std::string shell = "sh '" + (scratch / "command").string() + "' >'" + (scratch / "stdout").string() + "' 2>'" +
                            (scratch / "stderr").string() + "' </dev/null";
  const int status = std::system(shell.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::vector<Section> results;
  const auto printed = [&](const char* stream) { return normalise(read(scratch / stream), dir, replacements); };
  if (const std::string text = printed("stdout"); !text.empty()) results.push_back({"stdout", text});
  const std::string error = printed("stderr");
  if (code != 0)
    results.push_back({"exit " + std::to_string(code), error});
  else if (!error.empty())
    results.push_back({"stderr", error});
  fs::remove_all(scratch);
  return results;
}

std::string print(const std::vector<Section>& sections) {
  std::string text;
  for (const Section& section : sections) text += "=== " + section.name + "\n" + section.text;
  return text;
}

/// The golden file with the actual output in place of the expected output.
std::string actual(const std::vector<Section>& sections, const fs::path& dir) {
  std::vector<Section> out;
  std::vector<Replacement> replacements;
  for (const Section& section : sections) {
    if (section.name == "stdout" || section.name == "stderr" || section.name.starts_with("exit ")) continue;
    out.push_back(section);
    if (section.name.starts_with("file ")) write(dir / section.name.substr(5), section.text);
    if (section.name == "replace") {
      std::istringstream in(section.text);
      for (std::string line; std::getline(in, line);)
        if (const size_t arrow = line.find(" => "); arrow != std::string::npos)
          replacements.push_back({line.substr(0, arrow), line.substr(arrow + 4)});
    }
    if (section.name.starts_with("run "))
      for (Section& result : run(section.name.substr(4) + "\n" + section.text, dir, replacements))
        out.push_back(std::move(result));
  }
  return print(out);
}

/// Prints a unified difference by the system's diff, or both texts in full without diff.
void show_difference(const std::string& file, const std::string& expected, const std::string& got,
                     const fs::path& dir) {
  write(dir / "expected", expected);
  write(dir / "got", got);
  std::printf("%s: what is printed differs from what is expected (- expected, + printed)\n", file.c_str());
  std::fflush(stdout);
  const std::string command = "cd '" + dir.string() + "' && diff -u expected got";
  if (const int status = std::system(command.c_str()); !WIFEXITED(status) || WEXITSTATUS(status) > 1)
    std::printf("--- expected\n%s--- printed\n%s", expected.c_str(), got.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool update = !arguments.empty() && arguments[0] == "--update";
  if (update) arguments.erase(arguments.begin());
  if (arguments.size() < 2) {
    std::fprintf(stderr, "usage: golden_runner [--update] PROGRAM FILE...\n");
    return 2;
  }
  const fs::path program = fs::absolute(arguments[0]);
  setenv("PATH", (program.parent_path().string() + ":" + std::getenv("PATH")).c_str(), 1);
  setenv("ROOFGEN_SOURCE", ROOFGEN_SOURCE_DIR, 1);
  setenv("NO_COLOR", "1", 1);
  setenv("LC_ALL", "C.UTF-8", 1);
  int failures = 0;
  for (size_t i = 1; i < arguments.size(); ++i) {
    std::string pattern = (fs::temp_directory_path() / "roofgen-golden-XXXXXX").string();
    if (!mkdtemp(pattern.data())) return 1;
    const fs::path base = pattern, dir = base / "dir";
    fs::create_directories(dir);
    setenv("HOME", dir.c_str(), 1);
    setenv("XDG_CACHE_HOME", (dir / ".cache").c_str(), 1);
    setenv("XDG_DATA_HOME", (dir / ".local").c_str(), 1);
    const std::string expected = print(parse(read(arguments[i])));
    const std::string got = actual(parse(expected), dir);
    if (expected.empty() || got != expected) {
      if (update && !expected.empty()) {
        write(fs::absolute(arguments[i]), got);
        std::printf("%s: updated\n", arguments[i].c_str());
      } else {
        show_difference(arguments[i], expected, got, base);
        ++failures;
      }
    }
    fs::remove_all(base);
  }
  return failures == 0 ? 0 : 1;
}
