// The warpgroup kernel of attention as machine code, against the published design (FlashAttention-3): registers, no
// spill, no advisory of ptxas, the products of a step back to back, and the softmax under the product with V.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/sass/cubin.h"
#include "runtime/sass/disassembler.h"
#include "tests/kernels/attention_case.h"
#include "tests/support/cases.h"

namespace roofgen::test::attention_warpgroup_test {
namespace {

struct Case {
  AttentionCase problem;
  Pins pins = {};
  int registers = 168;        ///< at the start, of 65536 by the threads
  std::string kept = "0xf0";  ///< operand of USETMAXREG of the warpgroups that multiply: 240
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.problem.name; }

ParamValue n(int64_t x) { return x; }

/// Stretches of machine code between waits of warpgroup products.
struct Stretch {
  int64_t scores = 0, values = 0;                  ///< products whose A is in shared memory, and in registers
  int64_t longest_scores = 0, longest_values = 0;  ///< of one product, without another warpgroup instruction inside
  int64_t exps = 0;                                ///< MUFU.EX2 behind the last product, before the wait that ends it
  std::string ended_by;                            ///< operands of the wait
};

/// Text of the code, cut at its waits.
std::vector<Stretch> stretches(const std::vector<sass::Text>& code) {
  std::vector<Stretch> out(1);
  int64_t scores = 0, values = 0;
  for (const sass::Text& t : code) {
    Stretch& s = out.back();
    if (t.opcode.starts_with("HGMMA") || t.opcode.starts_with("QGMMA")) {
      const bool from_shared = t.operands.find("gdesc") < t.operands.find(',', t.operands.find(',') + 1);
      (from_shared ? s.scores : s.values) += 1;
      (from_shared ? scores : values) += 1;
      s.longest_scores = std::max(s.longest_scores, scores);
      s.longest_values = std::max(s.longest_values, values);
    } else if (t.opcode.starts_with("WARPGROUP.ARRIVE") || t.opcode.starts_with("BAR") ||
               t.opcode.starts_with("SYNCS")) {
      scores = values = 0;
    } else if (t.opcode.starts_with("WARPGROUP.DEPBAR")) {
      s.ended_by = t.operands;
      out.emplace_back();
      scores = values = 0;
    } else if (t.opcode.starts_with("MUFU.EX2")) {
      ++s.exps;
    }
  }
  return out;
}

class MachineCode : public testing::TestWithParam<Case> {};

TEST_P(MachineCode, IsThePublishedDesign) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Case& c = GetParam();
  Request request;
  request.problem = problem_of(c.problem);
  request.variant = "warpgroup";
  request.pins["attention"] = c.pins;
  request.pins["attention"].try_emplace("persistent", false);  // the walk over tiles costs the producer registers
  const auto compiled = compile(request);
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  ASSERT_EQ(compiled->size(), 1u);
  const auto& [legal, binary] = compiled->front();
  SCOPED_TRACE(to_string(legal.schedule));
  EXPECT_EQ(binary.arch, "sm_90a");
  EXPECT_EQ(binary.advisories, std::vector<std::string>{});
  EXPECT_EQ(binary.spill_bytes, 0);
  EXPECT_EQ(binary.stack_bytes, 0);
  EXPECT_EQ(binary.registers, c.registers);

  if (sass::nvdisasm_path().empty()) GTEST_SKIP() << "no nvdisasm on this machine";
  const auto cubin = sass::read_cubin(binary.cubin);
  ASSERT_TRUE(cubin) << to_string(cubin.error());
  ASSERT_EQ(cubin->kernels.size(), 1u);
  const auto texts = sass::disassemble(binary.arch, {cubin->kernels[0].code});
  ASSERT_TRUE(texts) << to_string(texts.error());
  const std::vector<sass::Text>& code = texts->front();

  const auto has = [&](const std::string& opcode, const std::string& operand) {
    return std::any_of(code.begin(), code.end(), [&](const sass::Text& t) {
      return t.opcode.starts_with(opcode) && t.operands.find(operand) != std::string::npos;
    });
  };
  if (!c.kept.empty()) {
    EXPECT_TRUE(has("USETMAXREG.TRY_ALLOC", c.kept));
  }
  EXPECT_TRUE(has("UTMALDG.4D", ""));
  EXPECT_EQ(has("UTMASTG.4D", ""), !*legal.scope.at("pack_gqa").as<bool>());  // else O has no boxes

  const int64_t d = c.problem.dims.at("d"), keys = *legal.scope.at("BN").as<int64_t>();
  const bool overlap = *legal.scope.at("overlap").as<bool>(), masked = *legal.scope.at("may_mask").as<bool>();
  const int64_t k = c.problem.dtype == DType::kFp8 ? 32 : 16;  // of an instruction
  const int64_t of_scores = d / k, of_values = keys / k, of_fma = *legal.scope.at("fma_exps").as<int64_t>();
  const std::vector<Stretch> parts = stretches(code);
  int64_t steps = 0, hidden = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Stretch& s = parts[i];
    // All instructions of a product follow each other without a wait or another start.
    EXPECT_TRUE(s.scores == 0 || s.longest_scores == of_scores) << i;
    EXPECT_TRUE(s.values == 0 || s.longest_values == of_values) << i;
    steps += s.scores == of_scores && s.values == of_values;
    // Two waits: for S, then, behind the softmax, for O.
    if (s.ended_by.find("0x0") != std::string::npos && i > 0 &&
        parts[i - 1].ended_by.find("0x1") != std::string::npos) {
      EXPECT_GE(s.exps, keys / 2 * 8 / 10 * (8 - of_fma) / 8) << i;
      ++hidden;
    }
  }
  EXPECT_EQ(steps, !overlap ? 0 : masked ? 2 : 1);
  EXPECT_EQ(hidden, steps);
}

/// L = 4096.
AttentionCase of(const char* name, int64_t d, Flags flags = {}) { return {name, {{"L", 4096}, {"d", d}}, flags}; }
AttentionCase half(AttentionCase c) {
  c.dtype = DType::kFp16;
  return c;
}
AttentionCase fp8(AttentionCase c) {
  c.dtype = DType::kFp8;
  return c;
}
AttentionCase with(AttentionCase c, Texts texts, std::vector<TensorArg> args = {}) {
  c.texts = std::move(texts);
  c.args = std::move(args);
  return c;
}
AttentionCase grouped(AttentionCase c) {
  c.dims["heads"] = 32;
  c.dims["kv_heads"] = 8;
  return c;
}
/// A query for each sequence; eight heads share K and V.
AttentionCase decode(const char* name, int64_t d) {
  return {name, {{"L", 1}, {"kv_len", 4096}, {"d", d}, {"heads", 64}, {"kv_heads", 8}}};
}
AttentionCase paged(AttentionCase c) {
  c.dims["page"] = 64;
  return c;
}
/// On an SM at a time.
Pins two_ctas() { return {{"ctas_per_sm", n(2)}, {"k_stages", n(3)}, {"v_stages", n(3)}}; }
AttentionCase capped(AttentionCase c) {
  c.softcap = 30;
  return c;
}

TEST_EACH(Attention, MachineCode, Case{of("d64", 64), {}, 128, "0xa0"},
          Case{of("d64_causal", 64, kCausal), {}, 128, "0xa0"},
          Case{of("d64_fma", 64), {{"fma_exps", n(2)}}, 128, "0xa0"}, Case{of("d96_causal", 96, kCausal)},
          Case{of("d128", 128)}, Case{of("d128_causal", 128, kCausal)},
          Case{of("d128_causal_persistent", 128, kCausal), {{"persistent", true}}, 168, "0xe8"},
          Case{half(of("d128_fp16_lse", 128, kLse))},

          Case{of("d128_lazy", 128, kLse), {{"rescale", std::string("lazy")}}},
          Case{of("d128_in_order", 128, kCausal), {{"overlap", false}}},

          Case{of("d128_one_group", 128), {{"groups", n(1)}, {"pingpong", false}}, 255, ""},
          Case{decode("d128_decode", 128), {}, 255, ""}, Case{paged(decode("d128_pages", 128)), {}, 255, ""},
          Case{decode("d128_decode_two_ctas", 128), two_ctas(), 128, "0xe8"},
          Case{paged(decode("d128_pages_two_ctas", 128)), two_ctas(), 128, "0xe8"},
          Case{paged(decode("d256_pages", 256)), {}, 255, ""}, Case{of("d128_cluster", 128), {{"cluster", n(2)}}},
          Case{grouped(of("d128_cluster_of_heads", 128, kCausalLse)), {{"cluster", n(2)}, {"section", n(4)}}},
          Case{of("d192", 192)}, Case{of("d256_causal", 256, kCausal)},
          Case{with(of("window", 128, kCausal), {{"mask", "q - k < 1024"}})}, Case{capped(of("softcap", 128, kCausal))},
          Case{with(of("alibi", 64, kCausal), {{"score", "s + slope[h] * (k - q)"}}, {kSlope})},
          Case{fp8(of("fp8_d64", 64)), {}, 128, "0xa0"}, Case{fp8(of("fp8_d128", 128)), {}, 168, "0xe8"},
          Case{fp8(grouped(of("fp8_d128_causal", 128, kCausalLse))), {}, 168, "0xe8"},
          Case{fp8(of("fp8_d128_fma", 128)), {{"fma_exps", n(2)}}, 168, "0xe8"},
          Case{fp8(of("fp8_d192", 192)), {}, 168, "0xe8"}, Case{fp8(of("fp8_d256", 256))},
          Case{fp8(of("fp8_d256_causal", 256, kCausal))},
          Case{{"packed", {{"d", 128}}, kCausalLse, {{"lengths", "100,4096,333"}}}},
          Case{{"ragged", {{"L", 128}, {"d", 128}}, kCausal, {{"kv_lengths", "1000,4096,333"}}}});

}  // namespace
}  // namespace roofgen::test::attention_warpgroup_test
