// The time of a whole launch on hand-written machine code: what the whole grid reads, the clock, and CTAs of unequal
// work.
#include "tuner/timing/launch_time.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels.h"
#include "tuner/timing/dram_share.h"
#include "tuner/timing/placement.h"

namespace roofgen::timing::launch_time_test {
namespace {

struct Line {
  const char *predicate, *opcode;
  std::string operands;
};

/// Stall counts of 4 cycles. Loads have scoreboard 0, which FFMA and EXIT wait for.
sass::Code code_of(const std::vector<Line>& lines) {
  sass::Code code;
  code.arch = "sm_80";
  code.first_param = 0x160;
  for (const Line& l : lines) {
    const std::string name = l.opcode;
    const uint64_t control = name.starts_with("LDG") ? 0x704 : name == "FFMA" || name == "EXIT" ? 0xfe4 : 0x7e4;
    code.instructions.push_back(sass::decode({l.predicate, l.opcode, l.operands}, 0, control << 41));
  }
  return code;
}

const Device& a100() {
  static const Result<Device> device = load_device(profile::data_files(), "a100-sxm-80");
  return *device;
}

LaunchRequest request_of(const sass::Code& code, uint32_t ctas, uint32_t threads, int64_t smem_bytes) {
  constexpr uint64_t kBuffer = uint64_t{7} << 40;
  LaunchRequest r;
  r.code = &code;
  r.launch.grid = {ctas, 1, 1};
  r.launch.block = {threads, 1, 1};
  r.launch.params.resize(sizeof kBuffer);
  std::memcpy(r.launch.params.data(), &kBuffer, sizeof kBuffer);
  r.registers = 32;
  r.smem_bytes = smem_bytes;
  return r;
}

LaunchTime time_of(const sass::Code& code, uint32_t ctas, uint32_t threads, int64_t smem_bytes = 0) {
  static const Result<Machine> machine = machine_of(a100());
  Result<LaunchTime> out = launch_time(a100(), *machine, request_of(code, ctas, threads, smem_bytes));
  if (!out) {
    ADD_FAILURE() << to_string(out.error());
    return {};
  }
  EXPECT_TRUE(out->doubts.empty());
  return std::move(*out);
}

// ---- DRAM ----------------------------------------------------------------------------------------

TEST(Dram, RowsAreNotFasterThanItsBandwidth) {
  // A CTA reads a row of 4096 bytes and as much that all CTAs read, which L1 has after the first round, and writes the
  // row.
  const sass::Code code = code_of({{"", "S2R", "R0,SR_CTAID.X"},
                                   {"", "S2R", "R1,SR_TID.X"},
                                   {"", "LEA", "R2,R0,R1,0x8"},
                                   {"", "IADD3", "R2,R2,0x1000,RZ"},
                                   {"", "MOV", "R8,0x10"},
                                   {"", "IMAD.WIDE.U32", "R4,R2,R8,c[0x0][0x160]"},
                                   {"", "IMAD.WIDE.U32", "R6,R1,R8,c[0x0][0x160]"},
                                   {"", "LDG.E.128", "R12,[R4.64]"},
                                   {"", "LDG.E.128", "R16,[R6.64]"},
                                   {"", "FFMA", "R12,R12,R13,R16"},
                                   {"", "STG.E.128", "[R4.64],R12"},
                                   {"", "EXIT", ""}});
  for (const uint32_t rounds : {4, 40}) {
    const LaunchTime time = time_of(code, 108 * 8 * rounds, 256);
    EXPECT_EQ(time.roof, "DRAM");
    EXPECT_GE(time.event_s, 0.999 * time.roofline_s) << rounds << " rounds";
    EXPECT_LE(time.event_s, 1.05 * time.roofline_s) << rounds << " rounds";
  }
}

TEST(Dram, ReadsGoBeforeTheWritesThatWaitInL2) {
  Machine m;
  m.dram_bytes_per_cycle = 32, m.l2_bytes = 80 * 32 / kL2Share;
  DramShare dram(m, 1);
  double busy = 0;
  dram.write(0, 50, busy);
  EXPECT_EQ(dram.read(10, 5, busy), 10);  // ten sectors have been written meanwhile
  EXPECT_EQ(dram.end(), 55);
  dram.write(15, 100, busy);  // of 140 that wait, 80 fit
  EXPECT_NEAR(dram.read(15, 1, busy), 75, 1e-9);
  EXPECT_NEAR(dram.end(), 156, 1e-9);
  EXPECT_EQ(busy, 156);
}

TEST(Dram, GetsASectorOnceThatIsWrittenInParts) {
  const auto written = [](const char* second) {
    const LaunchTime time = time_of(code_of({{"", "S2R", "R1,SR_TID.X"},
                                             {"", "MOV", "R8,0x20"},
                                             {"", "IMAD.WIDE.U32", "R6,R1,R8,c[0x0][0x160]"},
                                             {"", "STG.E.128", "[R6.64],R12"},
                                             {"", "STG.E.128", second},
                                             {"", "EXIT", ""}}),
                                    108, 256);
    EXPECT_EQ(time.counts.l2_write_sectors, 108 * 256 * 2);
    return time.counts.dram_write_bytes / 32 / 108 / 256;
  };
  EXPECT_EQ(written("[R6.64+0x10],R12"), 1);
  EXPECT_EQ(written("[R6.64+0x100000],R12"), 2);
}

/// CTA c reads 32 kB of row c / 64 and as much of column c % 64 of two matrices, in 64 turns of 128 threads.
sass::Code tiles() {
  return code_of({{"", "S2R", "R0,SR_CTAID.X"},
                  {"", "S2R", "R1,SR_TID.X"},
                  {"", "SHF.R.U32.HI", "R2,RZ,0x6,R0"},
                  {"", "LOP3.LUT", "R3,R0,0x3f,RZ,0xc0,!PT"},
                  {"", "LEA", "R2,R2,R1,0xb"},  // 16-byte elements: 2048 a row
                  {"", "LEA", "R3,R3,R1,0xb"},
                  {"", "IADD3", "R3,R3,0x100000,RZ"},
                  {"", "MOV", "R9,0x10"},
                  {"", "MOV", "R8,0x10"},
                  {"", "IMAD.WIDE.U32", "R4,R2,R8,c[0x0][0x160]"},  // 0x90
                  {"", "IMAD.WIDE.U32", "R6,R3,R8,c[0x0][0x160]"},
                  {"", "LDG.E.128", "R12,[R4.64]"},
                  {"", "LDG.E.128", "R16,[R6.64]"},
                  {"", "IADD3", "R2,R2,0x80,RZ"},
                  {"", "IADD3", "R3,R3,0x80,RZ"},
                  {"", "FFMA", "R12,R12,R13,R16"},
                  {"", "IADD3", "R9,R9,-0x1,RZ"},
                  {"", "ISETP.GT.AND", "P0,PT,R9,RZ,PT"},
                  {"@P0", "BRA", "0x90"},
                  {"", "EXIT", ""}});
}

TEST(Dram, TilesInAOneDimensionalGridShareRowsAndColumns) {
  // 108 SMs with 4 CTAs each run rows 7 to 14 of tiles at a time. Their 8 rows and 64 columns are 72 parts, where the
  // CTAs read 2 * 432.
  const LaunchTime time = time_of(tiles(), 64 * 64, 128, 38 << 10);
  EXPECT_EQ(time.occupancy.ctas_per_sm, 4);
  const double share = time.counts.dram_read_bytes / 32 / time.counts.global_load_sectors;
  EXPECT_GT(share, 0.6 * 72 / 864);
  EXPECT_LT(share, 1.4 * 72 / 864);
}

// ---- The clock -----------------------------------------------------------------------------------

/// A loop of eight HMMAs, `idle` IADD3s behind each.
sass::Code tensor(int idle) {
  std::vector<Line> lines = {{"", "MOV", "R9,0x100"}};
  for (int k = 0; k < 8; ++k) {
    lines.push_back({"", "HMMA.16816.F32", "R12,R4,R8,R12"});
    for (int i = 0; i < idle; ++i) lines.push_back({"", "IADD3", "R2,R2,0x1,RZ"});
  }
  lines.insert(lines.end(), {{"", "IADD3", "R9,R9,-0x1,RZ"},
                             {"", "ISETP.GT.AND", "P0,PT,R9,RZ,PT"},
                             {"@P0", "BRA", "0x10"},
                             {"", "EXIT", ""}});
  sass::Code code = code_of(lines);
  code.arch = "sm_90";
  return code;
}

TEST(Clock, FallsWithTheShareOfCyclesInWhichTheTensorUnitsMultiply) {
  const Result<Device> device = load_device(profile::data_files(), "h200-sxm");
  ASSERT_TRUE(device);
  const auto time = [&](int idle, double sm_mhz) {
    const sass::Code code = tensor(idle);
    LaunchRequest r;
    r.code = &code;
    r.launch.grid = {132 * 8, 1, 1};
    r.launch.block = {256, 1, 1};
    r.registers = 32;
    const Result<Machine> machine = machine_of(*device, sm_mhz);
    const Result<LaunchTime> out = machine ? launch_time(*device, *machine, std::move(r)) : machine.error();
    return out ? *out : LaunchTime{};
  };
  double last = 0;
  for (const int idle : {0, 4, 12, 40}) {
    const LaunchTime t = time(idle, 0);
    const double share = t.tensor_flops / 132 / device->at("wgmma_flops_per_clk_fp16") / t.cycles;
    // Power goes with the share and the third power of the clock.
    const double limit = device->at("clock_wgmma_mhz") / std::cbrt(share);
    EXPECT_NEAR(t.clock_hz * 1e-6, std::min(limit, device->at("clock_fp32_mhz")), 1) << idle;
    EXPECT_GE(t.clock_hz, last);
    EXPECT_EQ(time(idle, 1234).clock_hz, 1234e6) << "a clock that is given";
    last = t.clock_hz;
  }
  EXPECT_LT(time(0, 0).clock_hz, 0.9 * last);
}

// ---- CTAs of unequal work ------------------------------------------------------------------------

TEST(Placement, CtasThatDoTheSameHaveNoImbalance) {
  for (const double alone : {0.5, 1.0})
    EXPECT_DOUBLE_EQ(imbalance({1000, 108, 2, alone, [](uint64_t) { return 3; }}), 1);
  EXPECT_EQ(imbalance({0, 108, 2, 1, [](uint64_t) { return 3; }}), 1);
}

TEST(Placement, ALongCtaAtTheEndIsWaitedFor) {
  // One SM after the other: seven CTAs of 1 and one of 9 on two SMs, which have 8 each if the long one starts first.
  const auto long_one = [](uint64_t at) { return [at](uint64_t c) { return c == at ? 9.0 : 1.0; }; };
  EXPECT_DOUBLE_EQ(imbalance({8, 2, 1, 1, long_one(0)}), 9.0 / 8);
  EXPECT_DOUBLE_EQ(imbalance({8, 2, 1, 1, long_one(7)}), 12.0 / 8);
}

TEST(Placement, ACtaAloneIsAsFastAsItsOwnResultsAllow) {
  // Two CTAs of 1 and 3 on one SM. They share it for 2; then the second has 2 left, alone.
  const auto work = [](uint64_t c) { return c ? 3.0 : 1.0; };
  EXPECT_DOUBLE_EQ(imbalance({2, 1, 2, 1, work}), (2 + 2) / 4.0);
  EXPECT_DOUBLE_EQ(imbalance({2, 1, 2, 0.5, work}), (2 + 4) / 4.0);
}

TEST(Placement, AGridOfBillionsOfCtasIsNotPlaced) {
  // CTAs behind the first 4096 leave at once.
  const sass::Code code = code_of({{"", "S2R", "R0,SR_CTAID.X"},
                                   {"", "ISETP.GE.AND", "P0,PT,R0,0x1000,PT"},
                                   {"@P0", "EXIT", ""},
                                   {"", "IADD3", "R1,R0,0x1,RZ"},
                                   {"", "EXIT", ""}});
  const LaunchTime time = time_of(code, 0x7fffffff, 32);
  EXPECT_EQ(time.imbalance, 1);
  EXPECT_GT(time.event_s, 0);
}

TEST(Placement, TheFirstFreeSmTakesTheNextCta) {
  // 4, 1, 1, 1, 1 on two SMs: the second takes all the short ones.
  EXPECT_DOUBLE_EQ(imbalance({5, 2, 1, 1, [](uint64_t c) { return c ? 1.0 : 4.0; }}), 4 / (3 * 8 / 5.0));
}

/// CTA c makes a loop of 8 + c / 8 turns, or, of 1024 CTAs, the last ones first; 71.5 turns on average. In each, a warp
/// reads 512 bytes of its own.
sass::Code growing(bool most_first) {
  return code_of({{"", "S2R", "R0,SR_CTAID.X"},
                  {"", "S2R", "R1,SR_TID.X"},
                  {"", "MOV", "R2,R0"},
                  {most_first ? "" : "@!PT", "IADD3", "R2,-R0,0x3ff,RZ"},
                  {"", "SHF.R.U32.HI", "R2,RZ,0x3,R2"},
                  {"", "IADD3", "R2,R2,0x8,RZ"},
                  {"", "LEA", "R3,R0,R1,0x12"},
                  {"", "MOV", "R8,0x10"},
                  {"", "IMAD.WIDE.U32", "R4,R3,R8,c[0x0][0x160]"},  // 0x80
                  {"", "LDG.E.128", "R12,[R4.64]"},
                  {"", "IADD3", "R3,R3,0x100,RZ"},
                  {"", "FFMA", "R12,R12,R13,R14"},
                  {"", "IADD3", "R2,R2,-0x1,RZ"},
                  {"", "ISETP.GT.AND", "P0,PT,R2,RZ,PT"},
                  {"@P0", "BRA", "0x80"},
                  {"", "EXIT", ""}});
}

constexpr int64_t kTwoOfAnSm = 70 << 10;

TEST(Unequal, TheWholeGridReadsNoMoreThanItLoads) {
  for (const bool most_first : {false, true}) {
    const LaunchTime time = time_of(growing(most_first), 1024, 256, kTwoOfAnSm);
    EXPECT_NEAR(time.counts.global_load_sectors / (1024 * 71.5 * 256.0 / 2), 1, 0.02);
    EXPECT_NEAR(time.counts.l2_read_sectors / time.counts.global_load_sectors, 1, 0.01);
    EXPECT_NEAR(time.counts.dram_read_bytes / 32 / time.counts.global_load_sectors, 1, 0.05);
  }
}

TEST(Unequal, TheIntervalOfARoundIsThatOfItsOwnCtas) {
  // The mean is the same, wherever the long CTAs are; the end of the grid is not.
  const LaunchTime last = time_of(growing(false), 1024, 256, kTwoOfAnSm);
  const LaunchTime first = time_of(growing(true), 1024, 256, kTwoOfAnSm);
  EXPECT_GT(last.imbalance, first.imbalance);
  EXPECT_NEAR(last.interval_s / last.imbalance / (first.interval_s / first.imbalance), 1, 0.05);
}

/// Turns of arithmetic: CTA c makes 256 of them where bits 3 to 5 of c are set, and else 1024.
sass::Code short_strips() {
  return code_of({{"", "S2R", "R0,SR_CTAID.X"},
                  {"", "SHF.R.U32.HI", "R3,RZ,0x3,R0"},
                  {"", "LOP3.LUT", "R3,R3,0x7,RZ,0xc0,!PT"},
                  {"", "MOV", "R2,0x400"},
                  {"", "ISETP.EQ.AND", "P1,PT,R3,0x7,PT"},
                  {"@P1", "MOV", "R2,0x100"},
                  {"", "FFMA", "R12,R12,R13,R14"},  // 0x60
                  {"", "IADD3", "R2,R2,-0x1,RZ"},
                  {"", "ISETP.GT.AND", "P0,PT,R2,RZ,PT"},
                  {"@P0", "BRA", "0x60"},
                  {"", "EXIT", ""}});
}

TEST(Unequal, AGridIsFlattenedFromAxes) {
  // 8 x 8 x 3 CTAs, one on each of 108 SMs. 84 SMs get two, of which nearly all are long ones.
  const sass::Code code = short_strips();
  LaunchRequest r = request_of(code, 192, 256, 140 << 10);
  r.launch.axes[0] = {8, 8, 3};
  const Result<Machine> machine = machine_of(a100());
  ASSERT_TRUE(machine);
  const Result<LaunchTime> time = launch_time(a100(), *machine, std::move(r));
  ASSERT_TRUE(time);
  const double turns = 168 * 1024 + 24 * 256;
  EXPECT_NEAR(time->counts.fp32_thread_instructions / (256 * turns), 1, 1e-6);
  EXPECT_NEAR(time->imbalance, 2 * 1024 / (2 * turns / 192), 0.01);
}

/// CTAs that go through tiles 108 apart, with 1024 turns of arithmetic for each.
sass::Code persistent(int tiles) {
  return code_of({{"", "S2R", "R0,SR_CTAID.X"},
                  {"", "MOV", "R2,0x400"},          // 0x10
                  {"", "FFMA", "R12,R12,R13,R14"},  // 0x20
                  {"", "IADD3", "R2,R2,-0x1,RZ"},
                  {"", "ISETP.GT.AND", "P0,PT,R2,RZ,PT"},
                  {"@P0", "BRA", "0x20"},
                  {"", "IADD3", "R0,R0,0x6c,RZ"},
                  {"", "ISETP.GE.AND", fmt::format("P0,PT,R0,{:#x},PT", tiles)},
                  {"@!P0", "BRA", "0x10"},
                  {"", "EXIT", ""}});
}

TEST(Unequal, PersistentCtasTakeAsLongAsTheOneWithTheMostTiles) {
  const auto cycles = [](int tiles) { return time_of(persistent(tiles), 108, 256, 140 << 10).cycles; };
  const double four = cycles(4 * 108);
  EXPECT_NEAR(cycles(3 * 108) / four, 0.75, 0.01);
  for (const int more : {1, 30, 54, 107}) EXPECT_NEAR(cycles(3 * 108 + more) / four, 1, 0.01) << more;
}

LaunchTime time_on_b200(const sass::Code& code, uint32_t ctas, uint32_t threads, int64_t smem_bytes) {
  static const Result<Device> device = load_device(profile::data_files(), "b200");
  static const Result<Machine> machine = machine_of(*device);
  Result<LaunchTime> out = launch_time(*device, *machine, request_of(code, ctas, threads, smem_bytes));
  EXPECT_TRUE(out) << to_string(out.error());
  return out ? std::move(*out) : LaunchTime{};
}

TEST(Unequal, CtasThatAskForWorkShareTheGrid) {
  // Warp 1 asks (clusterlaunchcontrol.try_cancel), warp 0 reads the answers, too. A tile is 1024 turns of both.
  sass::Code code = code_of({{"", "S2R", "R1,SR_TID.X"},
                             {"", "ISETP.GE.AND", "P2,PT,R1,0x20,PT"},
                             {"", "UMOV", "UR4,0x800"},
                             {"", "UMOV", "UR5,0x900"},
                             {"", "MOV", "R2,0x400"},  // 0x40
                             {"@!P2", "BRA", "0x70"},
                             {"", "UGETNEXTWORKID.SELFCAST", "[UR4],[UR5]"},
                             {"", "FADD", "R12,R12,R13"},  // 0x70
                             {"", "IADD3", "R2,R2,-0x1,RZ"},
                             {"", "ISETP.GT.AND", "P0,PT,R2,RZ,PT"},
                             {"@P0", "BRA", "0x70"},
                             {"", "LDS.128", "R4,[UR4]"},
                             {"", "LOP3.LUT", "P1,RZ,R6,0x1,RZ,0xc0,!PT"},
                             {"@P1", "BRA", "0x40"},
                             {"", "EXIT", ""}});
  code.arch = "sm_100a";
  const auto of = [&](uint32_t tiles) { return time_on_b200(code, tiles, 64, 140 << 10); };
  const LaunchTime four = of(4 * 148), more = of(3 * 148 + 1), one = of(148);
  EXPECT_EQ(four.ctas, 148);
  EXPECT_EQ(four.counts.fp32_thread_instructions, 4 * 148 * 1024 * 64.0);
  EXPECT_EQ(more.counts.fp32_thread_instructions, (3 * 148 + 1) * 1024 * 64.0);
  EXPECT_NEAR(more.cycles / four.cycles, 1, 0.01);
  EXPECT_NEAR(four.cycles / one.cycles, 4, 0.1);
}

TEST(TensorMemory, ItsColumnsLimitTheCtas) {
  for (const int units : {16, 4}) {
    sass::Code code = code_of({{"", "UMOV", fmt::format("UR4,{:#x}", units)},
                               {"", "UTCATOMSWS.FIND_AND_SET.ALIGN", "UP0,UR4,UR4"},
                               {"", "BRA.U", "UP0,0x40"},
                               {"", "NANOSLEEP", "0x64"},
                               {"", "EXIT", ""}});
    code.arch = "sm_100a";
    const LaunchTime time = time_on_b200(code, 1000, 32, 0);
    EXPECT_EQ(time.occupancy.ctas_per_sm, 16 / units);
    EXPECT_EQ(time.occupancy.limited_by, "tensor memory");
  }
}

// ---- One launch, many machines -------------------------------------------------------------------

TEST(LaunchModel, GivesTheTimesOfLaunchTimeInAnyOrder) {
  const sass::Code code = growing(false);
  const Result<Machine> machine = machine_of(a100());
  ASSERT_TRUE(machine);
  Machine other = at_clock(*machine, 1e9);
  other.branch_cycles = 40;
  other.memory_queue = 2;
  LaunchModel model(a100(), request_of(code, 1024, 256, kTwoOfAnSm));
  std::vector<double> times;
  for (const Machine& m : {*machine, other, *machine}) {
    const Result<LaunchTime> got = model.time(m);
    const Result<LaunchTime> wanted = launch_time(a100(), m, request_of(code, 1024, 256, kTwoOfAnSm));
    ASSERT_TRUE(got && wanted);
    EXPECT_EQ(got->event_s, wanted->event_s);
    EXPECT_EQ(got->interval_s, wanted->interval_s);
    EXPECT_EQ(got->roofline_s, wanted->roofline_s);
    EXPECT_EQ(got->imbalance, wanted->imbalance);
    EXPECT_EQ(got->counts.dram_read_bytes, wanted->counts.dram_read_bytes);
    times.push_back(got->event_s);
  }
  EXPECT_NE(times[0], times[1]);
  EXPECT_GT(model.stream_bytes(), 0u);
}

}  // namespace
}  // namespace roofgen::timing::launch_time_test
