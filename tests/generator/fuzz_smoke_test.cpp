// Runs a fuzz target on its corpus and on fixed mutations of it; works with any compiler.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<std::string> corpus() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ROOFGEN_CORPUS)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> out;
  for (const auto& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    out.push_back(text.str());
  }
  return out;
}

void run(const std::string& s) {
  EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(s.data()), s.size()), 0);
}

/// A few edits: flip, insert or erase bytes, repeat a piece, splice from another input.
std::string mutate(std::string s, const std::vector<std::string>& all, std::mt19937_64& bits) {
  static const std::string kTokens[] = {"{{",
                                        "}}",
                                        "{%",
                                        "%}",
                                        "{#",
                                        "#}",
                                        "-",
                                        "(",
                                        ")",
                                        "[",
                                        "]",
                                        "|",
                                        ".",
                                        ",",
                                        "'",
                                        "\"",
                                        "\\",
                                        "\n",
                                        "\n===\n",
                                        " if ",
                                        " else ",
                                        "{% endif %}",
                                        "{% endfor %}",
                                        "{% macro f(a) %}",
                                        "{% endmacro %}",
                                        "9223372036854775807",
                                        "1e308",
                                        "**",
                                        "//",
                                        "%",
                                        "not ",
                                        " in ",
                                        "\xFF",
                                        std::string(1, '\0')};
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

TEST(FuzzSmoke, Corpus) {
  const std::vector<std::string> all = corpus();
  ASSERT_GE(all.size(), 5u);
  for (const std::string& s : all) run(s);
}

void run_mutations(int count) {
  const std::vector<std::string> all = corpus();
  std::mt19937_64 bits(7);
  for (int i = 0; i < count; ++i) run(mutate(all[bits() % all.size()], all, bits));
}

TEST(FuzzSmoke, Mutations) { run_mutations(1500); }
TEST(SlowFuzzSmoke, Mutations) { run_mutations(40000); }

}  // namespace
