// Streams of hand-written machine code: values that stores leave, barriers of lanes and of warps, and branches on
// unknown values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/sass/stream.h"
#include "runtime/sass/taken_shares.h"

namespace roofgen::sass::interpreter_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Line {
  const char *predicate, *opcode, *operands;
};

Code code_of(const std::vector<Line>& lines) {
  Code code;
  code.arch = "sm_80";
  code.first_param = 0x160;
  for (const Line& l : lines) code.instructions.push_back(decode({l.predicate, l.opcode, l.operands}, 0, 0));
  return code;
}

constexpr uint64_t kBuffer = uint64_t{7} << 40;

/// A launch with the buffer, of zeros, as its parameter.
StreamLaunch launch_of(uint32_t ctas, uint32_t threads) {
  StreamLaunch l;
  l.grid = {ctas, 1, 1};
  l.block = {threads, 1, 1};
  l.params.resize(sizeof kBuffer);
  std::memcpy(l.params.data(), &kBuffer, sizeof kBuffer);
  l.read = [](uint64_t, std::span<std::byte> out) {
    std::fill(out.begin(), out.end(), std::byte{});
    return true;
  };
  return l;
}

CtaStream run(Interpreter& interpreter, uint64_t cta = 0) {
  Result<CtaStream> out = interpreter.run(cta);
  if (!out) {
    ADD_FAILURE() << to_string(out.error());
    return {};
  }
  return std::move(*out);
}

/// Executions of an instruction, warp by warp.
std::vector<int> executions(const CtaStream& cta, uint32_t index) {
  std::vector<int> out;
  for (const WarpStream& w : cta.warps)
    out.push_back(static_cast<int>(std::ranges::count(w.instructions(), index, &Step::index)));
  return out;
}

// ---- Values in device memory ---------------------------------------------------------------------

/// Stores a value, and counts to what it then loads.
std::vector<Line> counts_to_a_stored(const char* value) {
  return {{"", "MOV", "R2,c[0x0][0x160]"},
          {"", "MOV", "R3,c[0x0][0x164]"},
          {"", "MOV", value},
          {"", "STG.E", "[R2.64],R4"},
          {"", "LDG.E", "R5,[R2.64]"},
          {"", "IADD3", "R5,R5,-0x1,RZ"},  // 0x50
          {"", "ISETP.GT.AND", "P0,PT,R5,RZ,PT"},
          {"@P0", "BRA", "0x50"},
          {"", "EXIT", ""}};
}

TEST(Stores, AreReadBack) {
  const Code code = code_of(counts_to_a_stored("R4,0x7"));
  Interpreter i(code, launch_of(1, 32));
  EXPECT_THAT(executions(run(i), 5), ElementsAre(7));
  EXPECT_THAT(i.doubts(), IsEmpty());
}

TEST(Stores, OfUnknownValuesMakeTheInitialContentsUnknown) {
  const Code code = code_of(counts_to_a_stored("R4,R9"));
  Interpreter i(code, launch_of(1, 32));
  EXPECT_THAT(executions(run(i), 5), ElementsAre(1));
  ASSERT_EQ(i.doubts().size(), 1u);
  EXPECT_EQ(i.doubts()[0].index, 7u);
}

TEST(Stores, OfAnotherCtaAreUnknown) {
  // CTA 0 stores what CTA 1 loads.
  const Code code = code_of({{"", "MOV", "R2,c[0x0][0x160]"},
                             {"", "MOV", "R3,c[0x0][0x164]"},
                             {"", "S2R", "R0,SR_CTAID.X"},
                             {"", "ISETP.EQ.AND", "P0,PT,R0,RZ,PT"},
                             {"@P0", "STG.E", "[R2.64],R0"},
                             {"@P0", "EXIT", ""},
                             {"", "LDG.E", "R5,[R2.64]"},
                             {"", "ISETP.GT.AND", "P1,PT,R5,RZ,PT"},
                             {"@P1", "BRA", "0x90"},
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(2, 32));
  run(i, 0);
  EXPECT_THAT(i.doubts(), IsEmpty());
  run(i, 1);
  EXPECT_EQ(i.doubts().size(), 1u);
}

TEST(Stores, AtomicOperationsLeaveUnknownValues) {
  const Code code = code_of({{"", "MOV", "R2,c[0x0][0x160]"},
                             {"", "MOV", "R3,c[0x0][0x164]"},
                             {"", "RED.E.ADD.STRONG.GPU", "[R2.64],R0"},
                             {"", "STS", "[RZ],RZ"},
                             {"", "ATOMS.ADD", "RZ,[RZ],R0"},
                             {"", "LDG.E", "R5,[R2.64]"},
                             {"", "LDS", "R6,[RZ]"},
                             {"", "ISETP.GT.AND", "P0,PT,R5,RZ,PT"},
                             {"", "ISETP.GT.AND", "P1,PT,R6,RZ,PT"},
                             {"@P0", "BRA", "0xa0"},
                             {"@P1", "BRA", "0xb0"},
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(1, 32));
  run(i);
  EXPECT_EQ(i.doubts().size(), 2u);
}

// ---- Lanes ---------------------------------------------------------------------------------------

TEST(Lanes, WarpsyncWaitsForTheLanesOfItsMask) {
  // The upper half goes another way, and both meet in WARPSYNC. Without it they would load one after the other.
  const auto loads = [](const char* mask) {
    const Code code = code_of({{"", "S2R", "R0,SR_TID.X"},
                               {"", "ISETP.GE.AND", "P0,PT,R0,0x10,PT"},
                               {"", "MOV", mask},
                               {"@P0", "BRA", "0x50"},
                               {"", "NOP", ""},
                               {"", "WARPSYNC", "R4"},  // 0x50
                               {"", "LDS", "R5,[RZ]"},
                               {"", "EXIT", ""}});
    Interpreter i(code, launch_of(1, 32));
    const auto out = executions(run(i), 6);
    EXPECT_THAT(i.doubts(), IsEmpty());
    return out;
  };
  EXPECT_THAT(loads("R4,0xffffffff"), ElementsAre(1));
  EXPECT_THAT(loads("R4,0x0"), ElementsAre(2));
}

TEST(Lanes, BranchesAskWhetherAllLanesOfAMaskAreHere) {
  const Code code = code_of({{"", "S2R", "R0,SR_TID.X"},
                             {"", "ISETP.GE.AND", "P0,PT,R0,0x10,PT"},
                             {"", "UMOV", "UR4,0xffffffff"},
                             {"", "BRA.DIV", "UR4,0x90"},
                             {"@P0", "BRA", "0x50"},
                             {"", "BRA.CONV", "UR4,0x90"},  // 0x50
                             {"", "NOP", ""},
                             {"", "EXIT", ""},
                             {"", "NOP", ""},
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(1, 32));
  const CtaStream cta = run(i);
  // One half is not the whole warp; when it has ended, the other one is.
  EXPECT_THAT(executions(cta, 6), ElementsAre(1));
  EXPECT_THAT(executions(cta, 9), ElementsAre(1));
}

TEST(Lanes, UnanimousBranchesKeepTheLanesTogether) {
  const auto code = [](const char* branch) {
    return code_of({{"", "S2R", "R0,SR_TID.X"},
                    {"", "ISETP.GE.AND", "P0,PT,R0,0x1,PT"},
                    {"@P0", branch, "0x40"},  // all lanes but the first would jump
                    {"", "NOP", ""},
                    {"", "EXIT", ""}});
  };
  const auto lanes_behind = [&](const char* branch, uint32_t threads) {
    const Code c = code(branch);
    Interpreter i(c, launch_of(1, threads));
    return executions(run(i), 3);
  };
  EXPECT_THAT(lanes_behind("BRA.U", 32), ElementsAre(1));
  EXPECT_THAT(lanes_behind("BRA.U.ANY", 32), ElementsAre(0));
  EXPECT_THAT(lanes_behind("BRA.U.ANY", 1), ElementsAre(1));
}

TEST(Lanes, ACollectivePartRunsOnceForAllItsLanes) {
  const Code code = code_of({{"", "S2R", "R0,SR_TID.X"},
                             {"", "ISETP.GE.AND", "P0,PT,R0,0x10,PT"},
                             {"", "MOV", "R4,0xffffffff"},
                             {"@P0", "BRA", "0x70"},
                             {"", "WARPSYNC.COLLECTIVE", "R4,0x90"},
                             {"", "SHFL.IDX", "PT,R6,R5,RZ,0x1f"},
                             {"", "ENDCOLLECTIVE", ""},
                             {"", "WARPSYNC.COLLECTIVE", "R4,0xa0"},  // 0x70
                             {"", "BRA", "0x50"},
                             {"", "EXIT", ""},
                             {"", "NOP", ""},  // 0xa0
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(1, 32));
  const CtaStream cta = run(i);
  EXPECT_THAT(executions(cta, 5), ElementsAre(1));
  EXPECT_THAT(executions(cta, 9), ElementsAre(1));
  EXPECT_THAT(executions(cta, 10), ElementsAre(1));
}

TEST(Lanes, MatchAndReduce) {
  // Of the 32 lanes, those with an even number count to 16 lanes that match, and the largest number is 31.
  const Code code = code_of({{"", "S2R", "R0,SR_TID.X"},
                             {"", "LOP3.LUT", "R1,R0,0x1,RZ,0xc0,!PT"},
                             {"", "MATCH.ANY", "R2,R1"},
                             {"", "POPC", "R3,R2"},
                             {"", "REDUX.MAX.S32", "UR4,R0"},
                             {"", "ISETP.NE.AND", "P0,PT,R3,0x10,PT"},
                             {"", "ISETP.NE.AND", "P1,PT,RZ,UR4,PT"},
                             {"@P0", "BRA", "0xa0"},
                             {"@!P1", "BRA", "0xa0"},
                             {"", "EXIT", ""},
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(1, 32));
  EXPECT_THAT(executions(run(i), 9), ElementsAre(1));
  EXPECT_THAT(i.doubts(), IsEmpty());
}

TEST(Lanes, TheLeastAndTheMostOfThree) {
  // Of lane number, 7 and 9 the most is 9 for the lanes up to 9, and the least is at most 7 for all.
  const Code code = code_of({{"", "S2R", "R0,SR_TID.X"},
                             {"", "MOV", "R1,0x7"},
                             {"", "MOV", "R2,0x9"},
                             {"", "VIMNMX3", "R3,R0,R1,R2,!PT"},
                             {"", "VIMNMX3.U32", "R4,R0,R1,R2,PT"},
                             {"", "ISETP.NE.AND", "P0,PT,R3,0x9,PT"},
                             {"", "ISETP.GT.AND", "P1,PT,R4,0x7,PT"},
                             {"@P1", "BRA", "0xa0"},
                             {"@P0", "EXIT", ""},
                             {"", "EXIT", ""},
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(1, 32));
  const CtaStream cta = run(i);
  EXPECT_THAT(executions(cta, 9), ElementsAre(1));  // by lanes 0 to 9
  EXPECT_THAT(executions(cta, 10), ElementsAre(0));
  EXPECT_THAT(i.doubts(), IsEmpty());
}

// ---- Shared memory -------------------------------------------------------------------------------

TEST(SharedMemory, MatricesAreServedOneAfterTheOther) {
  // A lane for each row; rows of the same bank in all matrices, and rows without conflicts.
  const auto wavefronts = [](const char* row, const char* opcode, const char* operands) {
    const Code code =
        code_of({{"", "S2R", "R0,SR_LANEID"}, {"", "IMAD", row}, {"", opcode, operands}, {"", "EXIT", ""}});
    Interpreter i(code, launch_of(1, 32));
    const CtaStream cta = run(i);
    EXPECT_THAT(i.doubts(), IsEmpty());
    return cta.warps[0].accesses.at(0).wavefronts;
  };
  const std::pair<const char*, int> rows[] = {{"R2,R0,0x80,RZ", 8}, {"R2,R0,0x90,RZ", 1}, {"R2,R0,0x10,RZ", 1}};
  for (const auto& [row, passes] : rows) {
    EXPECT_EQ(wavefronts(row, "LDSM.16.M88", "R4,[R2]"), passes);
    EXPECT_EQ(wavefronts(row, "LDSM.16.M88.2", "R4,[R2]"), 2 * passes);
    EXPECT_EQ(wavefronts(row, "LDSM.16.MT88.4", "R4,[R2]"), 4 * passes);
    EXPECT_EQ(wavefronts(row, "STSM.16.M88.4", "[R2],R4"), 4 * passes);
  }
}

// ---- Barriers of the CTA -------------------------------------------------------------------------

TEST(Barriers, StepsHaveTheNumberAndTheWarps) {
  const Code code = code_of({{"", "S2R", "R0,SR_TID.X"},
                             {"", "ISETP.GE.AND", "P0,PT,R0,0x20,PT"},
                             {"", "BAR.SYNC", "0x0"},
                             {"@P0", "BRA", "0x60"},
                             {"", "BAR.ARV", "0x3,0x40"},
                             {"", "EXIT", ""},
                             {"", "BAR.SYNC", "0x3,0x40"},  // 0x60
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(1, 64));
  const CtaStream cta = run(i);
  for (const WarpStream& w : cta.warps) {
    std::vector<std::pair<uint32_t, uint32_t>> barriers;
    for (const Step& s : w.steps)
      if (s.is_barrier()) barriers.emplace_back(s.barrier_number(), s.barrier_warps());
    EXPECT_THAT(barriers, ElementsAre(std::pair(0u, 2u), std::pair(3u, 2u)));
  }
}

TEST(Barriers, VotesOfAllWarps) {
  // Threads 0 to 39 vote for: POPC gives 40, OR holds, AND does not.
  const Code code = code_of({{"", "S2R", "R0,SR_TID.X"},
                             {"", "ISETP.LT.AND", "P0,PT,R0,0x28,PT"},
                             {"", "BAR.RED.POPC", "0x0,P0"},
                             {"", "B2R.RESULT", "R4"},
                             {"", "ISETP.EQ.AND", "P1,PT,R4,0x28,PT"},
                             {"@!P1", "EXIT", ""},
                             {"", "BAR.RED.OR", "0x0,P0"},
                             {"", "B2R.RESULT", "RZ,P2"},
                             {"@!P2", "EXIT", ""},
                             {"", "BAR.RED.AND", "0x0,P0"},
                             {"", "B2R.RESULT", "RZ,P3"},
                             {"@P3", "EXIT", ""},
                             {"", "NOP", ""},
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(1, 64));
  EXPECT_THAT(executions(run(i), 12), ElementsAre(1, 1));
  EXPECT_THAT(i.doubts(), IsEmpty());
}

// ---- Branches on unknown values ------------------------------------------------------------------

/// Ten turns of a loop; in each, an unknown value decides whether instruction 4 is skipped.
Code lazy_loop() {
  return code_of({{"", "MOV", "R1,RZ"},
                  {"", "DSETP.GT.AND", "P0,PT,R2,R4,PT"},  // 0x10
                  {"", "VOTE.ANY", "P0,P0"},
                  {"@!P0", "BRA", "0x50"},
                  {"", "FMUL", "R6,R6,R6"},
                  {"", "IADD3", "R1,R1,0x1,RZ"},  // 0x50
                  {"", "ISETP.NE.AND", "P1,PT,R1,0xa,PT"},
                  {"@P1", "BRA", "0x10"},
                  {"", "EXIT", ""}});
}

TEST(Unknown, BranchesAreNotTakenWithoutKnowledge) {
  const Code code = lazy_loop();
  Interpreter i(code, launch_of(1, 32));
  EXPECT_THAT(executions(run(i), 4), ElementsAre(10));
  ASSERT_EQ(i.doubts().size(), 1u);
  EXPECT_EQ(i.doubts()[0].count, 10u);
  EXPECT_FALSE(i.doubts()[0].share.has_value());
}

TEST(Unknown, AShareOfBranchesIsTakenAndSpreadEvenly) {
  const Code code = lazy_loop();
  for (int tenths = 0; tenths <= 10; ++tenths) {
    StreamLaunch launch = launch_of(2, 64);
    launch.taken_share = [&](uint32_t index) { return index == 3 ? std::optional(tenths / 10.0) : std::nullopt; };
    Interpreter i(code, launch);
    const CtaStream first = run(i, 1);
    EXPECT_THAT(executions(first, 4), ElementsAre(10 - tenths, 10 - tenths));
    // The other CTA does the same, and again the same.
    EXPECT_EQ(executions(run(i, 0), 4), executions(first, 4));
    EXPECT_EQ(i.doubts()[0].share, tenths / 10.0);
    // The longest run of turns that are not skipped.
    if (tenths != 3) continue;
    size_t longest = 0, skipped_at = 0;
    std::vector<Step> steps;
    std::ranges::copy(first.warps[0].instructions(), std::back_inserter(steps));
    for (size_t k = 0; k < steps.size(); ++k)
      if (steps[k].index == 3 && steps[k + 1].index == 5) longest = std::max(longest, k - skipped_at), skipped_at = k;
    EXPECT_LE(longest, 4u * 7);
  }
}

TEST(Unknown, KnownLanesGoTheirOwnWay) {
  // Lanes 0 to 15 know that they skip; the others do not know, and do not.
  const Code code = code_of({{"", "S2R", "R0,SR_TID.X"},
                             {"", "ISETP.LT.AND", "P1,PT,R0,0x10,PT"},
                             {"", "ISETP.LT.OR", "P0,PT,R9,RZ,P1"},
                             {"@P0", "BRA", "0x50"},
                             {"", "LDS", "R5,[RZ]"},
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(1, 32));
  const CtaStream cta = run(i);
  ASSERT_EQ(cta.warps[0].accesses.size(), 1u);
  EXPECT_EQ(cta.warps[0].accesses[0].lanes, 16);
}

TEST(Unknown, OneCtaGoesOnWhereMostEnd) {
  // The last CTA to arrive, which an atomic tells apart, loads once more.
  const auto loads = [](const CtaStream& cta) { return cta.warps[0].accesses.size(); };
  for (const auto& [end, target] : {std::pair("EXIT", ""), std::pair("BRA", "0x40")}) {
    const Code code = code_of({{"", "DSETP.GT.AND", "P0,PT,R2,R4,PT"},
                               {"@P0", end, target},
                               {"", "BAR.SYNC", "0x0"},  // which all warps must reach
                               {"", "LDS", "R5,[RZ]"},
                               {"", "EXIT", ""}});  // 0x40
    for (const auto& [share, goes_on] :
         {std::pair(0.9, true), std::pair(0.5, true), std::pair(1.0, false), std::pair(0.4, false)}) {
      StreamLaunch launch = launch_of(2, 64);
      launch.taken_share = [share = share](uint32_t) { return std::optional(share); };
      Interpreter i(code, launch);
      EXPECT_EQ(loads(run(i)), share >= 0.5 ? 0u : 1u);
      const auto last = i.run_on(0);
      ASSERT_TRUE(last) << last.error().message;
      ASSERT_EQ(last->has_value(), goes_on) << share;
      if (goes_on) {
        EXPECT_EQ(loads(**last), 1u);
      }
      // It changes neither later CTAs nor the knowledge about the branch.
      EXPECT_EQ(loads(run(i)), share >= 0.5 ? 0u : 1u);
      EXPECT_EQ(i.doubts()[0].count, 4u);
    }
  }
}

SiteCounts site(int line, uint64_t executed) {
  SiteCounts out;
  out.source = {"lazy.cu", line, 0};
  out.executed = executed;
  return out;
}

// ---- Instructions that pass ----------------------------------------------------------------------

TEST(Passing, PlainInstructionsShareAStep) {
  const Code code = code_of({{"", "FADD", "R4,R5,R6"},
                             {"", "FFMA", "R4,R5,R6,R4"},
                             {"", "LDS", "R5,[RZ]"},
                             {"", "FMUL", "R4,R5,R6"},
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(1, 32));
  const WarpStream w = run(i).warps.at(0);
  ASSERT_EQ(w.steps.size(), 3u);
  EXPECT_EQ(w.steps[0].count(), 2u);
  EXPECT_TRUE(w.steps[1].has_access());
  EXPECT_EQ(w.steps[2].count(), 2u);
  EXPECT_EQ(w.length(), 5u);
  EXPECT_EQ(w.lane_instructions, 5u * 32);
  EXPECT_EQ(w.fp32_lanes, 3u * 32);
  EXPECT_EQ(w.fma_lanes, 32u);
  std::vector<uint32_t> order;
  for (const Step& s : w.instructions()) order.push_back(s.index);
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
  // A warp that is stopped stops among them.
  const Result<CtaStream> part = Interpreter(code, launch_of(1, 32)).run(0, 1);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->warps.at(0).length(), 1u);
}

TEST(Passing, AKnownRegisterBecomesUnknownInALoop) {
  // The sum of unknown values steers a branch. In every turn R5 is first known, then it is not.
  const Code code = code_of({{"", "MOV", "R0,RZ"},
                             {"", "MOV", "R5,0x1"},  // 0x10
                             {"", "FADD", "R5,R5,R9"},
                             {"", "FADD", "R6,R5,R5"},
                             {"", "ISETP.NE.AND", "P0,PT,R6,RZ,PT"},
                             {"@P0", "BRA", "0x80"},
                             {"", "IADD3", "R0,R0,0x1,RZ"},
                             {"", "BRA", "0x90"},
                             {"", "EXIT", ""},  // 0x80
                             {"", "ISETP.LT.AND", "P1,PT,R0,0x3,PT"},
                             {"@P1", "BRA", "0x10"},
                             {"", "EXIT", ""}});
  Interpreter i(code, launch_of(1, 32));
  EXPECT_THAT(executions(run(i), 6), ElementsAre(3));
  ASSERT_EQ(i.doubts().size(), 1u);
  EXPECT_EQ(i.doubts()[0].index, 5u);
  EXPECT_EQ(i.doubts()[0].count, 3u);
}

TEST(TakenShares, ComeFromTheExecutionsOfLines) {
  const Code code = lazy_loop();
  std::vector<TextLine> lines;
  for (const int line : {1, 3, 3, 3, 4, 2, 2, 2, 6}) lines.push_back({"/folder/lazy.cu", line});
  const TakenShare share = taken_shares(code, lines, {site(1, 8), site(3, 80), site(3, 16), site(4, 20), site(2, 80)});
  EXPECT_EQ(share(3), 0.75);
  EXPECT_EQ(share(7), std::nullopt);  // goes back
  EXPECT_EQ(share(0), std::nullopt);
  // Lines that never ran are always skipped.
  EXPECT_EQ(taken_shares(code, lines, {site(3, 80)})(3), 1.0);
  // A line that runs more often than the branch says nothing, nor do lines that are not known.
  EXPECT_EQ(taken_shares(code, lines, {site(3, 80), site(4, 200)})(3), std::nullopt);
  EXPECT_EQ(taken_shares(code, {}, {site(3, 80), site(4, 20)})(3), std::nullopt);
  EXPECT_EQ(taken_shares(code, lines, {})(3), std::nullopt);
}

}  // namespace
}  // namespace roofgen::sass::interpreter_test
