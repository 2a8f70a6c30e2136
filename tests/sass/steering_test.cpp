// Which instructions steer: only those whose results reach a branch, a guard or an address.
#include <gtest/gtest.h>

#include "runtime/sass/stream.h"

namespace roofgen::sass::steering_test {
namespace {

struct Line {
  const char *predicate, *opcode, *operands;
  bool steers;
};

void expect_steering(const std::vector<Line>& lines, bool stores = false) {
  Code code;
  code.arch = "sm_80";
  for (const Line& l : lines) code.instructions.push_back(decode({l.predicate, l.opcode, l.operands}, 0, 0));
  const std::vector<bool> got = steering(code, stores);
  ASSERT_EQ(got.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(got[i], lines[i].steers) << i << ": " << lines[i].opcode << " " << lines[i].operands;
}

TEST(Steering, OnlyTheChainOfTheAddress) {
  expect_steering({{"", "S2R", "R0,SR_TID.X", true},
                   {"", "MOV", "R4,0x4", true},
                   {"", "IMAD.WIDE", "R2,R0,R4,c[0x0][0x160]", true},
                   {"", "LDG.E", "R5,[R2.64]", false},
                   {"", "FFMA", "R6,R5,R5,R5", false},
                   {"", "MUFU.EX2", "R6,R6", false},
                   {"", "I2F", "R7,R0", false},
                   {"", "FADD", "R6,R6,R7", false},
                   {"", "STG.E", "[R2.64],R6", false},
                   {"", "EXIT", "", false}});
}

TEST(Steering, CountersOfLoops) {
  expect_steering({{"", "MOV", "R1,RZ", true},
                   {"", "MOV", "R6,RZ", false},
                   {"", "FADD", "R6,R6,R5", false},  // 0x20
                   {"", "IADD3", "R1,R1,0x1,RZ", true},
                   {"", "ISETP.NE.AND", "P0,PT,R1,0x10,PT", true},
                   {"@P0", "BRA", "0x20", false},
                   {"", "EXIT", "", false}});
}

TEST(Steering, AValueThatOnlySomeWaysReplace) {
  // R4 of the first line reaches the address around the guarded one.
  expect_steering({{"", "MOV", "R4,0x10", true},
                   {"", "ISETP.NE.AND", "P0,PT,R9,0x1,PT", true},
                   {"@P0", "MOV", "R4,0x20", true},
                   {"", "LDS", "R5,[R4]", false},
                   {"", "MOV", "R4,R5", false},
                   {"", "EXIT", "", false}});
}

TEST(Steering, LoadsThatGiveAddresses) {
  expect_steering({{"", "LDG.E", "R4,[R2.64]", true},
                   {"", "STS", "[R9],R4", true},
                   {"", "BAR.SYNC.DEFER_BLOCKING", "0x0", false},
                   {"", "LDS", "R5,[R8]", true},
                   {"", "LDS", "R6,[R5]", false},
                   {"", "EXIT", "", false}});
}

TEST(Steering, StoresToDeviceMemoryThatAreReadBack) {
  for (const bool stores : {false, true})
    expect_steering({{"", "FADD", "R4,R6,R7", stores},
                     {"", "STG.E", "[R2.64],R4", stores},
                     {"", "LDG.E", "R5,[R2.64]", true},
                     {"", "LDS", "R6,[R5]", false},
                     {"", "EXIT", "", false}},
                    stores);
}

TEST(Steering, StoresToSharedMemoryDoNotWhereNoLoadDoes) {
  expect_steering({{"", "LDG.E", "R4,[R2.64]", false},
                   {"", "STS", "[R9],R4", false},
                   {"", "LDS", "R5,[R8]", false},
                   {"", "FADD", "R6,R5,R5", false},
                   {"", "EXIT", "", false}});
}

TEST(Steering, GuardsOfMemoryAccesses) {
  expect_steering({{"", "ISETP.GE.AND", "P1,PT,R0,0x40,PT", true},
                   {"", "FSETP.GT.AND", "P2,PT,R7,RZ,PT", false},
                   {"@P2", "FADD", "R6,R6,R7", false},
                   {"@!P1", "STG.E", "[R2.64],R6", false},
                   {"", "EXIT", "", false}});
}

TEST(Steering, TensorResultsDoNot) {
  expect_steering({{"", "LDSM.16.M88.4", "R8,[R2]", false},
                   {"", "HMMA.16816.F32", "R4,R8,R12,R4", false},
                   {"", "IADD3", "R2,R2,0x20,RZ", true},
                   {"", "LDSM.16.M88.4", "R8,[R2]", false},
                   {"", "EXIT", "", false}});
}

}  // namespace
}  // namespace roofgen::sass::steering_test
