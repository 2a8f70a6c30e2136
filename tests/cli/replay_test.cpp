// roofgen replay: several strategies in one call, as text, JSON and page.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::cli::replay_cli_test {
namespace {

using test::Home;
using test::Outcome;

/// Two axes of 12 values; the time has one minimum, and each 7th point fails.
std::string cachefile() {
  Json cache = Json::object();
  for (int x = 1; x <= 12; ++x)
    for (int y = 1; y <= 12; ++y) {
      Json& point = cache[std::to_string(x) + "," + std::to_string(y)] = {{"x", x}, {"y", y}};
      if ((12 * x + y) % 7 == 0)
        point["time"] = "RuntimeFailedConfig";
      else
        point["time"] = 1 + (x - 9) * (x - 9) + (y - 4) * (y - 4);
    }
  return json_line({{"device_name", "d"},
                    {"kernel_name", "k"},
                    {"tune_params_keys", {"x", "y"}},
                    {"tune_params", Json::object()},
                    {"objective", "time"},
                    {"cache", cache}});
}

TEST(ReplayCommand, StrategiesOfOneCallAreThoseOfOneCallEach) {
  const Home home;
  home.write("s.json", cachefile());
  const std::string options = "replay s.json --seeds 5 --evals 10,20 --json --strategy ";
  const Outcome both = home.run(options + "random,local"), one = home.run(options + "local");
  ASSERT_EQ(both.exit, 0) << both.err;
  Json two = parse_json(both.out), local = parse_json(one.out);
  EXPECT_EQ(two["strategies"].size(), 2u);
  EXPECT_EQ(two["strategies"][0]["strategy"], "random");
  EXPECT_EQ(local["schema"], two["schema"]);
  local.erase("schema");
  EXPECT_EQ(two["strategies"][1], local);
  EXPECT_EQ(local["strategy"], "local");
  const Json& space = local["spaces"][0];
  EXPECT_LE(space["percentile_10"]["20"], space["mean_fraction_of_optimum"]["20"]);
  EXPECT_GE(space["percentile_90"]["20"], space["mean_fraction_of_optimum"]["20"]);
}

TEST(ReplayCommand, ThePageHasCurvesAndTheTextIsTheSame) {
  const Home home;
  home.write("s.json", cachefile());
  const std::string options = "replay s.json --seeds 5 --evals 10,20 --strategy random,local";
  const Outcome text = home.run(options), page = home.run(options + " --html p.html");
  ASSERT_EQ(page.exit, 0) << page.err;
  EXPECT_EQ(page.out, text.out);
  const std::string html = home.read("p.html"), open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = html.find(open) + open.size();
  const Json data = parse_json(html.substr(begin, html.find("</script>", begin) - begin));
  ASSERT_EQ(data["blocks"].size(), 3u);
  EXPECT_EQ(data["blocks"][1]["series"][1]["name"], "local");
  EXPECT_EQ(data["blocks"][1]["series"][1]["points"].size(), 20u);
  EXPECT_EQ(data["blocks"][1]["series"][1]["band"].size(), 20u);
}

TEST(ReplayCommand, NothingRunsForAPageThatCannotBeWritten) {
  const Home home;
  home.write("s.json", cachefile());
  const Outcome o = home.run("replay s.json --html no/such/folder/p.html");
  EXPECT_NE(o.exit, 0);
  EXPECT_EQ(o.out, "");
  EXPECT_NE(o.err.find("no/such/folder"), std::string::npos) << o.err;
}

TEST(ReplayCommand, AnUnknownStrategyOfSeveralIsNamed) {
  const Home home;
  home.write("s.json", cachefile());
  const Outcome o = home.run("replay s.json --strategy local,genetik");
  EXPECT_EQ(o.exit, 2);
  EXPECT_NE(o.err.find("unknown strategy \"genetik\"; did you mean \"genetic\"?"), std::string::npos) << o.err;
}

}  // namespace
}  // namespace roofgen::cli::replay_cli_test
