#include "generator/expr/c_code.h"

#include <gtest/gtest.h>

namespace roofgen::expr::c_code_test {
namespace {

/// C code for an expression in which M and N vary; the scope fixes all other names.
std::string c(const std::string& text) {
  const Map scope{{"M", 100}, {"N", 64}, {"BM", 32}, {"esize", 2}, {"store", "staged"}, {"tuned", Map{{"chunks", 3}}}};
  auto e = Expr::parse(text);
  if (!e) return "not parsed: " + e.error().message;
  auto out = to_c(*e, scope, [](const std::string& name) -> Result<std::string> {
    return name == "M" || name == "N" ? "n_" + name : std::string();
  });
  return out ? (out->constant ? "constant " : "") + out->text : "error: " + out.error().message;
}

TEST(CCode, VariablesStaySymbolicAndConstantsAreFolded) {
  EXPECT_EQ(c("BM * esize"), "constant 64");
  EXPECT_EQ(c("M + BM * esize"), "n_M + 64");
  EXPECT_EQ(c("(M + 1) * (N - 2) // 4"), "((n_M + 1) * (n_N - 2)) / 4");
  EXPECT_EQ(c("ceil_div(M, BM) * 2"), "roofgen_ceil_div(n_M, 32) * 2");
  EXPECT_EQ(c("ceil_div(M, BM // 32)"), "n_M");
  EXPECT_EQ(c("min(M, N, 7)"), "roofgen_min(roofgen_min(n_M, n_N), 7)");
  EXPECT_EQ(c("1.0 / N"), "1.0 / n_N");
  EXPECT_EQ(c("M * (1 if store == 'direct' else N)"), "n_M * n_N");
  EXPECT_EQ(c("0 if M % 8 == 0 else 8"), "((n_M % 8) == 0) ? 0 : 8");
  EXPECT_EQ(c("absent|default(N)"), "n_N");
  EXPECT_EQ(c("M|default(N)"), "n_M");
  EXPECT_EQ(c("1 < M <= N"), "1 < n_M && n_M <= n_N");
}

TEST(CCode, ConditionsLoseTheOperandsThatAreKnown) {
  EXPECT_EQ(c("store == 'direct' or M % 2 == 0"), "(n_M % 2) == 0");
  EXPECT_EQ(c("store == 'staged' or M % 2 == 0"), "constant 1");
  EXPECT_EQ(c("M % (esize // 2) == 0"), "constant 1");
  EXPECT_EQ(c("not (M > 1 and N > 1)"), "!((n_M > 1) && (n_N > 1))");
  EXPECT_EQ(c("M <= tuned.chunks"), "n_M <= 3");
}

TEST(CCode, ExpressionsWithoutACFormAreErrors) {
  EXPECT_EQ(c("M ** 2"), "error: ** cannot be written in C");
  EXPECT_EQ(c("log2(M)"), "error: a call of log2 cannot be written in C");
  EXPECT_EQ(c("M in [1, 2]"), "error: in cannot be written in C");
  EXPECT_EQ(c("M + undefined").find("error: undefined name \"undefined\""), 0u);
}

}  // namespace
}  // namespace roofgen::expr::c_code_test
