// roofgen tune with lists of sizes: the dispatch table, its file, and bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::family_test {
namespace {

using ::testing::HasSubstr;

class FamilyCli : public Compiling {};
using SlowFamilyCli = FamilyCli;

void expect_within(const Json& table, double within) {
  EXPECT_EQ(table["schema"], "roofgen.dispatch.1");
  EXPECT_EQ(table["times"]["origin"], "model");
  EXPECT_LE(table["kernels"].size(), table["shapes"].size());
  for (const Json& shape : table["shapes"]) {
    EXPECT_LT(shape["kernel"].get<size_t>(), table["kernels"].size());
    EXPECT_GE(shape["ratio"].get<double>(), 1);
    EXPECT_LE(shape["ratio"].get<double>(), 1 + within);
  }
}

}  // namespace

TEST_F(FamilyCli, ATableOfRowKernels) {
  const std::string command = "tune rmsnorm --rows 64,256 --cols 256 --evals 2 --executor sim ";
  const Outcome text = home.run(command + "--table out.json");
  ASSERT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("rows  own best  kernel"));
  EXPECT_THAT(text.out, HasSubstr("2 shapes"));
  EXPECT_THAT(text.out, HasSubstr("nothing was measured"));
  const std::string file = home.read("out.json");
  expect_within(parse_json(file), 0.02);
  // The same store, the same bytes; and a wide tolerance leaves one kernel.
  EXPECT_EQ(home.run(command + "--json").out, file);
  const Json one = parse_json(home.run(command + "--json --within 100%").out);
  expect_within(one, 1);
  EXPECT_EQ(one["kernels"].size(), 1u);
}

// The second shape begins with the schedules of the first one, and ends when they leave nothing to gain.
TEST_F(SlowFamilyCli, LaterShapesTryFewerCandidates) {
  const Outcome o = home.run("tune softmax --rows 256,1024 --cols 256 --evals 16 --executor sim");
  ASSERT_EQ(o.exit, 0) << o.err;
  std::map<std::string, int> verified;
  const Json listed = parse_json(home.run("db list --json").out);
  for (const Json& p : listed["problems"]) verified[p["problem"].get<std::string>()] = p["verified"].get<int>();
  EXPECT_GE(verified["softmax bf16 cols=256 rows=256"], 16);
  EXPECT_GE(verified["softmax bf16 cols=256 rows=1024"], 5);
  EXPECT_LT(verified["softmax bf16 cols=256 rows=1024"], 16);
}

TEST_F(SlowFamilyCli, SeveralListsAreAProductAndNoStoreIsNeeded) {
  const Outcome o =
      home.run("tune gemm --M 64,100 --N 64,128 --K 64 --variant fused --evals 2 --executor sim --json --no-store");
  ASSERT_EQ(o.exit, 0) << o.err;
  const Json table = parse_json(o.out);
  expect_within(table, 0.02);
  ASSERT_EQ(table["shapes"].size(), 4u);
  EXPECT_EQ(table["shapes"][1]["problem"]["M"], 64);
  EXPECT_EQ(table["shapes"][1]["problem"]["N"], 128);
  EXPECT_EQ(table["shapes"][2]["problem"]["M"], 100);
  EXPECT_FALSE(fs::exists(home.dir() / "data/evaluations.sqlite"));
}

TEST_F(FamilyCli, AKilledRunGoesOn) {
  const std::string command = "tune softmax --rows 16,64 --cols 128 --evals 2 --executor sim --json";
  Home unbroken;
  const Outcome whole = unbroken.run(command);
  ASSERT_EQ(whole.exit, 0) << whole.err;
  home.run_and_signal(command, "KILL");
  const Outcome resumed = home.run(command);
  ASSERT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_EQ(resumed.out, whole.out);
}

TEST(FamilyUsage, BadListsAreOneLine) {
  const Home home;
  const std::string norm = "tune rmsnorm --cols 64 --rows ";
  const std::pair<std::string, std::string> cases[] = {
      {norm + "64,", "--rows 64,: \"\" is not a size"},
      {norm + "64,x", "--rows 64,x: \"x\" is not a size"},
      {norm + "64,128,64", "--rows 64,128,64: 64 occurs twice"},
      {norm + "''", "--rows"},
      {norm + "64,0", "rows is 0"},
      {norm + "1,2,3,4,5,6,7,8,9 --cols 8,16,24,32,40,48,56,64", "--cols"},
      {norm + "64,32 --within 101%", "--within 101%: a percentage"},
      {norm + "64,32 --within few", "--within few: a percentage"},
      {norm + "64,32 --html f.html", "--html is for a single problem"},
      {norm + "64,32 --explain", "--explain is for a single problem"},
      {norm + "64 --table t.json", "--table needs a list of sizes"},
      {norm + "64 --within 3%", "--within needs a list of sizes"},
      {norm + "64,32 --eps 1,2", "--eps"},
      {"emit rmsnorm -o out --cols 64 --rows 64,32 --archs 80", "--archs is for a single problem"},
      {"emit rmsnorm -o out --cols 64 --rows 64,32 --replay", "--replay is for a single problem"},
      {"emit rmsnorm -o out --cols 64 --rows 64,32 --within x", "--within x: a percentage"},
      {"emit rmsnorm -o out --cols 64 --rows 64 --within 3%", "--within needs a list of sizes"},
      {"emit attention -o out --L 64 --d 64,128", "a list of d: kernels of a bundle have one d"},
      {"generate rmsnorm --cols 64 --rows 64,32", "--rows 64,32: one size was expected"},
      {"whatif --chain 'gemm > bias' --M 64,32 --N 64 --K 64", "--M 64,32: one size was expected"},
      {"tune --suite s.json --table t.json", "--table excludes --suite"},
  };
  for (const auto& [command, expected] : cases) {
    const Outcome o = home.run(command);
    EXPECT_EQ(o.exit, 2) << command;
    EXPECT_THAT(o.err, HasSubstr(expected)) << command;
    EXPECT_EQ(std::ranges::count(o.err, '\n'), 1) << command << "\n" << o.err;
    EXPECT_EQ(o.out, "") << command;
  }
  const Outcome many = home.run("tune gemm --M 1,2,3,4,5,6,7,8,9,10 --N 8,16,24,32,40,48,56 --K 8");
  EXPECT_THAT(many.err, HasSubstr("--M 1,2,3,4,5,6,7,8,9,10 --N 8,16,24,32,40,48,56: 70 shapes; 64 at most"));
}

}  // namespace roofgen::test::family_test
