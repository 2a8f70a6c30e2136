// A figure with all features: the ceilings of an A100, four slopes, nine kernels (one with three levels), every origin,
// two arrows.
#pragma once

#include "roofline/plot/figure.h"

namespace roofgen::plot {

inline Roofline sample_roofline() {
  Roofline r;
  r.title = "Roofline of a100-sxm-80";
  r.subtitle = "MMA FLOPs only; exp is not a FLOP. DRAM bytes are compulsory unless measured.";
  r.slopes = {{"DRAM", 2039, Origin::kDatasheet},
              {"DRAM", 1800, Origin::kMeasured},
              {"L2", 7219, Origin::kMeasured},
              {"shared memory", 19500, Origin::kDatasheet}};
  r.ceilings = {{"FP64", 9.7, Origin::kDatasheet, "DRAM"},
                {"FP32", 19.5, Origin::kDatasheet, "DRAM"},
                {"TF32 tensor", 156, Origin::kDatasheet, "DRAM"},
                {"BF16 tensor", 312, Origin::kDatasheet, "DRAM"},
                {"INT8 tensor", 624, Origin::kDatasheet, "DRAM"}};
  const auto point = [&](std::string name, std::string level, double ai, double tflops, double roof,
                         std::string bound_by, double time_us, double share, Origin origin) {
    r.points.push_back({name,
                        level,
                        ai,
                        tflops,
                        roof,
                        bound_by,
                        time_us,
                        share,
                        origin,
                        {{"shape", "L=2048 d=64 heads=32"}, {"dtype", "bf16, fp32 accumulate"}}});
  };
  point("attention naive, 4 passes", "DRAM", 31.0, 41, 55.8, "DRAM", 830, 0.34, Origin::kMeasured);
  point("attention flash BM=128 BN=64 stages=2", "DRAM", 1024, 196, 312, "BF16 tensor", 174, 0.07, Origin::kMeasured);
  point("gemm 4096x4096x4096 bf16", "DRAM", 1365, 262, 312, "BF16 tensor", 525, 0.21, Origin::kCounter);
  point("gemm 4096x4096x4096 bf16", "L2", 160, 262, 312, "BF16 tensor", 525, 0.21, Origin::kCounter);
  point("gemm 4096x4096x4096 bf16", "shared memory", 42, 262, 312, "BF16 tensor", 525, 0.21, Origin::kCounter);
  point("rmsnorm 8192x4096, unfused with residual", "DRAM", 0.5, 0.82, 0.9, "DRAM", 160, 0.065, Origin::kMeasured);
  point("rmsnorm+residual fused", "DRAM", 0.75, 1.21, 1.35, "DRAM", 110, 0.045, Origin::kSimulated);
  point("add+relu fused, fp32", "DRAM", 0.167, 0.30, 0.30, "DRAM", 90, 0.035, Origin::kModel);
  point("decode FFN, batch 1", "DRAM", 1.0, 1.8, 1.8, "DRAM", 440, 0.18, Origin::kModel);
  point("decode attention GQA group 4, KV cache 16384", "DRAM", 4.0, 5.1, 7.2, "DRAM", 120, 0.05, Origin::kSimulated);
  // On its roof, at the preferred position of the roof's label.
  point("prefill FFN, 1024 tokens", "DRAM", 1260, 312, 312, "BF16 tensor", 80, 0.03, Origin::kModel);
  r.arrows = {{0, 1, "unfused \u2192 fused"}, {5, 6, "fuse residual"}};
  return r;
}

inline Page sample_page() {
  Page page;
  page.title = "roofgen roofline a100-sxm-80";
  page.facts = {{"device", "a100-sxm-80 (sm_80, 108 SMs)"}, {"FLOPs", "MMA only"}, {"peaks", "dense"}};
  page.warnings = {"R09: the working set fits L2 (34.6 MB of 40 MB): DRAM AI is not observable over repeats"};
  page.blocks.push_back(sample_roofline());
  Bars bars{.title = "Naive attention by stage", .y_title = "MB moved", .labels = {"QK^T", "scale", "softmax", "PV"}};
  bars.series = {{"read", {0.52, 8.4, 8.4, 8.65}}, {"written", {8.4, 8.4, 8.4, 0.26}}};
  page.blocks.push_back(bars);
  Lines lines{.title = "Arithmetic intensity against L", .x_title = "L", .y_title = "FLOP/byte", .log_y = true};
  lines.series = {{"naive, 4 passes", {}}, {"flash", {}}};
  for (double length = 128; length <= 16384; length *= 2) {
    lines.series[0].points.push_back({length, 4 * length * 64 / (8 * length + 8 * 64)});
    lines.series[1].points.push_back({length, length / 2});
    lines.series[1].band.push_back({length / 3, length});
  }
  lines.marks = {{"ridge BF16", 153}};
  page.blocks.push_back(lines);
  Heatmap map{.title = "Decode: batch and KV length",
              .x_title = "KV length",
              .y_title = "batch",
              .value_title = "FLOP/byte",
              .threshold = 153,
              .below = "MEM",
              .above = "COMP"};
  for (double kv : {256, 1024, 4096, 16384}) map.x_labels.push_back(std::to_string(static_cast<int>(kv)));
  for (double batch : {1, 8, 64, 256, 1024}) {
    map.y_labels.push_back(std::to_string(static_cast<int>(batch)));
    map.values.emplace_back();
    for (double kv : {256, 1024, 4096, 16384}) map.values.back().push_back(batch / (1 + batch * kv / 1e6));
  }
  page.blocks.push_back(map);
  page.blocks.push_back(
      TableBlock{"Per operator", {"operator", "FLOPs", "bytes"}, {{"qkv", "1.2 G", "33 MB"}, {"o", "0.4 G", "11 MB"}}});
  return page;
}

}  // namespace roofgen::plot
