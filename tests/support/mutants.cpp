#include "tests/support/mutants.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <ostream>
#include <set>

#include "base/number.h"

namespace roofgen::test {
namespace {

std::string name_of(const std::filesystem::path& file, const std::string& bug) {
  std::string out = file.parent_path().filename().string() + "_" + file.stem().string() + "_" + bug;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return out;
}

/// Takes `word` and a blank off the front of a line.
bool begins(std::string& line, std::string_view word) {
  if (line != word && !line.starts_with(std::string(word) + " ")) return false;
  line.erase(0, std::min(word.size() + 1, line.size()));
  return true;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file) {}

  Result<std::vector<Mutant>> read() {
    std::ifstream in(file_);
    for (std::string line; std::getline(in, line);) {
      ++at_.line;
      if (line.empty() || line[0] == '#') continue;
      if (auto read = line.starts_with("  ") ? part(line.substr(2)) : heading(line); !read) return read.error();
    }
    for (const Mutant& m : out_)
      if (m.edits.empty() != (m.fate == Fate::kVerified))
        return Error{Exit::kFailed, "a bug has edits, a right kernel has none: " + m.bug, m.where};
    if (out_.empty()) return Error{Exit::kFailed, "no mutants", at_};
    return std::move(out_);
  }

 private:
  Result<void> heading(std::string line) {
    run_is_open_ = begins(line, "run") || begins(line, "tune");
    if (run_is_open_) {
      run_ = line;
      return {};
    }
    if (begins(line, "margin")) {
      const auto margin = parse_number(line);
      if (!margin) return unknown("a number of tolerances", line);
      margin_ = *margin;
      return {};
    }
    static const std::map<std::string, Fate> kFates{{"finding", Fate::kFinding},
                                                    {"comparison", Fate::kComparison},
                                                    {"either", Fate::kEither},
                                                    {"rejected", Fate::kRejected},
                                                    {"verified", Fate::kVerified}};
    const size_t colon = line.find(": ");
    const auto fate = kFates.find(line.substr(0, colon));
    if (colon == std::string::npos || fate == kFates.end())
      return unknown("run, margin, or finding, comparison, either, rejected or verified with a colon", line);
    Mutant& m = out_.emplace_back();
    m.where = at_;
    m.bug = line.substr(colon + 2);
    m.name = name_of(file_, m.bug);
    m.fate = fate->second;
    m.margin = margin_;
    m.run = run_;
    return {};
  }

  Result<void> part(std::string line) {
    if (run_is_open_ && begins(line, " ")) {
      run_ += (run_.ends_with(",") ? "" : " ") + line;  // a list may go on
      return {};
    }
    if (out_.empty()) return unknown("a mutant's first line", line);
    Mutant& m = out_.back();
    if (begins(line, "with")) {
      m.run += " " + line;
    } else if (begins(line, "because")) {
      m.because = line;
    } else if (m.edits.empty() && !m.because.empty() && begins(line, " ")) {
      m.because += " " + line;
    } else if (begins(line, "in")) {
      m.edits.push_back({line, "", ""});
    } else if (m.edits.empty()) {
      return unknown("with, because or in", line);
    } else {
      const bool from = begins(line, "-"), to = !from && begins(line, "+");
      if (!from && !to && !line.starts_with("  ")) return unknown("-, + or two blanks before code", line);
      const auto add = [&](std::string& text) { text += (text.empty() ? "" : "\n") + line; };
      if (!to) add(m.edits.back().from);
      if (!from) add(m.edits.back().to);
    }
    return {};
  }

  Error unknown(const std::string& expected, const std::string& line) const {
    return {Exit::kFailed, fmt::format("{} was expected, not \"{}\"", expected, line), at_};
  }

  const std::filesystem::path file_;
  Where at_{file_.string(), 0, 1};
  std::string run_;
  bool run_is_open_ = false;  // lines may go on with it
  double margin_ = 1;
  std::vector<Mutant> out_;
};

std::vector<std::filesystem::path> files_below(const std::string& folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(ROOFGEN_SOURCE_DIR "/" + folder))
    if (entry.path().extension() == ".mutants") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

void PrintTo(const Mutant& m, std::ostream* out) {
  *out << m.where.file.substr(sizeof ROOFGEN_SOURCE_DIR) << ":" << m.where.line << ": " << m.bug;
}

Result<std::vector<Mutant>> read_mutants(const std::filesystem::path& file) { return Reader(file).read(); }

std::vector<Mutant> mutants_below(const std::string& folder) {
  std::vector<Mutant> out;
  for (const std::filesystem::path& file : files_below(folder))
    if (auto read = read_mutants(file)) out.insert(out.end(), read->begin(), read->end());
  return out;
}

void expect_mutants_well_formed(const std::string& folder) {
  std::set<std::string> names;
  for (const std::filesystem::path& file : files_below(folder)) {
    const auto read = read_mutants(file);
    ASSERT_TRUE(read) << to_string(read.error());
    for (const Mutant& m : *read) EXPECT_TRUE(names.insert(m.name).second) << m.name << " twice";
  }
}

}  // namespace roofgen::test
