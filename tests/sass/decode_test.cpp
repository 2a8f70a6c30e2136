// Text and encoding of single instructions, as nvdisasm spells them for sm_75, sm_80 and sm_90.
#include <gtest/gtest.h>

#include <random>

#include "runtime/sass/instruction.h"
#include "tests/support/words.h"

namespace roofgen::sass::decode_test {
namespace {

using Kind = Operand::Kind;

Instruction read(const std::string& opcode, const std::string& operands, const std::string& predicate = "",
                 uint64_t lower = 0, uint64_t upper = 0) {
  return decode({predicate, opcode, operands}, lower, upper);
}

std::vector<Kind> kinds(const Instruction& i) {
  std::vector<Kind> out;
  for (size_t k = 0; k < i.count; ++k) out.push_back(i.operands[k].kind);
  return out;
}

TEST(TensorMemory, DescriptorsAndAddressesAreOperands) {
  const Instruction from_shared = read("UTCHMMA", "gdesc[UR20],gdesc[UR22],tmem[UR8],tmem[UR6],idesc[UR7],UP0");
  EXPECT_EQ(from_shared.opcode->action, Action::kMatrix);
  ASSERT_EQ(from_shared.count, 6);
  EXPECT_FALSE(from_shared.operands[0].in_tensor_memory);
  EXPECT_EQ(from_shared.operands[0].uniform, 20);
  EXPECT_EQ(from_shared.operands[4].uniform, 7);
  const Instruction pair = read("UTCQMMA.2CTA", "tmem[UR13],gdesc[UR22],tmem[UR8],tmem[UR6],idesc[UR7],tmem[UR16],UP0");
  EXPECT_TRUE(pair.operands[0].in_tensor_memory);
  EXPECT_TRUE(pair.operands[2].in_tensor_memory);
  for (const char* name : {"UTCOMMA.4X", "UTCIMMA", "UTCCP.T.S.4x32dp128bit", "UTCBAR.2CTA.MULTICAST", "OMMA.SF.16864",
                           "UTCATOMSWS.2CTA.FIND_AND_SET.ALIGN", "UGETNEXTWORKID.SELFCAST", "FMNMX3", "UVIMNMX.U32"})
    EXPECT_TRUE(read(name, "").known) << name;
}

TEST(TensorMemory, ALoadHasTheRegistersOfItsShape) {
  EXPECT_EQ(read("LDTM.x32", "R4,tmem[UR6]").bytes, 4 * 32);
  EXPECT_EQ(read("LDTM", "R4,tmem[UR6]").bytes, 4);
  EXPECT_EQ(read("LDTM.16dp256bit", "R36,tmem[UR8+0x40]").bytes, 4 * 4);
  EXPECT_EQ(read("LDTM.16dp128bit.x8", "R36,tmem[UR8]").bytes, 4 * 2 * 8);
  EXPECT_EQ(read("STTM.x4", "tmem[UR8],R4").bytes, 4 * 4);
}

TEST(Control, FieldsLieInTheUpperWord) {
  const uint64_t upper = uint64_t{5} << 41 | uint64_t{1} << 45 | uint64_t{2} << 46 | uint64_t{7} << 49 |
                         uint64_t{0b101001} << 52 | uint64_t{0b0110} << 58;
  const Control c = control_of(upper);
  EXPECT_EQ(c.stall, 5);
  EXPECT_TRUE(c.yield);
  EXPECT_EQ(c.write_barrier, 2);
  EXPECT_EQ(c.read_barrier, 7);
  EXPECT_EQ(c.wait_mask, 0b101001);
  EXPECT_EQ(c.reuse, 0b0110);
  EXPECT_EQ(control_of(~uint64_t{0}).wait_mask, 0x3f);
  // Bits of the operation beside them do not matter.
  EXPECT_EQ(control_of(~(uint64_t{0x1fffff} << 41)).stall, 0);
  EXPECT_EQ(read("NOP", "", "", 0, upper).control.stall, 5);
}

TEST(Decode, LoadsAndTheirAddresses) {
  Instruction i = read("LDG.E.128.CONSTANT", "R4,[R2.64+0x10]");
  EXPECT_TRUE(i.known);
  EXPECT_EQ(i.opcode->action, Action::kLdg);
  EXPECT_EQ(i.bytes, 16);
  ASSERT_EQ(i.count, 2);
  EXPECT_EQ(i.results, 1);
  EXPECT_EQ(i.operands[0].index, 4);
  EXPECT_EQ(i.operands[1].kind, Kind::kMemory);
  EXPECT_EQ(i.operands[1].index, 2);
  EXPECT_TRUE(i.operands[1].wide);
  EXPECT_EQ(i.operands[1].value, 0x10);

  i = read("LDG.E.64", "R8,desc[UR4][R2.64+-0x8]");  // sm_90
  ASSERT_EQ(i.count, 2);
  EXPECT_EQ(i.operands[1].kind, Kind::kMemory);
  EXPECT_EQ(i.operands[1].index, 2);
  EXPECT_EQ(i.operands[1].value, -8);
  EXPECT_EQ(i.bytes, 8);

  i = read("LDG.E.SYS", "R0,[R2]");  // sm_75
  EXPECT_EQ(i.bytes, 4);
  EXPECT_EQ(i.operands[1].kind, Kind::kMemory);

  i = read("LDS.64", "R4,[R0.X8+UR4+0x10]");
  ASSERT_EQ(i.count, 2);
  EXPECT_EQ(i.operands[1].scale, 8);
  EXPECT_EQ(i.operands[1].uniform, 4);
  EXPECT_EQ(i.operands[1].value, 0x10);
  EXPECT_EQ(read("LDS.U8", "R4,[R0]").bytes, 1);
  EXPECT_EQ(read("LDS.S16", "R4,[R0]").bytes, 2);
  EXPECT_EQ(read("LDS", "R4,[RZ]").operands[1].index, kZeroRegister);
}

TEST(Decode, MatrixLoads) {
  const Instruction i = read("LDSM.16.MT88.4", "R4,[R2+0x400]");
  EXPECT_EQ(i.matrices, 4);
  EXPECT_TRUE(i.has(kTranspose));
  EXPECT_EQ(read("LDSM.16.M88.2", "R4,[R2]").matrices, 2);
  EXPECT_EQ(read("LDSM.16.M88", "R4,[R2]").matrices, 1);
}

// Three spellings of one instruction: nvdisasm 13 leaves out the comma between the addresses for sm_80.
TEST(Decode, AsynchronousCopiesHaveTwoAddresses) {
  for (const char* operands :
       {"[R7+0x800],[R2.64+0x40]", "[R7+0x800][R2.64+0x40]", "[R7+0x800],desc[UR6][R2.64+0x40]"}) {
    const Instruction i = read("LDGSTS.E.BYPASS.LTC128B.128", operands);
    SCOPED_TRACE(operands);
    EXPECT_EQ(i.bytes, 16);
    EXPECT_TRUE(i.has(kBypass));
    ASSERT_EQ(kinds(i), (std::vector{Kind::kMemory, Kind::kMemory}));
    EXPECT_EQ(i.operands[0].index, 7);
    EXPECT_EQ(i.operands[0].value, 0x800);
    EXPECT_EQ(i.operands[1].index, 2);
    EXPECT_EQ(i.operands[1].value, 0x40);
    EXPECT_TRUE(i.operands[1].wide);
  }
  EXPECT_EQ(kinds(read("LDGSTS.E.128", "[R7][R2.64],P0")),
            (std::vector{Kind::kMemory, Kind::kMemory, Kind::kPredicate}));
}

TEST(Decode, ResultsIncludeThePredicatesBesideThem) {
  Instruction i = read("IADD3", "R4,P0,R2,c[0x0][0x160],RZ");
  EXPECT_EQ(i.results, 2);
  EXPECT_EQ(i.sources(), 3u);
  EXPECT_EQ(i.source(1).kind, Kind::kConstant);
  EXPECT_EQ(i.source(1).bank, 0);
  EXPECT_EQ(i.source(1).value, 0x160);
  i = read("IADD3", "R2,P0,P1,R6,R15,R2");
  EXPECT_EQ(i.results, 3);
  i = read("IADD3.X", "R5,R3,c[0x0][0x164],RZ,P0,!PT");
  EXPECT_EQ(i.results, 1);
  EXPECT_TRUE(i.has(kX));
  EXPECT_TRUE(i.operands[5].inverted);
  EXPECT_EQ(i.operands[5].index, kTruePredicate);
  i = read("ISETP.GE.U32.AND", "P0,PT,R3,0x60,PT");
  EXPECT_EQ(i.results, 2);
  EXPECT_TRUE(i.has(kGe) && i.has(kU32) && i.has(kAnd));
  EXPECT_EQ(i.source(1).value, 0x60);
  EXPECT_EQ(read("SHFL.IDX", "PT,R8,R7,R8,0x1f").results, 2);
  EXPECT_EQ(read("LOP3.LUT", "P0,RZ,R5,0xf,RZ,0xc0,!PT").results, 2);
  EXPECT_EQ(read("R2UR", "P0,URZ,R4").results, 2);
  EXPECT_EQ(read("R2UR", "UR4,R12").results, 1);
  EXPECT_EQ(read("STG.E", "[R2.64],R5").results, 0);
  EXPECT_EQ(read("ATOMG.E.ADD.STRONG.GPU", "PT,R0,[R2.64],R9").results, 2);
}

TEST(Decode, SignsOfSources) {
  const Instruction i = read("FFMA", "R0,R1,-R2,|R3|");
  EXPECT_FALSE(i.source(0).negative);
  EXPECT_TRUE(i.source(1).negative);
  EXPECT_TRUE(i.source(2).absolute);
  EXPECT_TRUE(read("FADD", "R0,-|R1|,R2").source(0).absolute);
  EXPECT_TRUE(read("FADD", "R0,-|R1|,R2").source(0).negative);
  EXPECT_TRUE(read("IADD3.X", "R0,~R1,RZ,RZ,P0,!PT").source(0).inverted);
  EXPECT_EQ(read("IADD3", "R0,R1.reuse,-0x1,RZ").source(1).value, -1);
  EXPECT_EQ(read("IADD3", "R0,R1.reuse,-0x1,RZ").source(0).index, 1);
  EXPECT_EQ(read("HADD2.F32", "R0,-RZ,R1.H1_H1").source(1).half, 2);
}

TEST(Decode, DecimalImmediatesHaveTheBitsOfTheEncoding) {
  for (const char* text : {"1.5", "-1.5", "+INF", "8.94069671630859375e-07"}) {
    const Instruction i = read("FMUL", std::string("R0,R1,") + text, "", uint64_t{0x3fc00000} << 32);
    EXPECT_EQ(i.source(1).kind, Kind::kImmediate) << text;
    EXPECT_EQ(i.source(1).value, 0x3fc00000) << text;
    EXPECT_TRUE(i.source(1).is_float) << text;
  }
}

TEST(Decode, TensorInstructionsKnowTheirShape) {
  EXPECT_EQ(read("HMMA.16816.F32", "R4,R8,R12,R4").matrix_flops, 2u * 16 * 8 * 16);
  EXPECT_EQ(read("HMMA.16816.F32.BF16", "R4,R8,R12,R4").matrix_flops, 2u * 16 * 8 * 16);
  EXPECT_EQ(read("HMMA.1688.F32", "R4,R8,R12,R4").matrix_flops, 2u * 16 * 8 * 8);
  EXPECT_EQ(read("HMMA.1688.F32.TF32", "R4,R8,R12,R4").matrix_flops, 2u * 16 * 8 * 8);
  EXPECT_EQ(read("IMMA.16832.S8.S8", "R4,R8.ROW,R12.COL,R4").matrix_flops, 2u * 16 * 8 * 32);
  EXPECT_EQ(read("HMMA.16816.F32", "R4,R8,R12,R4").opcode->pipe, Pipe::kTensor);
}

TEST(Decode, Branches) {
  Instruction i = read("BRA", "0x180", "@!P2");
  EXPECT_EQ(i.target, 0x18u);
  EXPECT_EQ(i.guard.kind, Kind::kPredicate);
  EXPECT_EQ(i.guard.index, 2);
  EXPECT_TRUE(i.guard.inverted);
  EXPECT_EQ(read("BSSY", "B0,0x240").target, 0x24u);
  EXPECT_EQ(read("BSSY", "B3,0x240").operands[0].value, 3);
  EXPECT_EQ(read("BRA.CONV", "UR6,0x1e0", "@!P0").target, 0x1eu);
  EXPECT_EQ(read("EXIT", "").target, ~0u);
  EXPECT_EQ(read("UISETP.NE.AND", "UP0,UPT,UR4,URZ,UPT", "@UP1").guard.kind, Kind::kUniformPredicate);
}

TEST(Decode, SpecialRegistersAndScoreboards) {
  EXPECT_EQ(read("S2R", "R0,SR_CTAID.X").source(0).value, static_cast<int32_t>(Special::kCtaidX));
  EXPECT_EQ(read("S2UR", "UR5,SR_CgaCtaId").source(0).value, static_cast<int32_t>(Special::kClusterCta));
  EXPECT_EQ(read("S2R", "R0,SR_NOBODY_KNOWS").source(0).value, static_cast<int32_t>(Special::kOther));
  const Instruction i = read("DEPBAR.LE", "SB0,0x1");
  EXPECT_EQ(i.operands[0].kind, Kind::kScoreboard);
  EXPECT_EQ(i.operands[1].value, 1);
  EXPECT_EQ(read("ULDC.64", "UR4,c[0x0][0x118]").bytes, 8);
  EXPECT_EQ(read("LDC", "R4,c[0x3][R2+0x10]").source(0).index, 2);
}

// The first format is that of the result, the second that of the source.
TEST(Decode, AConversionHasTheWidthOfItsResult) {
  EXPECT_EQ(read("F2F.F32.F64", "R3,R2").bytes, 4);
  EXPECT_EQ(read("F2F.F64.F32", "R2,R3").bytes, 8);
  EXPECT_EQ(read("F2I.F64.TRUNC", "R3,R2").bytes, 4);
  EXPECT_EQ(read("I2F.F64", "R2,R3").bytes, 8);
}

TEST(Decode, UnknownMnemonicsAreMarked) {
  const Instruction i = read("FROBNICATE.E.64", "R0,R1,[R2]");
  EXPECT_FALSE(i.known);
  ASSERT_NE(i.opcode, nullptr);
  EXPECT_EQ(i.opcode->action, Action::kOpaque);
  EXPECT_EQ(i.spelling, "FROBNICATE.E.64");
  EXPECT_EQ(i.results, 1);
  EXPECT_EQ(find_opcode("FROBNICATE"), nullptr);
}

TEST(Decode, MnemonicsOfEachArchitectureAreKnown) {
  for (const std::string& name : test::words(
           "REDG.E.ADD.F32.FTZ.RN.STRONG.GPU RED.E.ADD.STRONG.GPU ATOMG.E.CAS.STRONG.GPU ATOMS.POPC.INC.32 "
           "LDGSTS.E.BYPASS.128 LDSM.16.M88.4 STSM.16.M88.4 HMMA.16816.F32 MATCH.ANY REDUX.SUM.S32 IDP.4A.S8.S8 "
           "VABSDIFF VIADDMNMX WARPSYNC.EXCLUSIVE UTMALDG.2D SYNCS.PHASECHK.TRANS64 HGMMA.64x128x16.F32 LDL.LU "
           "CCTL.IVALL BMOV.32.CLEAR YIELD NANOSLEEP PLOP3.LUT I2FP.F32.S32 F2FP.BF16.PACK_AB FSWZADD HMNMX2 "
           "BAR.RED.POPC.DEFER_BLOCKING B2R.RESULT"))
    EXPECT_TRUE(read(name, "").known) << name;
}

TEST(Decode, MalformedTextBecomesOtherOperands) {
  std::set<std::string> texts = test::words(
      "[ ] [[ ]] [R [R999] R256 R UR P c[ c[0x0] c[0x0][ c[0x0][] c[0x99][0x0] desc[ desc[UR4] desc[UR4][ | |R1 -| ! "
      "~ - 0x -0x 0x123456789abcdef01 SB SR_ , ,,, B B99999999999 R1. . R1,R2,R3,R4,R5,R6,R7,R8,R9,R10,R11,R12,R13 "
      "\xff\xfe");
  texts.insert(" ");
  for (const std::string& text : texts)
    for (const char* opcode : {"LDG.E", "IADD3", "BRA", "", ".", "..", "LDGSTS", "BSSY", "VOTE", "HMMA.16816"}) {
      const Instruction i = read(opcode, text, "@");
      EXPECT_LE(i.results, i.count) << opcode << " " << text;
      EXPECT_LE(i.count, kMostOperands);
    }
}

TEST(Decode, AddressesOfTuringHaveNoSuffix) {
  const Instruction pair = read("LDG.E.SYS", "R2,[R4+0x10]");
  EXPECT_TRUE(pair.operands[1].wide);
  const Instruction word = read("LDG.E.U8.SYS", "R2,[R4.U32+UR6]");
  EXPECT_FALSE(word.operands[1].wide);
  EXPECT_TRUE(word.operands[1].wide_uniform);
  const Instruction uniform = read("STG.E.SYS", "[UR4],R0");
  EXPECT_TRUE(uniform.operands[0].wide_uniform);
  EXPECT_FALSE(read("LDS.U", "R2,[R4]").operands[1].wide);
}

TEST(Decode, RandomTextDoesNotCrash) {
  std::mt19937 random(1);
  const std::string letters = "RUPBSTZ[]c0x19afX.+-|!~,_ @64H\t\x80";
  const char* const opcodes[] = {"LDG.E.128", "IADD3.X",   "BRA",      "LDGSTS.E.128", "PLOP3.LUT", "R2UR",
                                 "MUFU.RCP",  "VOTEU.ANY", "BAR.SYNC", "STSM.16.4",    "DEPBAR.LE", "??"};
  for (int n = 0; n < 100'000; ++n) {
    std::string text, predicate = "@";
    for (size_t length = random() % 40; length; --length) text += letters[random() % letters.size()];
    for (size_t length = random() % 4; length; --length) predicate += letters[random() % letters.size()];
    const Instruction i = read(opcodes[random() % std::size(opcodes)], text, predicate, random(), random());
    ASSERT_LE(i.results, i.count) << text;
  }
}

}  // namespace
}  // namespace roofgen::sass::decode_test
