// Several problems in one process, with one store, give the results that each gives alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/cli/program.h"

namespace roofgen::test::sessions_slow_test {
namespace {

/// A small problem: the flags of an op, as a suite writes them.
class Problems {
 public:
  Json random() {
    const size_t op = below(4);
    return op < 2 ? attention() : op == 2 ? gemm() : rows();
  }
  /// The problem with another value of one of its flags: what a key most likely lacks.
  Json neighbour(const Json& problem) {
    for (;;) {
      const auto op = problem["op"].get<std::string>();
      const Json other = op == "attention" ? attention() : op == "gemm" ? gemm() : rows();
      if (other["op"] != op) continue;
      Json out = problem;
      std::vector<std::string> names;
      for (const auto& [name, value] : other.items())
        if (!problem.contains(name) || problem[name] != value) names.push_back(name);
      if (names.empty()) continue;
      const std::string& name = names[below(names.size())];
      out[name] = other[name];
      if (out.value("kv-heads", 1) <= out.value("heads", 1)) return out;
    }
  }

 private:
  size_t below(size_t n) { return bits_() % n; }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }
  Json attention() {
    Json out{{"op", "attention"}, {"variant", {"fused"}}, {"d", 32}};
    out["L"] = one_of<int>({1, 2, 3, 7, 16, 17, 20});
    out["kv-len"] = one_of<int>({24, 33, 40, 65});
    out["kv-heads"] = one_of<int>({1, 2});
    out["heads"] = one_of<int>({2, 4, 6});
    out["batch"] = one_of<int>({1, 2, 3});
    if (below(2)) out["lse"] = true;
    if (below(3) == 0) out["scale"] = one_of<double>({0.25, 0.3});
    if (below(3) == 0) out["softcap"] = one_of<double>({5, 20});
    if (below(3) == 0) out["mask"] = one_of<std::string>({"k != 3", "q + 4 >= k", "(q + k + h) % 3 != 0"});
    if (below(4) == 0) out["score"] = one_of<std::string>({"s * 0.5", "s + 0.01 * (h + 1) * k", "s - 0.1 * b"});
    if (below(4) == 0) out["dtype"] = "fp16";
    if (below(5) == 0) out["kv-layout"] = "hnd";
    return out;
  }
  Json gemm() {
    Json out{{"op", "gemm"}, {"variant", {"fused"}}};
    out["M"] = one_of<int>({16, 33, 64});
    out["N"] = one_of<int>({16, 40, 72});
    out["K"] = one_of<int>({32, 64, 72});
    if (below(2)) out["b-layout"] = one_of<std::string>({"row", "col"});
    if (below(2)) out["epilogue"] = one_of<std::string>({"acc * 2", "relu(acc + bias[n])", "acc + residual[m,n]"});
    if (below(3) == 0) out["dtype"] = "fp16";
    return out;
  }
  Json rows() {
    Json out{{"op", one_of<std::string>({"softmax", "rmsnorm", "layernorm"})}, {"variant", {"fused"}}};
    out["rows"] = one_of<int>({3, 16, 33});
    out["cols"] = one_of<int>({64, 128, 200});
    if (below(2)) out["dtype"] = one_of<std::string>({"fp16", "fp32"});
    return out;
  }

  std::mt19937 bits_{20240607};
};

/// Results of the problems of one process, without how much of them was remembered.
std::vector<std::string> tune(const Home& home, const std::vector<Json>& problems) {
  Json suite{{"schema", "roofgen.suite.1"}, {"common", {{"evals", 1}, {"executor", "sim"}}}, {"problems", problems}};
  home.write("suite.json", json_line(suite));
  const Outcome o = home.run("tune --suite suite.json --json");
  const Json parsed = parse_json(o.out);
  std::vector<std::string> out;
  if (!parsed.contains("problems")) return {o.err};
  for (Json p : parsed["problems"]) {
    if (p.contains("result")) p["result"].erase("fresh");
    out.push_back(json_document(p));
  }
  return out;
}

}  // namespace

TEST(SlowSessions, PairsOfProblemsAreAsEachAlone) {
  {
    const Home home;
    if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  }
  Problems problems;
  std::map<std::string, std::string> alone;
  const auto of_alone = [&](const Json& problem) -> const std::string& {
    std::string& known = alone[json_line(problem)];
    const Home home;
    if (known.empty()) known = tune(home, {problem}).front();
    return known;
  };
  Json last = problems.random();
  for (int pair = 0; pair < 40; ++pair) {
    // Each problem but the first of a family is in two pairs, so that it runs alone once for both.
    const Json first = pair % 5 == 0 ? problems.random() : last;
    last = problems.neighbour(first);
    const Home home;
    const std::vector<std::string> both = tune(home, {first, last});
    ASSERT_EQ(both.size(), 2u) << first << " and " << last << ": " << both.front();
    EXPECT_THAT(both[0], ::testing::HasSubstr("\"verified\": true")) << first;
    EXPECT_EQ(both[0], of_alone(first)) << first << " before " << last;
    EXPECT_EQ(both[1], of_alone(last)) << last << " after " << first;
  }
}

}  // namespace roofgen::test::sessions_slow_test
