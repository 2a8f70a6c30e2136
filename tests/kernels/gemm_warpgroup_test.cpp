// Machine code of the warpgroup kernels: what ptxas made of the published design. No run, so no GPU or simulator.
#include <gtest/gtest.h>

#include "runtime/sass/cubin.h"
#include "runtime/sass/disassembler.h"
#include "tests/kernels/gemm_support.h"

namespace roofgen::test::gemm_warpgroup_test {
namespace {

struct Case {
  std::string name;
  Gemm problem;
  Pins pins;
  int products;  ///< of one batch: between two waits, by one warpgroup
  int registers;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Pins pins(std::initializer_list<std::pair<const char*, int64_t>> values) {
  Pins out;
  for (const auto& [name, value] : values) out[name] = value;
  return out;
}

class WarpgroupCode : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  }
  static Result<Binary> binary() {
    const Case& c = GetParam();
    ROOFGEN_TRY(const Problem problem, gemm(c.problem));
    ROOFGEN_TRY(std::vector<Compiled> all, compile({problem, "warpgroup", {{"gemm", c.pins}}, {}, {}}));
    return std::move(all.at(0).binary);
  }
};

TEST_P(WarpgroupCode, HasNoSpillAndNoAdvisory) {
  const auto b = binary();
  ASSERT_TRUE(b) << to_string(b.error());
  EXPECT_EQ(b->arch, "sm_90a");
  EXPECT_EQ(b->spill_bytes, 0);
  EXPECT_EQ(b->stack_bytes, 0);
  EXPECT_TRUE(b->advisories.empty()) << b->advisories.front();
  // With setmaxnreg the launch has the registers of the launch bounds; the consumers take more.
  EXPECT_EQ(b->registers, GetParam().registers);
}

/// The products of one batch follow each other: neither a wait nor a barrier stands between them.
TEST_P(WarpgroupCode, MultipliesBackToBack) {
  if (sass::nvdisasm_path().empty()) GTEST_SKIP() << "no nvdisasm on this machine";
  const auto b = binary();
  ASSERT_TRUE(b) << to_string(b.error());
  const auto cubin = sass::read_cubin(b->cubin);
  ASSERT_TRUE(cubin) << to_string(cubin.error());
  const auto code = sass::disassemble("sm_90a", {cubin->kernels.at(0).code});
  ASSERT_TRUE(code) << to_string(code.error());
  std::vector<int> batches;
  int products = 0;
  for (const sass::Text& i : code->at(0)) {
    const bool product = i.opcode.find("GMMA") != std::string::npos;
    const bool serial = i.opcode.starts_with("WARPGROUP.DEPBAR") || i.opcode.starts_with("WARPGROUP.ARRIVE") ||
                        i.opcode.starts_with("BAR") || i.opcode.starts_with("SYNCS");
    if (product) ++products;
    if (!serial || products == 0) continue;
    batches.push_back(products);
    products = 0;
  }
  EXPECT_EQ(batches, std::vector<int>{GetParam().products});
}

const int64_t kSide = 4096;
INSTANTIATE_TEST_SUITE_P(
    Gemm, WarpgroupCode,
    testing::Values(
        Case{"published_tile", {kSide, kSide, kSide}, pins({{"BM", 128}, {"BN", 256}, {"groups", 2}}), 4, 168},
        Case{"tall_tile", {kSide, kSide, kSide}, pins({{"BM", 256}, {"BN", 128}, {"groups", 2}}), 8, 168},
        Case{"three_groups", {kSide, kSide, kSide}, pins({{"BM", 192}, {"BN", 160}, {"groups", 3}}), 4, 128},
        Case{"cluster", {kSide, kSide, kSide}, pins({{"BM", 128}, {"BN", 256}, {"cluster", 2}}), 4, 168},
        Case{"turned", {kSide, kSide, kSide, DType::kBf16, "acc", "col", "row"}, {}, 4, 168},
        Case{"gelu", {kSide, kSide, kSide, DType::kBf16, "gelu(acc + bias[n])"}, {}, 4, 168},
        Case{"gated", {kSide, kSide, kSide, DType::kBf16, "acc", "row", "col", "silu"}, {}, 4, 168},
        Case{"tf32", {kSide, kSide, kSide, DType::kTf32}, {}, 4, 168},
        Case{"int8", {kSide, kSide, kSide, DType::kInt8}, {}, 4, 168}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace roofgen::test::gemm_warpgroup_test
