// Which sizes the kernels of a table serve. Nothing is compiled.
#include "tuner/dispatch/serving.h"

#include <gtest/gtest.h>

namespace roofgen::test::serving_test {
namespace {

class Serving : public ::testing::Test {
 protected:
  Problem problem(const std::string& op_name, std::map<std::string, int64_t> sizes) {
    op = *find_op(op_name);
    Problem p;
    p.op = op_name;
    p.dims = std::move(sizes);
    return *op->complete(p);
  }
  /// A table of one kernel: the default schedule with `changed` parameters.
  DispatchTable table_of(const Problem& tuned_for, const std::string& variant,
                         std::map<std::string, ParamValue> changed = {}) {
    const auto at = variants_of(files, *op, limits(device), tuned_for);
    EXPECT_TRUE(at) << to_string(at.error());
    const Variant& v = *at->find(variant);
    DispatchTable out;
    out.shapes.push_back({tuned_for, 1e-5, 0, 1e-5});
    DispatchKernel& kernel = out.kernels.emplace_back();
    kernel.variant = variant;
    for (const Stage& s : v.stages) {
      auto schedule = default_schedule(v, s, at->scope, changed);
      EXPECT_TRUE(schedule);
      kernel.stages.push_back({s.name, schedule->params, "", {}, 0, 0});
    }
    return out;
  }
  bool served(const DispatchTable& table, const Problem& other) {
    const auto out = serves(files, *op, device, table, 0, other);
    EXPECT_TRUE(out) << to_string(out.error());
    return out && *out;
  }

  DataFiles files;
  Device device = *load_device(files, "h200-sxm");
  const Op* op = nullptr;
};

ParamValue number(int64_t n) { return n; }

}  // namespace

TEST_F(Serving, AKernelWithoutCodeForTailsNeedsWholeTiles) {
  const DispatchTable whole = table_of(problem("gemm", {{"M", 256}, {"N", 256}, {"K", 256}}), "fused",
                                       {{"BM", number(64)}, {"BN", number(64)}});
  EXPECT_TRUE(served(whole, problem("gemm", {{"M", 512}, {"N", 256}, {"K", 256}})));
  EXPECT_FALSE(served(whole, problem("gemm", {{"M", 500}, {"N", 256}, {"K", 256}})));
  const DispatchTable tails = table_of(problem("gemm", {{"M", 250}, {"N", 256}, {"K", 256}}), "fused",
                                       {{"BM", number(64)}, {"BN", number(64)}});
  EXPECT_TRUE(served(tails, problem("gemm", {{"M", 512}, {"N", 256}, {"K", 256}})));
  EXPECT_TRUE(served(tails, problem("gemm", {{"M", 501}, {"N", 256}, {"K", 256}})));
}

// No assumption of the search space says so: the head dimension is a constant of the source.
TEST_F(Serving, AnotherHeadDimensionIsNotServed) {
  for (const char* variant : {"fused", "warpgroup"}) {
    const DispatchTable table =
        table_of(problem("attention", {{"L", 512}, {"d", 64}, {"batch", 2}, {"heads", 4}}), variant);
    EXPECT_TRUE(served(table, problem("attention", {{"L", 1024}, {"d", 64}, {"batch", 1}, {"heads", 8}}))) << variant;
    EXPECT_FALSE(served(table, problem("attention", {{"L", 512}, {"d", 128}, {"batch", 2}, {"heads", 4}}))) << variant;
  }
}

TEST_F(Serving, RowsInRegistersHaveALength) {
  const DispatchTable table = table_of(problem("rmsnorm", {{"rows", 64}, {"cols", 1024}}), "fused");
  EXPECT_TRUE(served(table, problem("rmsnorm", {{"rows", 4096}, {"cols", 1024}})));
  EXPECT_TRUE(served(table, problem("rmsnorm", {{"rows", 7}, {"cols", 1024}})));
  EXPECT_FALSE(served(table, problem("rmsnorm", {{"rows", 64}, {"cols", 2048}})));
}

TEST_F(Serving, AVariantThatTheProblemLacksDoesNotServeIt) {
  DispatchTable table = table_of(problem("gemm", {{"M", 256}, {"N", 256}, {"K", 256}}), "fused");
  table.kernels[0].variant = "no_such";
  const auto out = serves(files, *op, device, table, 0, problem("gemm", {{"M", 256}, {"N", 256}, {"K", 256}}));
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().message.find("another release made the table"), std::string::npos);
}

TEST_F(Serving, RequirementsAreConditionsOverTheSizesThatVary) {
  const Problem p = problem("gemm", {{"M", 256}, {"N", 256}, {"K", 256}});
  const auto at = variants_of(files, *op, limits(device), p);
  const Variant& v = *at->find("fused");
  const auto schedule = default_schedule(v, v.stages[0], at->scope, {{"BM", number(64)}, {"BN", number(64)}});
  auto checked = check_schedule(v, v.stages[0], *schedule, at->scope);
  ASSERT_TRUE(std::holds_alternative<Legal>(checked));
  const auto of_rows = requirements_of(v.stages[0], std::get<Legal>(checked), {"M"});
  ASSERT_TRUE(of_rows) << to_string(of_rows.error());
  EXPECT_EQ(std::ranges::count(*of_rows, "(M % 64) == 0"), 1);
  EXPECT_EQ(std::ranges::count_if(*of_rows, [](const std::string& c) { return c.find("N %") != c.npos; }), 0);
  const auto of_both = requirements_of(v.stages[0], std::get<Legal>(checked), {"M", "N"});
  EXPECT_EQ(std::ranges::count(*of_both, "(N % 64) == 0"), 1);
}

}  // namespace roofgen::test::serving_test
