// Grouped GEMM: bad input, its reference against the textbook sum, kernels in the simulator for sizes of all kinds.
#include <gtest/gtest.h>

#include <random>

#include "generator/ops/elements.h"
#include "generator/ops/gemm.h"
#include "generator/ops/gemm_groups.h"
#include "tests/kernels/expect_caught.h"
#include "tests/support/cases.h"

namespace roofgen::test::grouped_gemm_test {
namespace {

struct Grouped {
  std::string sizes;
  int64_t N, K;
  std::string epilogue = "acc";
  DType dtype = DType::kBf16;
  std::string gated = {};
  std::map<std::string, int64_t> dims = {};  ///< besides N and K
  bool gather = false;
  std::string scatter = {};
  std::map<std::string, DType> dtypes = {};
};

Result<Problem> grouped(const Grouped& g) {
  Problem p{"grouped_gemm", g.dims, g.dtype, {{"gather", g.gather}}, {}};
  p.dtypes = g.dtypes;
  p.dims["N"] = g.N, p.dims["K"] = g.K;
  p.texts = {{"epilogue", g.epilogue}, {"gated", g.gated}, {"scatter", g.scatter}};
  if (!g.sizes.empty()) p.texts["sizes"] = g.sizes;
  return grouped_gemm_op().complete(std::move(p));
}

// ---- The op ----------------------------------------------------------------------------------------

std::string refusal(const Grouped& g) {
  const auto problem = grouped(g);
  if (problem) return "accepted";
  EXPECT_EQ(problem.error().exit, Exit::kUsage);
  return to_string(problem.error());
}

TEST(GroupedGemmOp, RefusesSizesThatDoNotAgree) {
  EXPECT_EQ(refusal({"", 8, 8}), "error: grouped_gemm needs --M, or --sizes");
  EXPECT_EQ(refusal({"", 8, 8, "acc", DType::kBf16, "", {{"M", 8}}}),
            "error: grouped_gemm needs --experts, or --sizes");
  EXPECT_EQ(refusal({"", 8, 8, "acc", DType::kBf16, "", {{"M", 8}, {"experts", 0}}}),
            "error: experts is 0; 1 to 1024 was expected");
  EXPECT_EQ(refusal({"", 8, 8, "acc", DType::kBf16, "", {{"M", 8}, {"experts", 1025}}}),
            "error: experts is 1025; 1 to 1024 was expected");
  EXPECT_EQ(refusal({"3,4", 8, 8, "acc", DType::kBf16, "", {{"M", 8}}}),
            "error: M is 8, but --sizes adds up to 7 rows; leave one of them out");
  EXPECT_EQ(refusal({"3,4", 8, 8, "acc", DType::kBf16, "", {{"experts", 3}}}),
            "error: experts is 3, but --sizes has 2; leave it out");
  EXPECT_EQ(refusal({"0,0", 8, 8}), "error: --sizes adds up to 0 rows; 1 to 1073741824 were expected");
  EXPECT_EQ(refusal({"3,-4,9", 8, 8}),
            "--sizes:1:3: error: a size of 0 to 1073741824 was expected\n"
            "    1 | 3,-4,9\n"
            "      |   ^~");
  EXPECT_NE(refusal({"3,four", 8, 8}).find("a size was expected; sizes are whole numbers"), std::string::npos);
  EXPECT_NE(refusal({"3,4", 1 << 30, 8}).find("2 experts of 1073741824 columns"), std::string::npos);
}

TEST(GroupedGemmOp, RefusesTokensThatDoNotAgree) {
  const auto of = [](std::map<std::string, int64_t> dims, const std::string& sizes = "") {
    return refusal({sizes, 8, 8, "acc", DType::kBf16, "", std::move(dims), true});
  };
  EXPECT_EQ(of({{"M", 8}, {"experts", 2}}), "error: --gather needs --tokens and --topk");
  EXPECT_EQ(of({{"tokens", 8}, {"experts", 2}}), "error: --tokens needs --topk");
  EXPECT_EQ(of({{"tokens", 8}, {"topk", 2}, {"M", 15}, {"experts", 2}}),
            "error: M is 15, but 8 tokens with 2 experts each have 16 rows; leave it out");
  EXPECT_EQ(of({{"tokens", 8}, {"topk", 2}}, "9,8"),
            "error: --tokens and --topk give 16 rows, but --sizes adds up to 17");
  EXPECT_EQ(of({{"tokens", 8}, {"topk", 2}}, "9,7"), "accepted");
  Grouped scattered{"9,7", 8, 8, "acc", DType::kBf16, "", {}, false, "weighted"};
  EXPECT_EQ(refusal(scattered), "error: --scatter needs --tokens and --topk");
  scattered.dims = {{"tokens", 8}, {"topk", 2}};
  EXPECT_EQ(refusal(scattered), "accepted");
  scattered.dtype = DType::kInt8;
  EXPECT_EQ(refusal(scattered), "accepted") << "stored as bf16";
  scattered.dtypes = {{"out", DType::kInt32}};
  EXPECT_NE(refusal(scattered).find("--out-dtype is int32"), std::string::npos);
  scattered.scatter = "sum";
  EXPECT_EQ(refusal(scattered), "error: scatter is 'sum'; weighted was expected");
}

TEST(GroupedGemmOp, EveryTokenHasItsRowsAndTheNextRowIsAnother) {
  for (const int64_t tokens : {1, 2, 3, 8, 12, 97, 4096}) {
    const gemm::Routing routing(tokens);
    std::map<int64_t, int> rows;
    for (int64_t row = 0; row < 3 * tokens; ++row) {
      ++rows[routing.token_of(row)];
      EXPECT_TRUE(tokens == 1 || routing.token_of(row) != routing.token_of(row + 1)) << row;
      EXPECT_EQ(routing.row_of(routing.token_of(row), row / tokens), row);
    }
    EXPECT_EQ(rows.size(), static_cast<size_t>(tokens));
    for (const auto& [token, count] : rows) EXPECT_EQ(count, 3) << token;
  }
}

TEST(GroupedGemmOp, DefaultSizesAreUnevenAndAddUp) {
  for (const int64_t rows : {1, 7, 4096, 100000})
    for (const int64_t experts : {1, 8, 1000}) {
      const auto problem = grouped({"", 8, 8, "acc", DType::kBf16, "", {{"M", rows}, {"experts", experts}}});
      ASSERT_TRUE(problem) << to_string(problem.error());
      const gemm::Groups groups(*problem);
      EXPECT_EQ(groups.count(), experts);
      EXPECT_EQ(groups.offsets().back(), rows);
      EXPECT_TRUE(std::is_sorted(groups.offsets().begin(), groups.offsets().end()));
    }
  const auto eight = grouped({"", 8, 8, "acc", DType::kBf16, "", {{"M", 4096}, {"experts", 8}}});
  std::set<int64_t> sizes;
  for (int64_t e = 0; e < 8; ++e) sizes.insert(gemm::Groups(*eight).end(e) - gemm::Groups(*eight).begin(e));
  EXPECT_EQ(sizes.size(), 8u);
}

TEST(GroupedGemmOp, TheReducedProblemHasManyEmptyExpertsAndASingleRow) {
  const Problem reduced = grouped_gemm_op().reduced(*grouped({"5000,17,70000,3", 4096, 64}));
  const gemm::Groups groups(reduced);
  std::vector<int64_t> sizes;
  for (int64_t e = 0; e < groups.count(); ++e) sizes.push_back(groups.end(e) - groups.begin(e));
  EXPECT_EQ(sizes.size(), 38u);
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 0), 34);
  EXPECT_EQ(sizes[35], 1);
  EXPECT_EQ(sizes[37], 3);
  // Not where their B would be large.
  EXPECT_EQ(gemm::Groups(grouped_gemm_op().reduced(*grouped({"5000,17,70000,3", 4096, 1 << 17}))).count(), 5);
  EXPECT_LE(groups.offsets().back(), 700);
  EXPECT_EQ(reduced.dims.at("M"), groups.offsets().back());
}

TEST(GroupedGemmOp, WeightsOfEmptyExpertsAreNotRequired) {
  const Problem problem = *grouped({"4,0,0,4", 16, 32});
  const double bytes = grouped_gemm_op().required(problem)->dram_bytes;
  EXPECT_EQ(bytes, 2.0 * (8 * 32 + 2 * 16 * 32 + 8 * 16) + 5 * 4);
  EXPECT_EQ(grouped_gemm_op().required(problem)->mma_flops, 2.0 * 8 * 16 * 32);
}

/// The elements of an input, from fill().
std::vector<double> contents(const Problem& problem, const std::string& name) {
  for (const Buffer& b : grouped_gemm_op().buffers(problem)) {
    if (b.name != name) continue;
    std::vector<std::byte> bytes(b.bytes);
    grouped_gemm_op().fill(problem, InputPattern::kNormal, name, 0, bytes);
    std::vector<double> out(bytes.size() / static_cast<size_t>(size_of(b.dtype)));
    for (size_t i = 0; i < out.size(); ++i) out[i] = load_element(bytes.data(), i, b.dtype);
    return out;
  }
  ADD_FAILURE() << "no buffer " << name;
  return {};
}

/// compare() accepts the textbook sum over the row's own expert and no other expert's.
TEST(GroupedGemmOp, TheReferenceIsTheSumOverTheRowsExpert) {
  const int64_t N = 24, K = 40;
  const Problem problem = *grouped({"3,0,1,5", N, K, "acc + bias[n] + residual[m,n]"});
  const std::vector<int64_t> expert = {0, 0, 0, 2, 3, 3, 3, 3, 3};
  const auto a = contents(problem, "A"), b = contents(problem, "B"), bias = contents(problem, "bias"),
             residual = contents(problem, "residual");
  EXPECT_EQ(contents(problem, "offsets"), (std::vector<double>{0, 3, 3, 4, 9}));
  ASSERT_EQ(b.size(), static_cast<size_t>(4 * N * K));
  ASSERT_EQ(bias.size(), static_cast<size_t>(4 * N));
  for (const int64_t shift : {0, 1}) {
    const ElementReader read = [&](const std::string&, uint64_t first, std::span<double> out, std::vector<bool>*) {
      for (size_t i = 0; i < out.size(); ++i) {
        const auto m = static_cast<int64_t>(first + i) / N, n = static_cast<int64_t>(first + i) % N;
        const int64_t e = (expert[static_cast<size_t>(m)] + shift) % 4;
        double sum = bias[static_cast<size_t>(e * N + n)] + residual[static_cast<size_t>(m * N + n)];
        for (int64_t k = 0; k < K; ++k)
          sum += a[static_cast<size_t>(m * K + k)] * b[static_cast<size_t>((e * N + n) * K + k)];
        out[i] = round_to_dtype(sum, DType::kBf16);
      }
      return Result<void>();
    };
    const auto c =
        grouped_gemm_op().compare(problem, InputPattern::kNormal, "fused", "grouped_gemm", {0, 0, 0, 9}, read);
    ASSERT_TRUE(c) << to_string(c.error());
    EXPECT_EQ(c->rows, 9u);
    EXPECT_EQ(c->failure.empty(), shift == 0) << c->failure;
  }
}

// ---- Kernels ---------------------------------------------------------------------------------------

struct Small {
  std::string name;
  Grouped problem;
  Pins pins = {};
  int64_t sms = 132;
};
void PrintTo(const Small& c, std::ostream* out) { *out << c.name; }

Pins narrow(std::initializer_list<std::pair<const char*, int64_t>> values = {}) {
  Pins out{{"BM", int64_t{64}}, {"BN", int64_t{64}}, {"groups", int64_t{1}}, {"stages", int64_t{2}}};
  for (const auto& [name, value] : values) out[name] = value;
  return out;
}
Pins with_turns(Pins out) {
  out["pingpong"] = true;
  return out;
}
Pins pingpong() { return with_turns(narrow({{"groups", 2}, {"wide", 4}})); }
Pins walking(Pins out) {
  out["persistent"] = true;
  return out;
}
Pins by_tma(Pins out) {
  out["store"] = std::string("tma");
  return out;
}
Pins loading(Pins out) {
  out["load"] = std::string("tma");
  return out;
}
std::string many_sizes() {
  std::string out = "70";
  for (int e = 1; e < 75; ++e) out += "," + std::to_string(e % 3 == 0 ? e % 11 : e % 7 == 0 || e == 74 ? 66 : 0);
  return out;
}

class Kernels : public testing::TestWithParam<Small> {
 protected:
  static void expect_right(const std::string& variant, const Pins& pins) {
    if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
    const auto problem = grouped(GetParam().problem);
    ASSERT_TRUE(problem) << to_string(problem.error());
    Request request{*problem, variant, {{"grouped_gemm", pins}}, InputPattern::kNormal, {}};
    request.sms = GetParam().sms;
    const auto runs = run(request);
    ASSERT_TRUE(runs) << to_string(runs.error());
    EXPECT_EQ(what_is_wrong(*runs), "");
  }
};

class GroupedWarpgroups : public Kernels {};
TEST_P(GroupedWarpgroups, AreRight) { expect_right("warpgroup", GetParam().pins); }

TEST_EACH(GroupedGemm, GroupedWarpgroups, Small{"default", {"130,0,1,200", 320, 200}},
          Small{"narrow", {"70,0,1,63,64,65", 136, 200}, narrow()}, Small{"one_expert", {"150", 136, 72}, narrow()},
          Small{"only_the_last", {"0,0,0,9", 136, 72}, narrow()},
          Small{"only_the_first", {"9,0,0,0", 136, 72}, narrow()},
          Small{"more_than_a_warp", {many_sizes(), 64, 72}, narrow()},
          Small{"row_tiles_of_a_group", {"200,1,0,100,300", 200, 72}, narrow({{"group", 4}})},
          Small{"strip", {"70,1,40", 320, 200}, narrow({{"wide", 4}})},
          Small{"pingpong", {"70,1,40", 400, 328}, pingpong()},
          Small{"tma_store", {"70,0,1,63,64,65", 136, 200}, by_tma(narrow())},
          Small{"tma_store_of_two_tiles_of_rows",
                {"270,0,1,33", 200, 72},
                by_tma({{"BM", int64_t{256}}, {"BN", int64_t{64}}, {"groups", int64_t{2}}})},
          Small{"tma_store_gated",
                {"70,0,1,40", 272, 72, "acc * 0.1 + bias[n]", DType::kBf16, "silu"},
                by_tma(walking(narrow({{"BN", 128}}))),
                3},
          Small{"persistent", {"70,0,1,63,64,65", 136, 200}, walking(narrow({{"group", 4}})), 5},
          Small{"persistent_of_many_experts", {many_sizes(), 128, 72}, walking(narrow({{"group", 2}})), 7},
          Small{"persistent_pingpong", {"70,1,40,0,130", 200, 328}, with_turns(walking(narrow({{"groups", 2}}))), 3},
          Small{"persistent_tensors",
                {"70,0,1,40", 136, 72, "gelu(acc * 0.1 + bias[n]) + residual[m,n] * row_bias[m]"},
                walking(narrow()),
                3},
          Small{"cluster", {"200,1,0,100,300", 200, 72}, narrow({{"cluster", 2}, {"group", 2}})},
          Small{"cluster_of_four", {many_sizes(), 64, 72}, narrow({{"cluster", 4}, {"group", 8}})},
          Small{"cluster_of_columns", {"70,0,1,63,64,65", 264, 200}, narrow({{"cluster_n", 2}})},
          Small{"cluster_2x2",
                {"200,1,0,70", 264, 328, "gelu(acc * 0.1 + bias[n]) + residual[m,n]"},
                by_tma(narrow({{"cluster", 2}, {"cluster_n", 2}, {"group", 4}}))},
          Small{"cluster_pingpong",
                {"200,1,0,70", 400, 328},
                with_turns(narrow({{"groups", 2}, {"wide", 4}, {"cluster", 2}, {"group", 2}}))},
          Small{"persistent_cluster",
                {"200,1,0,100,300", 264, 200},
                by_tma(walking(narrow({{"cluster", 2}, {"cluster_n", 2}, {"group", 4}}))),
                9},
          Small{"loads_of_the_epilogue",
                {"70,0,1,40", 136, 72, "gelu(acc * 0.1 + bias[n]) + residual[m,n] * row_bias[m]"},
                loading(narrow())},
          Small{"persistent_loads_of_the_epilogue",
                {"70,0,1,40", 136, 72, "gelu(acc * 0.1 + bias[n]) + residual[m,n] * row_bias[m]"},
                loading(walking(narrow())),
                3},
          Small{"fp16", {"70,0,40", 136, 72, "acc", DType::kFp16}, narrow()},
          Small{"int8", {"70,0,40", 136, 80, "acc", DType::kInt8}, narrow()},
          Small{"tf32", {"70,0,40", 136, 72, "acc", DType::kTf32}, narrow()},
          Small{"tensors", {"70,0,1,40", 136, 72, "gelu(acc * 0.1 + bias[n]) + residual[m,n] * row_bias[m]"}, narrow()},
          Small{"gated", {"70,0,1,40", 256, 72, "acc * 0.1 + bias[n]", DType::kBf16, "silu"}, narrow()},
          Small{"row_norm", {"70,0,1,40", 120, 72, "acc * rsqrt(mean(acc * acc) + 0.001)"}});

class GroupedMma : public Kernels {};
TEST_P(GroupedMma, IsRight) { expect_right("fused", GetParam().pins); }

TEST_EACH(GroupedGemm, GroupedMma, Small{"default", {"130,0,1,200", 320, 200}},
          Small{"odd_sizes", {"70,0,1,63,64,65", 137, 201}},
          Small{"more_than_a_warp", {many_sizes(), 64, 72}, {{"BM", int64_t{64}}, {"BN", int64_t{64}}}},
          Small{"row_tiles_of_a_group", {"200,1,0,100,300", 200, 72}, {{"BM", int64_t{64}}, {"group", int64_t{4}}}},
          Small{"int8", {"70,0,40", 136, 80, "acc", DType::kInt8}},
          Small{"tensors", {"70,0,1,40", 136, 72, "gelu(acc * 0.1 + bias[n]) + residual[m,n] * row_bias[m]"}},
          Small{"gated", {"70,0,1,40", 256, 72, "acc * 0.1 + bias[n]", DType::kBf16, "silu"}});

/// Sizes of all kinds: empty, one row, one less and one more than a tile, several tiles.
void expect_random_sizes_right(int rounds) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  std::mt19937 random(20);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < rounds; ++round) {
    std::string sizes = std::to_string(pick(1, 70));
    for (int64_t e = pick(3, 9); e > 0; --e) {
      const int64_t kinds[] = {0, 0, 1, 63, 64, 65, pick(2, 200)};
      sizes += "," + std::to_string(kinds[pick(0, 6)]);
    }
    const Grouped g{sizes, 8 * pick(1, 24), 8 * pick(1, 16), round % 2 ? "acc + bias[n]" : "acc + residual[m,n]"};
    const auto problem = grouped(g);
    ASSERT_TRUE(problem) << to_string(problem.error());
    for (const auto& [variant, pins] : {std::pair{"warpgroup", narrow({{"group", 1 << pick(0, 2)}})},
                                        std::pair{"fused", Pins{{"BM", int64_t{64}}, {"group", 1 << pick(0, 2)}}}}) {
      const auto runs = run({*problem, variant, {{"grouped_gemm", pins}}, InputPattern::kNormal, {}});
      ASSERT_TRUE(runs) << to_string(runs.error());
      EXPECT_EQ(what_is_wrong(*runs), "") << variant << " " << sizes;
    }
  }
}

TEST(GroupedGemm, RandomSizesAreRight) { expect_random_sizes_right(4); }
TEST(SlowGroupedGemm, RandomSizesAreRight) { expect_random_sizes_right(12); }

// ---- Gathered rows ---------------------------------------------------------------------------------

Grouped gathered(const std::string& sizes, int64_t tokens, int64_t topk, int64_t N, int64_t K,
                 const std::string& epilogue = "acc", DType dtype = DType::kBf16) {
  return {sizes, N, K, epilogue, dtype, "", {{"tokens", tokens}, {"topk", topk}}, true};
}

struct Gathered {
  std::string name, variant;
  Grouped problem;
  Pins pins = {}, gather = {};
  int64_t sms = 132;
};
void PrintTo(const Gathered& c, std::ostream* out) { *out << c.name; }

class GroupedGather : public testing::TestWithParam<Gathered> {};

TEST_P(GroupedGather, IsRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Gathered& g = GetParam();
  const auto problem = grouped(g.problem);
  ASSERT_TRUE(problem) << to_string(problem.error());
  Request request{*problem, g.variant, {{"grouped_gemm", g.pins}, {"gather", g.gather}}, InputPattern::kNormal, {}};
  request.sms = g.sms;
  const auto runs = run(request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_EQ(what_is_wrong(*runs), "");
}

const Pins kSmallMma{{"BM", int64_t{64}}, {"BN", int64_t{64}}};
TEST_EACH(GroupedGemm, GroupedGather, Gathered{"mma", "fused", gathered("70,0,1,63", 67, 2, 136, 200)},
          Gathered{"mma_small_tiles", "fused", gathered("70,0,1,63", 67, 2, 136, 200), kSmallMma},
          Gathered{"mma_rows_of_4_bytes", "fused", gathered("70,0,1,63", 67, 2, 136, 202), kSmallMma},
          Gathered{"mma_int8", "fused", gathered("70,0,1,63", 67, 2, 136, 204, "acc", DType::kInt8)},
          Gathered{"warpgroups", "warpgroup", gathered("170,0,1,99", 135, 2, 320, 200)},
          Gathered{"warpgroups_narrow", "warpgroup", gathered("70,0,1,63", 67, 2, 136, 328), narrow()},
          Gathered{"warpgroups_of_five_stages", "warpgroup", gathered("70,0,1,63", 67, 2, 136, 456),
                   narrow({{"stages", 5}})},
          Gathered{"warpgroups_less_steps_than_stages", "warpgroup", gathered("70,0,1,63", 67, 2, 136, 136),
                   narrow({{"stages", 3}})},
          Gathered{"warpgroups_one_step", "warpgroup", gathered("70,0,1,63", 67, 2, 136, 24), narrow()},
          Gathered{"warpgroups_strip", "warpgroup", gathered("70,1,40", 37, 3, 320, 200), narrow({{"wide", 4}})},
          Gathered{"warpgroups_pingpong", "warpgroup", gathered("70,1,40", 37, 3, 400, 328), pingpong()},
          Gathered{"warpgroups_persistent",
                   "warpgroup",
                   gathered("70,0,1,63", 67, 2, 136, 328),
                   walking(narrow({{"stages", 3}})),
                   {},
                   3},
          Gathered{"warpgroups_tf32", "warpgroup", gathered("70,0,41", 37, 3, 136, 76, "acc", DType::kTf32), narrow()},
          Gathered{"warpgroups_of_three_groups",
                   "warpgroup",
                   gathered("170,0,1,99", 135, 2, 200, 200),
                   {{"BM", int64_t{192}}, {"BN", int64_t{96}}, {"groups", int64_t{3}}}},
          Gathered{"two_kernels", "unfused", gathered("70,0,1,63", 67, 2, 136, 200, "acc + bias[n]")},
          Gathered{"two_kernels_odd", "unfused", gathered("70,0,1,63", 67, 2, 137, 201)},
          Gathered{"two_kernels_of_many_threads",
                   "unfused",
                   gathered("70,0,1,63", 67, 2, 136, 2056),
                   {},
                   {{"row_threads", int64_t{128}}, {"batch", int64_t{2}}}},
          Gathered{"two_kernels_of_warpgroups", "unfused_warpgroup", gathered("70,0,1,63", 67, 2, 136, 200), narrow()});

// ---- Sums of tokens --------------------------------------------------------------------------------

Grouped scattered(Grouped g) {
  g.scatter = "weighted";
  return g;
}

class GroupedScatter : public testing::TestWithParam<Gathered> {};

TEST_P(GroupedScatter, IsRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Gathered& g = GetParam();
  const auto problem = grouped(g.problem);
  ASSERT_TRUE(problem) << to_string(problem.error());
  for (const InputPattern pattern : {InputPattern::kNormal, InputPattern::kIntegers, InputPattern::kExtremes}) {
    const auto runs = run({*problem, g.variant, {{"grouped_gemm", g.pins}, {"combine", g.gather}}, pattern, {}});
    ASSERT_TRUE(runs) << to_string(runs.error());
    EXPECT_EQ(runs->back().stage, "combine");
    EXPECT_EQ(what_is_wrong(*runs), "");
  }
}

TEST_EACH(
    GroupedGemm, GroupedScatter, Gathered{"mma", "fused", scattered(gathered("70,0,1,63", 67, 2, 136, 72)), kSmallMma},
    Gathered{"warpgroups", "warpgroup", scattered(gathered("70,0,1,40", 37, 3, 136, 72)), narrow()},
    Gathered{"three_kernels", "unfused_warpgroup", scattered(gathered("70,0,1,63", 67, 2, 136, 72)), narrow()},
    Gathered{"one_expert_each", "fused", scattered(gathered("70,0,1,63", 134, 1, 137, 72)), kSmallMma},
    Gathered{"bias", "fused", scattered(gathered("70,0,1,63", 67, 2, 136, 72, "acc + bias[n]")), kSmallMma},
    Gathered{"fp32", "fused", scattered(gathered("70,0,1,63", 67, 2, 136, 72, "acc + residual[m,n]", DType::kTf32)),
             kSmallMma},
    Gathered{"unrolled",
             "fused",
             scattered(gathered("70,0,1,65", 34, 4, 136, 72)),
             kSmallMma,
             {{"unroll", int64_t{4}}, {"row_threads", int64_t{32}}, {"threads", int64_t{128}}}},
    Gathered{
        "gated", "fused",
        scattered({"70,0,1,63", 136, 72, "acc * 0.1 + bias[n]", DType::kBf16, "silu", {{"tokens", 67}, {"topk", 2}}}),
        kSmallMma});

/// compare() accepts the textbook sum of the rows by weight, and none with the weights of two experts exchanged.
TEST(GroupedGemmOp, TheReferenceOfATokenIsTheWeightedSumOfItsRows) {
  const int64_t N = 24, K = 40, tokens = 6, topk = 2;
  const Problem problem = *grouped(scattered(gathered("3,0,1,8", tokens, topk, N, K)));
  const std::vector<int64_t> expert = {0, 0, 0, 2, 3, 3, 3, 3, 3, 3, 3, 3};
  const auto a = contents(problem, "A"), b = contents(problem, "B"), weights = contents(problem, "weights"),
             rows = contents(problem, "token_rows"), row_tokens = contents(problem, "row_tokens");
  ASSERT_EQ(a.size(), static_cast<size_t>(tokens * K));
  for (const bool exchanged : {false, true}) {
    const ElementReader read = [&](const std::string& buffer, uint64_t first, std::span<double> out,
                                   std::vector<bool>*) {
      EXPECT_EQ(buffer, "Y");
      for (size_t i = 0; i < out.size(); ++i) {
        const auto token = static_cast<int64_t>(first + i) / N, n = static_cast<int64_t>(first + i) % N;
        double total = 0;
        for (int64_t j = 0; j < topk; ++j) {
          const auto row = static_cast<size_t>(rows[static_cast<size_t>(token * topk + j)]);
          EXPECT_EQ(row_tokens[row], token);
          double sum = 0;
          for (int64_t k = 0; k < K; ++k)
            sum += a[static_cast<size_t>(token * K + k)] * b[static_cast<size_t>((expert[row] * N + n) * K + k)];
          total += weights[static_cast<size_t>(token * topk + (exchanged ? topk - 1 - j : j))] *
                   round_to_dtype(sum, DType::kBf16);
        }
        out[i] = round_to_dtype(total, DType::kBf16);
      }
      return Result<void>();
    };
    const auto c = grouped_gemm_op().compare(problem, InputPattern::kNormal, "fused", "combine", {0, 0, 0, 12}, read);
    ASSERT_TRUE(c) << to_string(c.error());
    EXPECT_EQ(c->failure.empty(), !exchanged) << c->failure;
  }
}

TEST(GroupedGemm, RowsAtTheEndOfAnExpertAreStoredByTheWarp) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto problem = grouped({"70,0,1,40", 136, 72});
  ASSERT_TRUE(problem) << to_string(problem.error());
  for (const auto& [from, to] :
       {std::pair{"here >= 16", "here > 0"}, std::pair{"row < here;", "row < here - 1;"},
        std::pair{"lane % 8 * 16 < bytes", "bytes > 0"}, std::pair{"row % 8) * 16);", "0) * 16);"}})
    expect_caught(run({*problem,
                       "warpgroup",
                       {{"grouped_gemm", by_tma(narrow())}},
                       InputPattern::kNormal,
                       {{"lib/tensor_stage.cuh", from, to}}}),
                  Fate::kEither, 1.9);
}

}  // namespace
}  // namespace roofgen::test::grouped_gemm_test
