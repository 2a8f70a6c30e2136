// Every rule with its case from the source documents, and with the corrected case.
#include <gmock/gmock.h>

#include <random>

#include "lint_support.h"
#include "roofline/analyses/explain.h"

namespace roofgen::lint_rules_test {
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LintRules, AreTwentyInOrder) {
  ASSERT_EQ(rules().size(), 20u);
  for (size_t i = 0; i < rules().size(); ++i)
    EXPECT_EQ(std::stoi(std::string(rules()[i].id).substr(1)), static_cast<int>(i) + 1);
}

TEST(LintRules, R01SparsePeak) {
  const std::string head = "gpu,dtype,peak (TFLOPS),bandwidth (GB/s),ridge\n";
  const std::string text = lint_text_of("R01", head + "H100 SXM5,fp16,1979,3350,591\n");
  EXPECT_THAT(text, HasSubstr("989.4"));
  EXPECT_THAT(text, HasSubstr("ridge 295.2"));
  EXPECT_EQ(lint_rules_of(head + "H100 SXM5,fp16,1979,3350,591\n"), "R01");
  EXPECT_EQ(lint_rules_of(head + "H100 SXM5,fp16,989.4,3350,295\n"), "");
  // 1979 is the dense peak of FP8. A ridge alone also reveals the sparse peak.
  EXPECT_EQ(lint_rules_of(head + "H100 SXM5,fp8,1979,3350,591\n"), "");
  EXPECT_EQ(lint_rules_of("gpu,dtype,bandwidth (GB/s),ridge\nH100 SXM5,fp16,3350,591\n"), "R01");
}

TEST(LintRules, R02AccumulatorOnGeForce) {
  const std::string head = "gpu,dtype,acc,peak (TFLOPS),bandwidth (GB/s),ridge\n";
  EXPECT_THAT(lint_text_of("R02", head + "RTX 4090,fp16,,330,1008,327\n"), HasSubstr("165.2"));
  EXPECT_EQ(lint_rules_of(head + "RTX 4090,fp16,,330,1008,327\n"), "R02");
  EXPECT_EQ(lint_rules_of(head + "RTX 3090,fp16,,142,936,152\n"), "R02");
  EXPECT_EQ(lint_rules_of(head + "RTX 4090,fp16,fp32,330,1008,327\n"), "R02");
  EXPECT_EQ(lint_rules_of(
                head + "RTX 4090,fp16,fp16,330,1008,327\nRTX 4090,fp16,fp32,165,1008,164\nRTX 3090,fp16,,71,936,76\n"),
            "");
  // A product with a single rate needs no statement of the accumulator.
  EXPECT_EQ(lint_rules_of(head + "A100 SXM 80GB,fp16,,312,2039,153\n"), "");
}

TEST(LintRules, R03DtypeOfTheCeiling) {
  // n/6 is the intensity of FP32 operands; FP16 gives n/3.
  EXPECT_THAT(lint_text_of("R03", "kernel,M,N,K,dtype,ai\nmatmul,4096,4096,4096,fp16,682\n", "a100-sxm-80"),
              HasSubstr("1365"));
  EXPECT_EQ(lint_rules_of("kernel,M,N,K,dtype,ai\nmatmul,4096,4096,4096,fp16,1365\n", "a100-sxm-80"), "");
  EXPECT_EQ(lint_rules_of("kernel,dtype,ceiling_dtype,ai\nmatmul,fp32,fp16,682\n", "a100-sxm-80"), "R03");
  EXPECT_EQ(lint_rules_of("kernel,dtype,ceiling_dtype,ai\nmatmul,fp32,tf32,682\nmatmul,fp4,bf16,900\n", "a100-sxm-80"),
            "");
  // The height of the ceiling identifies its format.
  EXPECT_THAT(lint_text_of("R03", "kernel,dtype,peak,ai\nmatmul,fp32,312,682\n", "a100-sxm-80"),
              HasSubstr("fp32 bytes"));
  EXPECT_EQ(lint_rules_of("kernel,dtype,peak,ai\nmatmul,fp32,156,682\n", "a100-sxm-80"), "");
}

TEST(LintRules, R04MatrixRidgeForVectorWork) {
  const std::string table = "kernel,dtype,ai,ridge\nrelu,fp32,0.125,156\n";
  EXPECT_THAT(lint_text_of("R04", table, "a100-sxm-80"), HasSubstr("19.5 TFLOPS (FP32"));
  EXPECT_THAT(lint_text_of("R04", table, "a100-sxm-80"), HasSubstr("ridge 9.56"));
  EXPECT_EQ(lint_rules_of("kernel,dtype,ai,ridge\nrelu,fp32,0.125,9.6\n", "a100-sxm-80"), "");
  EXPECT_EQ(lint_rules_of("kernel,dtype,ai,peak\nrelu,fp16,0.25,312\n", "a100-sxm-80"), "R04");
  EXPECT_EQ(lint_rules_of("kernel,dtype,ai,peak\nrelu,fp16,0.25,78\n", "a100-sxm-80"), "");
}

TEST(LintRules, R05AmbiguousName) {
  const std::string head = "gpu,dtype,peak (TFLOPS),bandwidth (GB/s),ridge\n";
  const std::string text = lint_text_of("R05", head + "A100,fp16,312,2000,156\n");
  for (const char* product : {"a100-sxm-40 (1555", "a100-sxm-80 (2039", "a100-pcie-80 (1935"})
    EXPECT_THAT(text, HasSubstr(product));
  // The bandwidth identifies the product.
  EXPECT_EQ(lint_rules_of(head + "A100,fp16,312,2039,153\nA100,fp16,312,1555,200.6\n"), "");
}

TEST(LintRules, R05AnotherProductsPeak) {
  for (const char* row : {"fp4,9000", "fp8,4500", "bf16,2250"}) {
    const std::string table = std::string("kernel,dtype,attainable\ngemm,") + row + "\n";
    EXPECT_THAT(lint_text_of("R05", table, "GB200"), HasSubstr("b200's")) << row;
    EXPECT_EQ(lint_rules_of(table, "B200"), "") << row;
  }
  EXPECT_THAT(lint_text_of("R05", "kernel,device,ai,bandwidth\ncopy,H200,0,3352\n"), HasSubstr("h200-sxm's is 4800"));
}

TEST(LintRules, R06MissingPass) {
  const std::string head = "kernel,dtype,L,d,flops,bytes (MB),ai\n";
  const std::string device = "h100-sxm";
  const std::string text = lint_text_of("R06", head + "attention_naive,fp16,2048,64,1073741824,25.2,42.7\n", device);
  EXPECT_THAT(text, HasSubstr("34.6 MB"));
  EXPECT_THAT(text, HasSubstr("P written"));
  EXPECT_THAT(lint_rules_of(head + "attention_naive,fp16,2048,64,1073741824,34.6,31.0\n", device),
              Not(HasSubstr("R06")));
  // Without bytes, the intensity implies them.
  EXPECT_THAT(lint_text_of("R06", "kernel,dtype,L,d,ai\nattention_naive,fp16,2048,64,42.7\n", device),
              HasSubstr("AI 42.7 means 25.1 MB"));
  // Two passes are another form, for which the bytes are right.
  EXPECT_THAT(lint_rules_of("kernel,dtype,L,d,passes,bytes (MB),"
                            "ai\nattention_naive,fp16,2048,64,2,17.8,60.2\n",
                            device),
              Not(HasSubstr("R06")));
}

TEST(LintRules, R06MoreBytesThanTheOperatorHas) {
  const std::string head = "name,op,M,N,K,dtype,ai,bytes (MB),origin\n", row = "linear,gemm,512,4096,4096,fp16,";
  const std::string text = lint_text_of("R06", head + row + "159,108,\n", "a100-sxm-80");
  EXPECT_THAT(text, HasSubstr("108 MB; gemm (fused) moves 41.9 MB, AI 409.6: 2.6 times more"));
  EXPECT_THAT(lint_text_of("R06", head + row + "159,,model\n"), HasSubstr("AI 159; gemm"));
  EXPECT_THAT(lint_text_of("R06", head + row + ",108,datasheet\n"), HasSubstr("108 MB; gemm"));
  EXPECT_EQ(lint_text_of("R06", head + row + "409.6,41.9,\n"), "");
  EXPECT_EQ(lint_text_of("R06", head + row + "210,83,\n"), "");
  // Hardware traffic may exceed the formula, and a row with a time may report hardware traffic.
  for (const char* origin : {"measured", "counter", "simulated"})
    EXPECT_EQ(lint_text_of("R06", head + row + "159,108," + origin + "\n"), "") << origin;
  EXPECT_EQ(lint_text_of("R06", "name,op,M,N,K,dtype,ai,time (us)\n" + row + "159,100\n"), "");
  // Without a stated dtype the bytes may be those of FP32; a unit slip is a finding of its own.
  EXPECT_EQ(lint_text_of("R06", "name,op,M,N,K,ai\nlinear,gemm,512,4096,4096,204\n"), "");
  EXPECT_EQ(lint_rules_of(head + row + ",41900,\n"), "R07");
}

TEST(LintRules, R06AllowsUnstatedDimensions) {
  // Attention that writes its scores, in any form and width, is not reported as flash attention with too many bytes.
  const std::string head = "kernel,op,dtype,L,d,batch,heads,ai,bytes (MB)\n";
  for (const char* row : {"naive attention,,fp16,2048,64,1,1,31,34.6", "naive attention,,fp16,2048,64,1,1,20.9,51.4",
                          "naive attention,,fp16,2048,64,1,1,10.6,101", "attention,attention,fp16,2048,64,1,1,31,34.6"})
    EXPECT_EQ(lint_text_of("R06", head + row + "\n"), "") << row;
  const std::string stated = "kernel,dtype,L,d,batch,heads,passes,bytes (MB),ai\nattention,fp16,2048,64,1,1,";
  EXPECT_THAT(lint_text_of("R06", stated + "0,34.6,\n"), HasSubstr("attention (flash) moves 1.05 MB"));
  EXPECT_EQ(lint_text_of("R06", stated + "4,34.6,\n"), "");
  // The number of heads and sequences, and the cache length of a decode step, are open.
  EXPECT_EQ(lint_text_of("R06", "kernel,dtype,L,d,passes,bytes (MB),ai\nattention,fp16,2048,64,0,33.6,\n"), "");
  EXPECT_EQ(
      lint_text_of("R06", "kernel,dtype,L,d,batch,heads,passes,bytes (MB),ai\nattention,fp16,1,128,1,32,0,67.2,\n"),
      "");
  // An epilogue in separate kernels: 4096 x 64 x 4096 with bias and activation moves C 5 times.
  const std::string epilogue = "kernel,dtype,M,N,K,bias,activation,ai,fused\nlinear,fp16,4096,4096,64,yes,yes,12,";
  EXPECT_EQ(lint_text_of("R06", epilogue + "\n"), "");
  EXPECT_THAT(lint_text_of("R06", epilogue + "yes\n"), HasSubstr("AI 12; gemm"));
  EXPECT_EQ(lint_text_of("R06", epilogue + "no\n"), "");
}

TEST(LintRules, R07ThousandTimesTooSmall) {
  const std::string head = "kernel,ai,attainable (TFLOPS)\n";
  EXPECT_THAT(lint_text_of("R07", head + "rmsnorm,1.25,10 GFLOPS\n", "gb200"), HasSubstr("= 10 TFLOPS"));
  EXPECT_EQ(lint_rules_of(head + "rmsnorm,1.25,0.01\n", "gb200"), "R07");
  EXPECT_EQ(lint_rules_of(head + "rmsnorm,1.25,10\nsilu_and_mul,0.67,5.4\n", "gb200"), "");
  // Right, but in another unit than the column.
  EXPECT_THAT(lint_text_of("R07", head + "rmsnorm,1.25,10000 GFLOPS\n", "gb200"), HasSubstr("in a column of TFLOPS"));
}

TEST(LintRules, R07BinaryPrefix) {
  // 24 D^2 bytes of 32 layers of width 4096: 12.9 GB, which is 12.0 GiB and not 13.
  EXPECT_THAT(lint_text_of("R07", "kernel,flops,ai,bytes (GiB)\ndecode,12.88e9,1,13\n"),
              HasSubstr("12.88 GB = 12 GiB"));
  EXPECT_EQ(lint_rules_of("kernel,flops,ai,bytes (GiB)\ndecode,12.88e9,1,12\n"), "");
  EXPECT_EQ(lint_rules_of("kernel,flops,ai,bytes (GB)\ndecode,12.88e9,1,12.9\n"), "");
  EXPECT_EQ(lint_rules_of("kernel,flops,ai,bytes (GB)\ndecode,12.88e9,1,12\n"), "R07");
  EXPECT_THAT(lint_text_of("R07", "kernel,flops,ai,bytes (MB)\ndecode,12.88e9,1,12.88\n"),
              HasSubstr("a thousand times less"));
}

TEST(LintRules, R08AboveTheLimit) {
  struct Case {
    const char* note;
    const char* claimed;
    const char* limit;
    const char* right;
  };
  const Case cases[] = {{"FP4 GEMM [B, 7168] -> [B, 2112]", "~7000", "1631", "1600"},
                        {"FP4 GEMM [B, 1536] -> [B, 24576]", "~12000", "1446", "1440"},
                        {"FP4 GEMM [B, 512] -> [B, 32768]", "~15000", "504.1", "500"},
                        {"FP4 GEMM [B, 16384] -> [B, 7168]", "~9000", "4986", "4900"},
                        {"FP8 BMM [128, B, 128] x [128, 128, 512]", "~256", "204.8", "200"},
                        {"FP8 BMM [128, B, 512] x [128, 512, 128]", "~256", "204.8", "200"}};
  for (const Case& c : cases) {
    const auto table = [&](const char* ai) {
      return std::string("kernel,ai,notes\nmm,") + ai + ",\"" + c.note + "\"\n";
    };
    EXPECT_THAT(lint_text_of("R08", table(c.claimed), "gb200"), HasSubstr(std::string("above ") + c.limit)) << c.note;
    EXPECT_EQ(lint_rules_of(table(c.right), "gb200"), "") << c.note;
  }
}

TEST(LintRules, R08AboveTheShape) {
  EXPECT_THAT(lint_text_of("R08", "kernel,dtype,M,N,K,ai\nlinear,bf16,16,2112,7168,500\n", "gb200"),
              HasSubstr("above 15.8"));
  EXPECT_THAT(lint_rules_of("kernel,dtype,M,N,K,ai\nlinear,bf16,16,2112,7168,15.8\n", "gb200"), Not(HasSubstr("R08")));
}

TEST(LintRules, R09FitsL2) {
  EXPECT_THAT(lint_text_of("R09", "kernel,dtype,bytes (MB),ai\nqk,fp16,8.9,60.2\n", "a100-sxm-80"),
              HasSubstr("41.9 MB L2"));
  EXPECT_EQ(lint_rules_of("kernel,dtype,bytes (MB),ai\nqk,fp16,890,60.2\n", "a100-sxm-80"), "");
  EXPECT_EQ(lint_rules_of("kernel,dtype,bytes (MB),ai,cache\nqk,fp16,8.9,60.2,cold\n", "a100-sxm-80"), "");
}

TEST(LintRules, R10FewCtas) {
  EXPECT_THAT(lint_text_of("R10", "kernel,dtype,L,d,ai\nflash,fp16,2048,64,1024\n", "h100-sxm"),
              HasSubstr("16 CTAs for 132 SMs"));
  EXPECT_EQ(lint_text_of("R10", "kernel,dtype,L,d,heads,batch,ai\nflash,fp16,2048,64,33,4,1024\n", "h100-sxm"), "");
  EXPECT_EQ(lint_rules_of("kernel,ai,ctas\na,10,16\n", "h100-sxm"), "R10");
  EXPECT_EQ(lint_rules_of("kernel,ai,ctas\na,10,132\n", "h100-sxm"), "");
}

TEST(LintRules, R11PrecisionAndRegime) {
  const std::string head = "kernel,dtype,ai,bound\n";
  // Half the bytes give twice the intensity, but also twice the ridge.
  EXPECT_THAT(lint_text_of("R11", head + "gemm_fp16,fp16,200,memory\ngemm_fp8,fp8,400,compute\n", "h100-sxm"),
              HasSubstr("raise the intensity and the ridge alike"));
  EXPECT_EQ(lint_rules_of(head + "gemm_fp16,fp16,200,memory\ngemm_fp8,fp8,400,memory\n", "h100-sxm"), "");
  // A row in another regime that is 10 % nearer to its ridge, or of another shape, proves nothing.
  EXPECT_EQ(lint_rules_of(head + "gemm_fp16,fp16,200,memory\ngemm_fp8,fp8,450,compute\n", "h100-sxm"), "R13");
  EXPECT_EQ(lint_rules_of("kernel,dtype,ai,bound,M\ngemm,fp16,200,memory,64\ngemm,fp8,400,compute,128\n", "h100-sxm"),
            "R13");
  EXPECT_EQ(lint_rules_of("kernel,dtype,ai,bound,M\ngemm,fp16,200,memory,64\ngemm,fp8,400,compute,64\n", "h100-sxm"),
            "R11 R13");
  // With narrower weights alone, the intensity rises but the ridge does not.
  EXPECT_EQ(lint_rules_of(head + "gemm,bf16,200,memory\ngemm,fp8,650,compute\n", "h100-sxm"), "");
}

TEST(LintRules, R12AboveItsRoof) {
  const std::string head = "kernel,dtype,ai,achieved,origin\n";
  EXPECT_THAT(lint_text_of("R12", head + "gemm,fp16,60.2,150,measured\n", "a100-sxm-80"),
              HasSubstr("AI 60.2 x 2039 GB/s"));
  EXPECT_EQ(lint_rules_of(head + "gemm,fp16,60.2,120,measured\n", "a100-sxm-80"), "");
  EXPECT_EQ(lint_rules_of(head + "gemm,fp16,1000,340,measured\n", "a100-sxm-80"), "R12");
  EXPECT_THAT(lint_text_of("R12", "kernel,ai,bytes (MB),time (us),origin\ncopy,0,1000,200,measured\n", "h200-sxm"),
              HasSubstr("5000 GB/s"));
  EXPECT_EQ(lint_rules_of("kernel,ai,bytes (MB),time (us),origin\ncopy,0,1000,230,measured\n", "h200-sxm"), "");
}

TEST(LintRules, R13ContradictsItself) {
  const std::string head = "kernel,dtype,ai,ridge,bound\n";
  EXPECT_THAT(lint_text_of("R13", head + "q_b_proj,fp4,371,1125,Compute-bound\n", "b200"),
              HasSubstr("1125: memory-bound"));
  EXPECT_EQ(lint_rules_of(head + "q_b_proj,fp4,371,1125,Memory-bound\n", "b200"), "");
  EXPECT_EQ(lint_rules_of(head + "rmsnorm,bf16,1.25,9.6,compute\n", "a100-sxm-80"), "R13");
  EXPECT_THAT(lint_text_of("R13", "kernel,flops,bytes,ai\nq_b,9.66e9,26.1e6,300\n"), HasSubstr("is 370"));
  EXPECT_EQ(lint_rules_of("kernel,flops,bytes,ai\nq_b,9.66e9,26.1e6,371\n"), "");
  EXPECT_EQ(lint_rules_of("gpu,dtype,peak,bandwidth,ridge\nA100 SXM 80GB,fp16,312,2039,201\n"), "R13");
}

TEST(LintRules, R14CacheSharedByTheBatch) {
  // A generic 7B model with 2048 tokens of cache: 11.9 at batch 128, at most 13.0.
  const std::string head = "name,phase,batch,kv,hidden,ai\n";
  const std::string text = lint_text_of("R14", head + "decode 7B,decode,128,2048,4096,~80\n", "h100-sxm");
  EXPECT_THAT(text, HasSubstr("it is 11.89"));
  EXPECT_THAT(text, HasSubstr("beyond 13"));
  EXPECT_EQ(lint_rules_of(head + "decode 7B,decode,1,2048,4096,1.0\ndecode "
                                 "7B,decode,32,2048,4096,9.43\ndecode 7B,decode,128,2048,4096,11.85\n",
                          "h100-sxm"),
            "");
  EXPECT_EQ(lint_rules_of("name,phase,batch,weights (GB),kv_cache (GB),ai\n7B,decode,32,12.88,1.074,25\n", "h200-sxm"),
            "R14");
  // Attention alone does not gain from batching.
  EXPECT_EQ(lint_rules_of("kernel,phase,batch,ai\nattn,decode,1,1\nattn,decode,64,64\n"), "R14");
  EXPECT_EQ(lint_rules_of("kernel,phase,batch,ai\nattn,decode,1,1\nattn,decode,64,1\n"), "");
}

TEST(LintRules, R14HeldAgainstTheSameAttentionAlone) {
  const std::string head = "kernel,dtype,phase,batch,kv,heads,kv_heads,ai\n";
  // Grouped queries and a narrower cache raise the intensity; a larger batch does not.
  EXPECT_EQ(lint_rules_of(head + "attn,bf16,decode,1,4096,32,32,1\nattn,bf16,decode,64,4096,32,8,4\n"
                                 "attn,fp8,decode,64,4096,32,32,2\n"),
            "");
  EXPECT_THAT(lint_text_of("R14", head + "attn,bf16,decode,8,4096,32,8,4\nattn,bf16,decode,64,4096,32,8,30\n"
                                         "attn,bf16,decode,1,4096,32,8,3.9\nattn,bf16,decode,64,4096,32,8,4\n"),
              HasSubstr("AI 30 at batch 64, but 3.9 at batch 1"));
}

TEST(LintRules, R14AndR18NeedWeightsAndACache) {
  const std::string head = "name,phase,batch,weights (GB),kv_cache (GB),ai\n";
  for (const char* row : {"7B,decode,32,0,0,25", "7B,decode,32,0,1,25", "7B,decode,32,12.88,0,25"})
    EXPECT_EQ(lint_rules_of(head + row + "\n", "h200-sxm"), "") << row;
}

TEST(LintRules, R15AgreesWithAComparisonOfAllPairs) {
  std::mt19937 random(7);
  const auto draw = [&](int most) { return static_cast<double>(1 + random() % static_cast<unsigned>(most)); };
  std::vector<Claim> claims(300);
  for (Claim& c : claims) {
    c.op = draw(2) == 1 ? "rmsnorm" : "softmax";
    c.fused = draw(2) == 1;
    c.rank = draw(12), c.time_us = draw(12), c.ai = draw(12);
  }
  const auto found = lint_table(claims);
  size_t broken = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Claim& a = claims[i];
    const bool expected = std::any_of(claims.begin(), claims.end(), [&](const Claim& b) {
      return *a.fused && !*b.fused && a.op == b.op && *a.rank > *b.rank && *a.time_us < *b.time_us && *a.ai < *b.ai;
    });
    broken += expected;
    EXPECT_EQ(std::any_of(found[i].begin(), found[i].end(), [](const Warning& w) { return w.rule == "R15"; }), expected)
        << i;
  }
  EXPECT_GT(broken, 20u);
  EXPECT_LT(broken, 140u);
}

TEST(LintRules, R15RankedByIntensity) {
  const std::string head = "kernel,fused,ai,time (us),rank\n";
  EXPECT_THAT(lint_text_of("R15", head + "rmsnorm,no,1.0,120,1\nfused_add_rmsnorm,yes,0.75,80,2\n", "gb200"),
              HasSubstr("rank by time"));
  EXPECT_EQ(lint_rules_of(head + "rmsnorm,no,1.0,120,2\nfused_add_rmsnorm,yes,0.75,80,1\n", "gb200"), "");
  EXPECT_EQ(lint_rules_of(head + "rmsnorm,no,1.0,80,1\nfused_add_rmsnorm,yes,0.75,120,2\n", "gb200"), "");
}

TEST(LintRules, R16PerformanceWithoutOrigin) {
  // Points drawn at (2, 0.1), (25, 3), (500, 500) without a measurement.
  const std::string rows = "a,bf16,2,0.1\nb,bf16,25,3\nc,bf16,500,500\n";
  const LintReport report = lint_report("kernel,dtype,ai,achieved\n" + rows, "h100-sxm");
  ASSERT_EQ(report.findings.size(), 3u);
  for (const LintFinding& f : report.findings) EXPECT_EQ(f.rule, "R16");
  EXPECT_EQ(lint_rules_of("kernel,dtype,ai,achieved,origin\na,bf16,2,0.1,measured\nb,bf16,25,3,model\n", "h100-sxm"),
            "");
}

TEST(LintRules, R17LaunchOverhead) {
  EXPECT_THAT(lint_text_of("R17", "kernel,ai,time (us)\nrmsnorm,1,4\n", "h100-sxm"),
              HasSubstr("1 launch of about 3 us"));
  EXPECT_EQ(lint_rules_of("kernel,ai,time (us)\nrmsnorm,1,400\n", "h100-sxm"), "");
  EXPECT_EQ(lint_rules_of("kernel,ai,time (us),launches\nchain,1,400,100\n", "h100-sxm"), "R17");
}

TEST(LintRules, R18DoesNotFit) {
  const std::string head = "name,phase,batch,kv,hidden,layers,ai\n";
  const std::string text = lint_text_of("R18", head + "7B,decode,256,2048,4096,32,12.38\n", "h100-sxm");
  EXPECT_THAT(text, HasSubstr("288 GB"));
  EXPECT_THAT(text, HasSubstr("at most 62 sequences fit"));
  EXPECT_EQ(lint_rules_of(head + "7B,decode,62,2048,4096,32,10.8\n", "h100-sxm"), "");
  EXPECT_EQ(lint_rules_of("name,ai,memory (GB)\n7B,1,288\n", "h100-sxm"), "R18");
  EXPECT_EQ(lint_rules_of("name,ai,memory (GB)\n7B,1,79\n", "h100-sxm"), "");
}

TEST(LintRules, R19SpecialFunctionRoof) {
  const std::string rows = "kernel,dtype,L,d,heads,batch,ai\nflash,bf16,2048,";
  EXPECT_THAT(lint_text_of("R19", rows + "64,33,4,1024\n", "h100-sxm"), HasSubstr("as long as the matrix work"));
  // 8192 FLOP and 16 exponentials per clock and SM, and 256 FLOP per exponential: a factor of two. With exponentials at
  // the FP32 clock, 1.89.
  EXPECT_THAT(lint_text_of("R19", rows + "64,37,4,1024\n", "b200"), HasSubstr("2.00 times"));
  EXPECT_EQ(lint_text_of("R19", rows + "128,33,4,1024\n", "h100-sxm"), "");
  EXPECT_EQ(lint_text_of("R19", rows + "64,27,4,1024\n", "a100-sxm-80"), "");
}

TEST(LintRules, R18CountsInPlaceUpdatesOnce) {
  // Adam keeps 14 bytes per parameter and moves 26.
  WorkRequest request;
  request.dims = {{"params", 1'500'000'000}};
  const OpWork adam = *lint_knowledge().formulas.at("adam").evaluate(request);
  const auto device = load_device(DataFiles(), "rtx-4090");
  Claim claim;
  claim.device = &*device;
  claim.work = &adam;
  EXPECT_TRUE(lint(claim).empty());
  request.dims = {{"params", 1'800'000'000}};
  const OpWork more = *lint_knowledge().formulas.at("adam").evaluate(request);
  claim.work = &more;
  ASSERT_EQ(lint(claim).size(), 1u);
  EXPECT_THAT(lint(claim)[0].text, HasSubstr("25.2 GB"));
}

TEST(LintRules, R20FlatteringMeasurement) {
  const std::string head = "kernel,dtype,ai,achieved,origin,inputs,cache\n";
  EXPECT_THAT(lint_text_of("R20", head + "gemm,bf16,1365,894,measured,zeros,cold\n", "h200-sxm"), HasSubstr("zeros"));
  EXPECT_THAT(lint_text_of("R20", head + "gemm,bf16,1365,780,measured,random,warm\n", "h200-sxm"),
              HasSubstr("warm cache"));
  EXPECT_EQ(lint_rules_of(head + "gemm,bf16,1365,780,measured,random,cold\n", "h200-sxm"), "");
}

TEST(LintRules, ExplanationsTriggerOnlyTrueFindings) {
  // Large work in full waves on all SMs gives no warning.
  const auto& knowledge = lint_knowledge();
  const auto device = load_device(DataFiles(), "h100-sxm");
  struct Case {
    const char* op;
    std::map<std::string, int64_t> dims;
    std::vector<std::string> rules;
  };
  const Case cases[] = {
      {"gemm", {{"M", 16896}, {"N", 16384}, {"K", 8192}}, {}},
      {"rmsnorm", {{"rows", 65536}, {"cols", 8192}}, {}},
      {"silu_and_mul", {{"rows", 65536}, {"cols", 8192}}, {}},
      {"attention", {{"L", 4096}, {"d", 128}, {"heads", 33}, {"batch", 8}}, {}},
      {"attention", {{"L", 4096}, {"d", 64}, {"heads", 33}, {"batch", 8}}, {"R19"}},
      {"attention", {{"L", 2048}, {"d", 64}, {"heads", 1}, {"batch", 1}, {"passes", 4}}, {"R09", "R10", "R17"}}};
  for (const Case& c : cases) {
    WorkRequest request;
    request.dims = c.dims;
    const auto e = explain(*device, *knowledge.formulas.at(c.op).evaluate(request));
    ASSERT_TRUE(e);
    std::vector<std::string> found;
    for (const Warning& w : e->warnings) found.push_back(w.rule);
    EXPECT_EQ(found, c.rules) << c.op;
  }
}

}  // namespace roofgen::lint_rules_test
