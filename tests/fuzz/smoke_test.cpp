// Runs each fuzz target on its corpus and on fixed mutations of it; works with any compiler.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/fuzz/targets.h"

namespace roofgen::test::fuzz_smoke_test {
namespace {

std::vector<std::string> corpus(const std::string& target) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ROOFGEN_CORPUS "/" + target)) paths.push_back(entry);
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> out;
  for (const auto& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    out.push_back(text.str());
  }
  return out;
}

void run(FuzzTarget target, const std::string& s) {
  EXPECT_EQ(target(reinterpret_cast<const uint8_t*>(s.data()), s.size()), 0);
}

/// A few edits: flip, insert or erase bytes, repeat a piece, splice from another input.
std::string mutate(std::string s, const std::vector<std::string>& all, std::mt19937_64& bits) {
  static const std::string kTokens[] = {
      // clang-format off
      "{{", "}}", "{%", "%}", "{#", "#}", "-", "(", ")", "[", "]", "|", ".", ",", "'", "\"", "\\", "\n", "\n===\n",
      " if ", " else ", "{% endif %}", "{% endfor %}", "{% macro f(a) %}", "{% endmacro %}", "9223372036854775807",
      "1e308", "**", "//", "%", "not ", " in ", "\xFF", std::string(1, '\0')
      // clang-format on
  };
  for (int edits = 1 + static_cast<int>(bits() % 6); edits > 0; --edits) {
    const size_t at = bits() % (s.size() + 1), length = bits() % 20;
    switch (bits() % 5) {
      case 0:
        if (at < s.size()) s[at] = static_cast<char>(bits());
        break;
      case 1: s.insert(at, kTokens[bits() % std::size(kTokens)]); break;
      case 2: s.erase(at, length); break;
      case 3: s.insert(at, s.substr(bits() % (s.size() + 1), length)); break;
      default: {
        const std::string& other = all[bits() % all.size()];
        s.insert(at, other.substr(bits() % (other.size() + 1), length));
      }
    }
  }
  return s;
}

void run_mutations(const std::string& target, int count) {
  const std::vector<std::string> all = corpus(target);
  std::mt19937_64 bits(7);
  for (int i = 0; i < count; ++i) run(targets().at(target), mutate(all[bits() % all.size()], all, bits));
}

class FuzzSmoke : public testing::TestWithParam<std::string> {};

TEST_P(FuzzSmoke, Corpus) {
  const std::vector<std::string> all = corpus(GetParam());
  ASSERT_GE(all.size(), 5u);
  for (const std::string& s : all) run(targets().at(GetParam()), s);
}

TEST_P(FuzzSmoke, Mutations) { run_mutations(GetParam(), 1500); }

class ManyMutations : public testing::TestWithParam<std::string> {};

TEST_P(ManyMutations, AreSurvived) { run_mutations(GetParam(), 40000); }

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, target] : targets()) out.push_back(name);
  return out;
}

std::string name(const testing::TestParamInfo<std::string>& target) { return target.param; }
INSTANTIATE_TEST_SUITE_P(Each, FuzzSmoke, testing::ValuesIn(names()), name);
INSTANTIATE_TEST_SUITE_P(Slow, ManyMutations, testing::ValuesIn(names()), name);

}  // namespace
}  // namespace roofgen::test::fuzz_smoke_test
