// Streams of the asynchronous instructions of sm_90: products of warpgroups, mbarriers, tensor copies, clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/sass/stream.h"
#include "runtime/sim/tensor_map.h"

namespace roofgen::sass::async_test {
namespace {

using testing::IsEmpty;

struct Line {
  const char *predicate, *opcode, *operands;
};

Code code_of(const std::vector<Line>& lines) {
  Code code;
  code.arch = "sm_90";
  code.first_param = 0x210;
  for (const Line& l : lines) code.instructions.push_back(decode({l.predicate, l.opcode, l.operands}, 0, 0));
  return code;
}

constexpr uint64_t kTensor = uint64_t{7} << 40;

/// The parameter is the map of a matrix of 100 rows of 256 two-byte elements; a tile has 64 x 32 of them.
StreamLaunch launch_of(uint32_t ctas, uint32_t threads) {
  sim::TensorView view;
  view.address = kTensor;
  view.rank = 2;
  view.element_bytes = 2;
  view.dims[0] = 256, view.dims[1] = 100;
  view.strides[1] = 512;
  view.box[0] = 64, view.box[1] = 32;
  StreamLaunch l;
  l.grid = {ctas, 1, 1};
  l.block = {threads, 1, 1};
  l.params.resize(sim::kTensorMapBytes);
  view.encode(l.params.data());
  return l;
}

struct Streams {
  CtaStream cta;
  std::vector<Doubt> doubts;
  std::vector<Sync> syncs(size_t warp = 0) const { return cta.warps.at(warp).syncs; }
  int executions(uint32_t index) const {
    return static_cast<int>(std::ranges::count(cta.warps.at(0).instructions(), index, &Step::index));
  }
};

Streams run(const std::vector<Line>& lines, StreamLaunch launch = launch_of(1, 32), uint64_t cta = 0) {
  const Code code = code_of(lines);
  Interpreter interpreter(code, std::move(launch));
  Result<CtaStream> out = interpreter.run(cta);
  if (!out) {
    ADD_FAILURE() << to_string(out.error());
    return {};
  }
  return {std::move(*out), interpreter.doubts()};
}

// ---- Decoding ------------------------------------------------------------------------------------

TEST(Decode, ProductsHaveAQuarterOfTheirWarpgroups) {
  const Instruction i = decode({"", "HGMMA.64x176x16.F32.BF16", "R24,gdesc[UR8],R24,gsb0"}, 0, 0);
  EXPECT_EQ(i.matrix_n, 176);
  EXPECT_EQ(i.matrix_flops, 2u * 64 * 176 * 16 / 4);
  EXPECT_EQ(decode({"", "QGMMA.64x64x32.F32.E4M3.E4M3", "R24,gdesc[UR8],R24"}, 0, 0).matrix_flops,
            2u * 64 * 64 * 32 / 4);
  EXPECT_EQ(decode({"", "HMMA.16816.F32.BF16", "R4,R8,R12,R4"}, 0, 0).matrix_n, 0);
  EXPECT_EQ(decode({"", "UTMALDG.3D.MULTICAST", "[UR8],[UR30],UR37"}, 0, 0).matrix_rank, 3);
}

// ---- Barriers ------------------------------------------------------------------------------------

TEST(Barriers, OperationsHaveTheirCountsBytesAndParities) {
  // mbarrier.init of 3 arrivals writes (2^20 - 3) * 2, as ptxas computes it.
  const Streams r = run({{"", "UMOV", "UR4,0x1ffffa"},
                         {"", "UMOV", "UR5,0x7fffe800"},
                         {"", "UMOV", "UR8,0x400"},
                         {"", "MOV", "R4,0x2000"},
                         {"", "MOV", "R5,0x80000000"},
                         {"", "MOV", "R6,RZ"},
                         {"", "SYNCS.EXCH.64", "URZ,[UR8+0x8],UR4"},
                         {"", "SYNCS.ARRIVE.TRANS64.A1T0", "RZ,[UR8+0x8],RZ"},
                         {"", "SYNCS.ARRIVE.TRANS64", "RZ,[UR8+0x8],R4"},
                         {"", "SYNCS.PHASECHK.TRANS64.TRYWAIT", "P0,[UR8+0x8],R5"},
                         {"", "SYNCS.PHASECHK.TRANS64.TRYWAIT", "P0,[UR8+0x8],R6"},
                         {"", "EXIT", ""}},
                        launch_of(1, 4));
  const std::vector<Sync> s = r.syncs();
  ASSERT_EQ(s.size(), 5u);
  for (const Sync& one : s) EXPECT_EQ(one.barrier, 0x408u);
  EXPECT_EQ(s[0].kind, Sync::Kind::kInit);
  EXPECT_EQ(s[0].count, 3u);
  EXPECT_EQ(s[1].kind, Sync::Kind::kArrive);
  EXPECT_EQ(s[1].count, 4u) << "four threads arrive";
  EXPECT_EQ(s[1].bytes, 0u);
  EXPECT_EQ(s[2].bytes, 4u * 0x2000);
  EXPECT_EQ(s[3].kind, Sync::Kind::kWait);
  EXPECT_EQ(s[3].parity, 1);
  EXPECT_EQ(s[4].parity, 0);
  EXPECT_THAT(r.doubts, IsEmpty());
}

/// A CTA takes the most columns that it holds at a time.
TEST(TensorMemory, ColumnsThatAreGivenBackCountOnce) {
  const auto columns = [](std::vector<Line> lines) {
    lines.push_back({"", "EXIT", ""});
    return run(lines).cta.tensor_columns;
  };
  const Line four{"", "UMOV", "UR4,0x4"}, two{"", "UMOV", "UR5,0x2"};
  const Line take4{"", "UTCATOMSWS.FIND_AND_SET.ALIGN", "UP0,UR4,UR4"},
      take2{"", "UTCATOMSWS.FIND_AND_SET.ALIGN", "UP0,UR5,UR5"};
  const Line first4{"", "UMOV", "UR6,0xfffffff0"}, give{"", "UTCATOMSWS.AND", "URZ,UR6"};
  EXPECT_EQ(columns({four, take4}), 128u);
  EXPECT_EQ(columns({four, two, take4, take2}), 192u);
  EXPECT_EQ(columns({four, two, take4, first4, give, take2}), 128u);
  EXPECT_EQ(columns({four, two, take2, take4, first4, give}), 192u);
}

TEST(Barriers, AWaitIsNotRepeated) {
  const Streams r = run({{"", "UMOV", "UR8,0x400"},
                         {"", "SYNCS.PHASECHK.TRANS64.TRYWAIT", "P0,[UR8],RZ"},
                         {"@!P0", "BRA", "0x10"},
                         {"", "EXIT", ""}});
  EXPECT_EQ(r.executions(1), 1);
  EXPECT_THAT(r.doubts, IsEmpty());
}

TEST(Barriers, ATokensPhaseIsThatOfTheLastArrival) {
  const Streams r = run({{"", "UMOV", "UR8,0x400"},
                         {"", "SYNCS.ARRIVE.TRANS64.A1T0", "R2,[UR8],RZ"},
                         {"", "SYNCS.PHASECHK.TRANS64", "P0,[UR8],R3"},
                         {"", "EXIT", ""}});
  ASSERT_EQ(r.syncs().size(), 2u);
  EXPECT_EQ(r.syncs()[1].parity, Sync::kOfArrival);
}

TEST(Barriers, OneLaneIsElected) {
  const Streams r = run({{"", "UMOV", "UR8,0x400"},
                         {"", "ELECT", "P0,URZ,PT"},
                         {"@P0", "SYNCS.ARRIVE.TRANS64.A1T0", "RZ,[UR8],RZ"},
                         {"", "EXIT", ""}});
  ASSERT_EQ(r.syncs().size(), 1u);
  EXPECT_EQ(r.syncs()[0].count, 1u);
}

// ---- Copies --------------------------------------------------------------------------------------

std::vector<Line> load_at(const char* x, const char* y, const char* opcode = "UTMALDG.2D",
                          const char* operands = "[UR4],[UR8]") {
  return {{"", "UMOV", "UR4,0x1000"},
          {"", "UMOV", "UR5,0x10"},
          {"", "UMOV", x},
          {"", "UMOV", y},
          {"", "UMOV", "UR12,0x30000"},
          {"", "ULDC.64", "UR8,c[0x0][0x198]"},
          {"", opcode, operands},
          {"", "EXIT", ""}};
}

TEST(Copies, ATileHasTheLinesOfItsRows) {
  const Streams r = run(load_at("UR6,0x40", "UR7,0x8"));
  ASSERT_EQ(r.syncs().size(), 1u);
  const Sync s = r.syncs()[0];
  EXPECT_EQ(s.kind, Sync::Kind::kLoad);
  EXPECT_EQ(s.barrier, 0x10u);
  EXPECT_EQ(s.bytes, 64u * 32 * 2);
  const WarpStream& w = r.cta.warps[0];
  const Access& a = w.accesses.at(s.access);
  ASSERT_EQ(a.lines, 32);
  for (uint32_t k = 0; k < 32; ++k) {
    EXPECT_EQ(w.lines[a.first_line + k].line, (kTensor + (8 + k) * 512 + 64 * 2) / 128);
    EXPECT_EQ(w.lines[a.first_line + k].sectors, 0xf);
  }
  EXPECT_THAT(r.doubts, IsEmpty());
}

TEST(Copies, WhatLiesOutsideOfTheTensorIsNotRead) {
  const Streams r = run(load_at("UR6,0xe0", "UR7,0x5a"));  // 32 of 64 columns, 10 of 32 rows
  const Sync s = r.syncs().at(0);
  EXPECT_EQ(s.bytes, 64u * 32 * 2) << "but it is written, and counts at the barrier";
  const Access& a = r.cta.warps[0].accesses.at(s.access);
  EXPECT_EQ(a.lines, 10);
  EXPECT_EQ(r.cta.warps[0].lines[a.first_line].sectors, 0xc);
}

TEST(Copies, AMulticastHasItsReceivers) {
  EXPECT_EQ(run(load_at("UR6,0x0", "UR7,0x0")).syncs().at(0).ctas, 1);
  EXPECT_EQ(run(load_at("UR6,0x0", "UR7,0x0", "UTMALDG.2D.MULTICAST", "[UR4],[UR8],UR12")).syncs().at(0).ctas, 2);
}

TEST(Copies, AnUnreadableMapIsADoubt) {
  StreamLaunch launch = launch_of(1, 32);
  std::fill(launch.params.begin(), launch.params.end(), std::byte{0x5a});
  const Streams r = run(load_at("UR6,0x0", "UR7,0x0"), std::move(launch));
  EXPECT_EQ(r.doubts.size(), 1u);
}

TEST(Copies, ParametersLieWhereTheCodeHasThem) {
  // A scalar, then a map that is aligned behind a gap: launches pass them one after the other.
  StreamLaunch launch = launch_of(1, 32);
  launch.params.insert(launch.params.begin(), 4, std::byte{7});
  launch.param_places = {{0, 4}, {4, sim::kTensorMapBytes}};
  Code code = code_of({{"", "UMOV", "UR4,0x1000"},
                       {"", "UMOV", "UR5,0x10"},
                       {"", "UMOV", "UR6,0x0"},
                       {"", "UMOV", "UR7,0x0"},
                       {"", "ULDC.64", "UR8,c[0x0][0x198]"},
                       {"", "UIADD3", "UR8,UP0,UR8,0x70,URZ"},
                       {"", "UTMALDG.2D", "[UR4],[UR8]"},
                       {"", "EXIT", ""}});
  code.param_offsets = {0, 0x70};
  code.param_bytes = 0x70 + sim::kTensorMapBytes;
  Interpreter interpreter(code, std::move(launch));
  const Result<CtaStream> out = interpreter.run(0);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->warps[0].syncs.at(0).bytes, 64u * 32 * 2);
  EXPECT_THAT(interpreter.doubts(), IsEmpty());
}

// ---- Clusters ------------------------------------------------------------------------------------

TEST(Clusters, ARemoteBarrierStandsForTheOwnOne) {
  // The rank lies above the offset in an address of shared memory; lanes 0 and 1 arrive at one CTA each.
  StreamLaunch launch = launch_of(4, 2);
  launch.cluster = {2, 1, 1};
  const std::vector<Line> lines = {{"", "S2R", "R1,SR_TID.X"},
                                   {"", "MOV", "R2,0x408"},
                                   {"", "PRMT", "R3,R1,0x654,R2"},
                                   {"", "SYNCS.ARRIVE.TRANS64.RED.A1T0", "RZ,[R3+URZ],RZ"},
                                   {"", "EXIT", ""}};
  const Sync s = run(lines, launch).syncs().at(0);
  EXPECT_EQ(s.barrier, 0x408u);
  EXPECT_EQ(s.count, 2u);
  EXPECT_TRUE(s.is_remote);
}

TEST(Clusters, BytesThatAreSentCountAtTheOwnBarrier) {
  // st.async of lanes 0 to 3, each to one CTA: all CTAs send alike.
  StreamLaunch launch = launch_of(4, 4);
  launch.cluster = {4, 1, 1};
  const std::vector<Line> lines = {{"", "S2R", "R1,SR_TID.X"},
                                   {"", "MOV", "R2,0x400"},
                                   {"", "MOV", "R3,0x408"},
                                   {"", "PRMT", "R4,R1,0x654,R2"},
                                   {"", "PRMT", "R5,R1,0x654,R3"},
                                   {"", "STAS", "[R4.64],R0"},
                                   {"", "EXIT", ""}};
  const Streams r = run(lines, launch);
  ASSERT_EQ(r.syncs().size(), 1u);
  const Sync s = r.syncs()[0];
  EXPECT_EQ(s.kind, Sync::Kind::kSend);
  EXPECT_EQ(s.barrier, 0x408u);
  EXPECT_EQ(s.bytes, 16u);
  EXPECT_THAT(r.doubts, IsEmpty());
}

TEST(Clusters, TheRankFollowsTheIndex) {
  // A count that depends on the rank shows it.
  StreamLaunch launch = launch_of(4, 1);
  launch.cluster = {2, 1, 1};
  const std::vector<Line> lines = {{"", "S2R", "R2,SR_CgaCtaId"},
                                   {"", "UMOV", "UR8,0x400"},
                                   {"", "IADD3", "R2,R2,0x1,RZ"},
                                   {"", "SYNCS.ARRIVE.TRANS64.ART0", "RZ,[UR8],R2"},
                                   {"", "EXIT", ""}};
  EXPECT_EQ(run(lines, launch, 2).syncs().at(0).count, 1u);
  EXPECT_EQ(run(lines, launch, 3).syncs().at(0).count, 2u);
}

}  // namespace
}  // namespace roofgen::sass::async_test
