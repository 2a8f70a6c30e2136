// The time of a whole launch on hand-written machine code: what the whole grid reads, and CTAs of unequal work.
#include "tuner/timing/launch_time.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels.h"

namespace roofgen::timing::launch_time_test {
namespace {

struct Line {
  const char *predicate, *opcode, *operands;
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

LaunchTime time_of(const sass::Code& code, uint32_t ctas, uint32_t threads, int64_t smem_bytes = 0) {
  static const Result<Device> device = load_device(profile::data_files(), "a100-sxm-80");
  static const Result<Machine> machine = machine_of(*device);
  constexpr uint64_t kBuffer = uint64_t{7} << 40;
  LaunchRequest r;
  r.code = &code;
  r.launch.grid = {ctas, 1, 1};
  r.launch.block = {threads, 1, 1};
  r.launch.params.resize(sizeof kBuffer);
  std::memcpy(r.launch.params.data(), &kBuffer, sizeof kBuffer);
  r.registers = 32;
  r.smem_bytes = smem_bytes;
  Result<LaunchTime> out = launch_time(*device, *machine, std::move(r));
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

// ---- CTAs of unequal work ------------------------------------------------------------------------

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
  // The mean is the same, wherever the long CTAs are.
  const double last = time_of(growing(false), 1024, 256, kTwoOfAnSm).interval_s;
  const double first = time_of(growing(true), 1024, 256, kTwoOfAnSm).interval_s;
  EXPECT_NEAR(last / first, 1, 0.05);
}

}  // namespace
}  // namespace roofgen::timing::launch_time_test
