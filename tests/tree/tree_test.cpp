// Conventions that a compiler does not check: include dependencies, file lengths, and no traces of a particular
// machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "tests/support/patterns.h"

namespace {

namespace fs = std::filesystem;

struct File {
  std::string name;  ///< relative to the tree, with '/'
  std::vector<std::string> lines;
};

/// Every text file of the tree, without build folders, hidden folders and binary files.
const std::vector<File>& tree() {
  static const std::vector<File> kFiles = [] {
    std::vector<File> files;
    const fs::path root = ROOFGEN_SOURCE_DIR;
    for (fs::recursive_directory_iterator it(root), end; it != end; ++it) {
      const std::string leaf = it->path().filename().string();
      if (it->is_directory()) {
        const bool hidden = leaf[0] == '.' && leaf != ".ci";
        if (hidden || leaf == "__pycache__" || (it.depth() == 0 && leaf.starts_with("build")))
          it.disable_recursion_pending();
        continue;
      }
      if (!it->is_regular_file() || leaf == ".git") continue;  // .git is a file in a linked worktree
      std::ifstream in(it->path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      if (text.find('\0') != std::string::npos) continue;
      File file{fs::relative(it->path(), root).generic_string(), {}};
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) file.lines.push_back(line);
      files.push_back(std::move(file));
    }
    return files;
  }();
  return kFiles;
}

bool has_extension(const std::string& name, const std::set<std::string>& extensions) {
  return extensions.count(fs::path(name).extension().string()) != 0;
}

bool is_cpp(const File& file) { return has_extension(file.name, {".h", ".cpp"}); }

struct Include {
  std::string path;
  bool angled = false;
};

std::vector<Include> includes(const File& file) {
  static const std::string kInclude = R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re";
  std::vector<Include> found;
  for (const std::string& line : file.lines)
    for (const roofgen::test::Match& match : roofgen::test::matches(line, kInclude))
      found.push_back({match[2], match[1] == "<"});
  return found;
}

std::string top(const std::string& path) { return path.substr(0, path.find('/')); }

TEST(Tree, IsFound) { EXPECT_GT(tree().size(), 50u); }

/// What a folder may not include, by its path; the longest path that fits a file counts.
const std::map<std::string, std::set<std::string>>& forbidden() {
  // include <- base <- generator <- roofline <- tuner <- profile <- tuner/session <- cli and library; base <- runtime
  // <- tuner and check. A session is asked by the two faces alone.
  static const std::map<std::string, std::set<std::string>> kForbidden = {
      {"include",
       {"base", "generator", "roofline", "runtime", "check", "tuner", "profile", "cli", "library", "tests", "bench",
        "lab"}},
      {"base",
       {"generator", "roofline", "runtime", "check", "tuner", "profile", "cli", "library", "tests", "bench", "lab"}},
      {"generator", {"roofline", "runtime", "check", "tuner", "profile", "cli", "library", "tests", "bench", "lab"}},
      {"roofline", {"runtime", "check", "tuner", "profile", "cli", "library", "tests", "bench", "lab"}},
      {"runtime", {"generator", "roofline", "check", "tuner", "profile", "cli", "library", "tests", "bench", "lab"}},
      {"check", {"tuner", "profile", "cli", "library", "tests", "bench", "lab"}},
      {"tuner", {"tuner/session", "check", "profile", "cli", "library", "tests", "bench", "lab"}},
      {"tuner/session", {"check", "cli", "library", "tests", "bench", "lab"}},
      {"profile", {"tuner/session", "cli", "library", "tests", "bench", "lab"}},
      {"cli", {"library", "tests", "bench", "lab"}},
      {"library", {"cli", "tests", "bench", "lab"}}};
  return kForbidden;
}

bool below(const std::string& path, const std::string& folder) { return path.starts_with(folder + "/"); }

// The product is built and tested without the lab; a few files name paths of the lab, and no more.
TEST(Tree, NothingNeedsTheLab) {
  const std::string place = R"((^|[ "/(])lab/)";
  int checked = 0;
  for (const File& file : tree()) {
    if (below(file.name, "lab")) continue;
    const bool builds =
        fs::path(file.name).filename() == "CMakeLists.txt" || has_extension(file.name, {".cmake", ".in"});
    for (size_t i = 0; builds && i < file.lines.size(); ++i)
      EXPECT_FALSE(roofgen::test::contains(file.lines[i], place)) << file.name << ":" << i + 1 << ": " << file.lines[i];
    checked += builds;
    if (!has_extension(file.name, {".h", ".hpp", ".cpp", ".cxx", ".c", ".cu", ".cuh"})) continue;
    for (const Include& include : includes(file))
      EXPECT_FALSE(roofgen::test::contains(include.path, place)) << file.name << " includes " << include.path;
  }
  EXPECT_GT(checked, 50);
}

TEST(Tree, DependenciesPointOneWay) {
  int checked = 0;
  for (const File& file : tree()) {
    const std::set<std::string>* rule = nullptr;
    size_t longest = 0;
    for (const auto& [folder, others] : forbidden())
      if (below(file.name, folder) && folder.size() > longest) rule = &others, longest = folder.size();
    if (!rule || !is_cpp(file)) continue;
    const bool shim = file.name.starts_with("runtime/shim/");  // a library of its own, which may use the catalogue
    for (const Include& include : includes(file)) {
      for (const std::string& other : *rule)
        EXPECT_FALSE(below(include.path, other) && !(shim && (other == "roofline" || other == "generator")))
            << file.name << " includes " << include.path;
      EXPECT_TRUE(shim || !include.path.starts_with("runtime/shim/")) << file.name << " includes " << include.path;
      EXPECT_FALSE(include.path.starts_with("..")) << file.name << " includes " << include.path;
      ++checked;
    }
  }
  EXPECT_GT(checked, 100);
}

/// By folder: those that its files include, each with an example.
std::map<std::string, std::map<std::string, std::string>> included_folders() {
  std::map<std::string, std::map<std::string, std::string>> out;
  const auto folder = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
  for (const File& file : tree()) {
    if (!is_cpp(file) || !forbidden().contains(top(file.name)) || file.name.starts_with("include/")) continue;
    for (const Include& include : includes(file))
      if (forbidden().contains(top(include.path)) && folder(include.path) != folder(file.name))
        out[folder(file.name)].emplace(folder(include.path), file.name + " includes " + include.path);
  }
  return out;
}

/// A path from `from` to `to` over included folders, as examples; empty: none.
std::string path_between(const std::string& from, const std::string& to, std::set<std::string>& seen) {
  static const auto kFolders = included_folders();
  const auto next = kFolders.find(from);
  if (next == kFolders.end() || !seen.insert(from).second) return "";
  for (const auto& [folder, example] : next->second) {
    if (folder == to) return example;
    if (const std::string rest = path_between(folder, to, seen); !rest.empty()) return example + "\n" + rest;
  }
  return "";
}

TEST(Tree, NoFolderIncludesItselfByWayOfOthers) {
  size_t folders = 0;
  for (const auto& [folder, others] : included_folders()) {
    ++folders;
    std::set<std::string> seen;
    EXPECT_EQ(path_between(folder, folder, seen), "") << folder;
  }
  EXPECT_GT(folders, 30u);
}

// One process does not print a document to parse it: the function that makes its JSON returns a value.
TEST(Tree, NothingIsPrintedToBeParsed) {
  const std::string print = R"(parse_json\((json_line|json_document|\w+_json)\()";
  for (const File& file : tree())
    for (size_t i = 0; is_cpp(file) && !file.name.starts_with("tests/") && i < file.lines.size(); ++i)
      EXPECT_FALSE(roofgen::test::contains(file.lines[i], print)) << file.name << ":" << i + 1 << ": " << file.lines[i];
}

/// The line on which the function begins whose header ends on this line with "{"; nothing: the line is another.
std::optional<size_t> function_head(const std::vector<std::string>& lines, size_t at) {
  static const std::string kControl =
      R"(^\s*(\}|if|for|while|switch|else|do|catch|namespace|class|struct|enum|union|extern|case|return|try)\b)";
  const std::string& line = lines[at];
  if (!line.ends_with("{") || line.find(')') == std::string::npos) return std::nullopt;
  int open = 0;
  for (size_t head = at;; --head) {
    for (const char c : lines[head]) open += c == '(' ? -1 : c == ')' ? 1 : 0;
    const size_t text = lines[head].find_first_not_of(' ');
    // Of a constructor whose members have initial values the header comes before these.
    const bool initialises = text != std::string::npos && lines[head][text] == ':';
    const bool goes_on = head > 0 && (lines[head - 1].ends_with(',') || lines[head - 1].ends_with('('));
    if (head > 0 && (open > 0 || initialises || goes_on)) continue;
    if (roofgen::test::contains(lines[head], kControl) || lines[head].find("= [") != std::string::npos)
      return std::nullopt;
    return head;
  }
}

TEST(Tree, FunctionsAreShort) {
  size_t functions = 0;
  for (const File& file : tree()) {
    if (!has_extension(file.name, {".h", ".cpp", ".cuh"}) || file.name.starts_with("tests/")) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const auto head = function_head(file.lines, i);
      if (!head) continue;
      ++functions;
      const std::string close = file.lines[*head].substr(0, file.lines[*head].find_first_not_of(' ')) + "}";
      size_t end = i + 1;
      while (end < file.lines.size() && !file.lines[end].starts_with(close)) ++end;
      EXPECT_LE(end - *head + 1, 150u) << file.name << ":" << *head + 1 << ": " << file.lines[*head];
    }
  }
  EXPECT_GT(functions, 3000u);
}

// An op is said once: its file in search_spaces/ops, its class, its formula of work. No other code has its name.
struct Naming {
  std::string file, op;
  size_t line = 0;
};

/// What has an op's name in quotes and means something else, or shows how a program asks for one.
bool may_name(const std::string& file, const std::string& op) {
  static const std::set<std::string> kFolders{
      "generator/ops/",  // classes of ops
      "tests/",         "lab/", "bench/",
      "examples/",  // programs of users
      "python/",    // examples in its comments
  };
  if (std::ranges::any_of(kFolders, [&](const std::string& folder) { return file.starts_with(folder); })) return true;
  static const std::set<std::pair<std::string, std::string>> kOther{
      {"generator/expr/expr.h", "map"},                                    // a type of values
      {"generator/expr/value.cpp", "map"}, {"generator/emit.cpp", "map"},  // the tensor map of an argument
      {"check/arguments.cpp", "map"},      {"check/kernel.cpp", "map"},
      {"check/skeleton.cpp", "map"},       {"tuner/evidence/replay_json.cpp", "map"},
      {"tuner/whatif/json.cpp", "chain"},  // the member of a document: the steps that were asked for
      {"tuner/whatif/page.cpp", "chain"},
  };
  return kOther.count({file, op}) != 0;
}

std::vector<Naming> namings(const std::vector<File>& files) {
  std::set<std::string> ops;
  for (const auto& entry : fs::directory_iterator(fs::path(ROOFGEN_SOURCE_DIR) / "search_spaces/ops"))
    ops.insert(entry.path().stem().string());
  EXPECT_GE(ops.size(), 8u);
  std::vector<Naming> out;
  for (const File& file : files) {
    if (!is_cpp(file)) continue;
    for (size_t i = 0; i < file.lines.size(); ++i)
      for (const std::string& op : ops) {
        const std::string& line = file.lines[i];
        const size_t first = line.find_first_not_of(' '), at = line.find('"' + op + '"');
        const size_t comment = first != std::string::npos && line[first] == '*' ? first : line.find("//");
        if (at != std::string::npos && at < comment && !may_name(file.name, op)) out.push_back({file.name, op, i + 1});
      }
  }
  return out;
}

TEST(Tree, NoCodeNamesAnOp) {
  for (const Naming& n : namings(tree())) ADD_FAILURE() << n.file << ":" << n.line << " names the op " << n.op;
}

TEST(Tree, CodeThatNamesAnOpIsFound) {
  const File planted{"tuner/planted.cpp", {"// \"gemm\" in a comment", "if (p.op == \"gemm\")", "return \"map\";"}};
  const std::vector<Naming> found = namings({planted, {"generator/ops/gemm.cpp", {"\"gemm\""}}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].line, 2u);
  EXPECT_EQ(found[1].op, "map");
}

// Users of an installation need no LLVM, JSON or SQLite: the headers include only the standard library and each other.
TEST(Tree, PublicHeadersAreStandardOnly) {
  const std::string kStandard = "[a-z_]+|std(def|int)\\.h";  // the latter in C
  int checked = 0;
  for (const File& file : tree()) {
    if (!file.name.starts_with("include/roofgen/")) continue;
    for (const Include& include : includes(file)) {
      if (include.angled)
        EXPECT_FALSE(roofgen::test::whole_match(include.path, kStandard).empty())
            << file.name << " includes <" << include.path << ">";
      else
        EXPECT_EQ(top(include.path), "roofgen") << file.name;
      ++checked;
    }
  }
  EXPECT_GT(checked, 5);
}

TEST(Tree, FilesAreShort) {
  std::vector<size_t> lengths;
  for (const File& file : tree()) {
    if (!has_extension(file.name, {".h", ".cpp", ".cuh", ".jinja", ".cmake", ".sh", ".py"}) && file.name != "roofgen")
      continue;
    EXPECT_LE(file.lines.size(), 800u) << file.name;
    lengths.push_back(file.lines.size());
  }
  ASSERT_FALSE(lengths.empty());
  std::nth_element(lengths.begin(), lengths.begin() + lengths.size() / 2, lengths.end());
  EXPECT_LT(lengths[lengths.size() / 2], 250u) << "the median";
}

// The patterns are assembled from pieces, because the test reads this file as well.
TEST(Tree, NamesNoMachineAndNoRegistry) {
  const std::string slash = "/";
  const std::string kMachine = "(^|[^A-Za-z0-9_.$}>])" + slash + "(work|root|Users|home" + slash +
                               "(?!someone)[a-z]+|tmp" + slash + "[a-z_]+jobs)" + slash;
  const std::string kRegistry =
      std::string("py") + "pi\\.org|python" + "hosted|deb\\.deb" + "ian\\.org|archive\\.ub" + "untu\\.com";
  for (const File& file : tree())
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      EXPECT_FALSE(roofgen::test::contains(line, kMachine)) << file.name << ":" << i + 1 << ": " << line;
      EXPECT_FALSE(roofgen::test::contains(line, kRegistry)) << file.name << ":" << i + 1 << ": " << line;
    }
}

// The library runs in programs whose locale may write a half as 0,5.
TEST(Tree, NumbersAreReadWithoutTheLocale) {
  const std::string reads = R"(\b(strtod|strtof|strtold|stod|stof|stold|atof)\s*\()";
  for (const File& file : tree()) {
    if (!is_cpp(file) || file.name.starts_with("tests/") || file.name.starts_with("bench/") ||
        file.name.starts_with("lab/") || file.name.starts_with("examples/"))
      continue;
    for (const std::string& line : file.lines)
      EXPECT_FALSE(roofgen::test::contains(line, reads)) << file.name << ": std::from_chars was expected: " << line;
  }
}

TEST(Tree, NoTrailingSpaceAndOneFinalNewline) {
  for (const File& file : tree()) {
    if (!is_cpp(file) && !has_extension(file.name, {".cmake", ".cuh", ".jinja"})) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      EXPECT_FALSE(!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
          << file.name << ":" << i + 1;
    }
    EXPECT_FALSE(file.lines.empty() || file.lines.back().empty()) << file.name << " ends with empty lines";
  }
}

// An expression is a string of one line.
TEST(Tree, SearchSpacesHaveShortLines) {
  int checked = 0;
  for (const File& file : tree()) {
    if (!file.name.starts_with("search_spaces/")) continue;
    for (size_t i = 0; i < file.lines.size(); ++i, ++checked)
      EXPECT_LE(file.lines[i].size(), 120u) << file.name << ":" << i + 1;
  }
  EXPECT_GT(checked, 1000);
}

}  // namespace
