// Which bits of a result are undefined: the rules by example, and every lane-wise instruction against itself, run with
// several fillings of the undefined bits.
#include "runtime/sim/undefined_bits.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>

#include "runtime/sim/opcode_table.h"

namespace roofgen::sim_test::undefined_bits_test {
namespace {

using namespace sim;
using Lanes = uint64_t[kWarpSize];

/// An instruction with registers of its own.
struct Operation {
  Inst in;
  Signature signature;
  explicit Operation(const std::string& opcode) {
    const LaneEntry* entry = OpcodeTable::host().find(opcode);
    if (!entry) throw std::runtime_error("no such instruction: " + opcode);
    signature = entry->signature;
    in.lane = entry->fn;
    set_rule(in, opcode, signature);
    in.a = at(0), in.b = at(1), in.c = at(2), in.d = at(4);
    in.e = sources() == 4 ? at(3) : signature.dst == Slot::kPred ? 6 : 0;
  }
  Slot slot(uint32_t i) const { return i < 4 ? signature.src[i] : signature.dst; }
  uint32_t at(uint32_t i) const { return slot(i) == Slot::kPred ? i + 1 : 2 * i; }
  uint32_t sources() const {
    uint32_t n = 0;
    while (n < 4 && slot(n) != Slot::kNone) ++n;
    return n;
  }
  uint64_t width(uint32_t i) const {
    switch (slot(i)) {
      case Slot::kPred: return 1;
      case Slot::kB16: return 0xffff;
      case Slot::kB32: return 0xffffffff;
      default: return ~uint64_t{0};
    }
  }
  /// The results for these sources, setp's second one too.
  void run(const Lanes (&value)[4], Lanes& first, Lanes& second) const {
    alignas(64) uint64_t rows[5][kWarpSize] = {};
    uint32_t preds[7] = {~0u};
    const auto narrow = [&](uint32_t i, uint32_t l) { return reinterpret_cast<char*>(rows[i]) + 4 * l; };
    for (uint32_t i = 0; i < 4; ++i)
      for (uint32_t l = 0; l < kWarpSize; ++l) {
        if (slot(i) == Slot::kPred || (in.sub && i == 2))
          preds[i + 1] |= static_cast<uint32_t>(value[i][l] & 1) << l;
        else if (slot(i) == Slot::kB64)
          rows[i][l] = value[i][l];
        else
          std::memcpy(narrow(i, l), &value[i][l], 4);
      }
    in.lane({reinterpret_cast<uint32_t*>(rows[0]), preds}, in, nullptr, ~0u);
    for (uint32_t l = 0; l < kWarpSize; ++l) {
      first[l] = second[l] = 0;
      if (slot(4) == Slot::kPred)
        first[l] = preds[in.d] >> l & 1, second[l] = in.e ? preds[in.e] >> l & 1 : 0;
      else if (slot(4) == Slot::kB64)
        first[l] = rows[4][l];
      else
        std::memcpy(&first[l], narrow(4, l), 4);
    }
  }
};

struct Bits {
  uint64_t value, undefined = 0;
};

/// The undefined bits of the result.
uint64_t made(const std::string& opcode, const std::vector<Bits>& of) {
  const Operation operation(opcode);
  SourceBits sources[4];
  for (size_t i = 0; i < of.size(); ++i) {
    sources[i].wide = operation.slot(static_cast<uint32_t>(i)) == Slot::kB64;
    std::fill_n(sources[i].value, kWarpSize, of[i].value);
    std::fill_n(sources[i].undefined, kWarpSize, of[i].undefined);
  }
  UndefinedResult result;
  undefined_result(operation.in, sources, result);
  return result.first[7] & operation.width(4);
}

TEST(UndefinedBits, OfLogic) {
  EXPECT_EQ(made("and.b32", {{0, 0xff}, {0x0f}}), 0x0fu);
  EXPECT_EQ(made("and.b32", {{0, 0xff}, {0x0f, 0x10}}), 0x1fu);
  EXPECT_EQ(made("or.b32", {{0, 0xff}, {0x0f}}), 0xf0u);
  EXPECT_EQ(made("xor.b64", {{0, uint64_t{0xff} << 40}, {~uint64_t{0}}}), uint64_t{0xff} << 40);
  EXPECT_EQ(made("not.b16", {{0, 0x81}}), 0x81u);
  EXPECT_EQ(made("mov.f32", {{0, 0x1234}}), 0x1234u);
  EXPECT_EQ(made("lop3.b32", {{0, 0xff}, {0x0f}, {0x3c}, {0x80}}), 0x0cu);     // a & b & c
  EXPECT_EQ(made("lop3.b32", {{0, 0xff}, {0x0f}, {0x3c}, {0xca}}), 0x33u);     // a ? b : c: b and c differ ...
  EXPECT_EQ(made("lop3.b32", {{0, 0xff}, {0x3c}, {0x3c}, {0xca}}), 0u);        // ... or not
  EXPECT_EQ(made("lop3.b32", {{0, 0xff}, {0}, {0}, {0x80, 1}}), 0xffffffffu);  // an undefined table
  EXPECT_EQ(made("and.pred", {{1, 1}, {0}}), 0u);
  EXPECT_EQ(made("and.pred", {{0, 1}, {1}}), 1u);
  EXPECT_EQ(made("or.pred", {{0, 1}, {1}}), 0u);
  EXPECT_EQ(made("xor.pred", {{0, 1}, {1}}), 1u);
}

TEST(UndefinedBits, OfMovedBits) {
  EXPECT_EQ(made("shl.b32", {{0, 0xf000000f}, {8}}), 0xf00u);
  EXPECT_EQ(made("shr.u32", {{0, 0xf000000f}, {4}}), 0x0f000000u);
  EXPECT_EQ(made("shr.s32", {{0, 0x80000000}, {4}}), 0xf8000000u);  // copies of the sign
  EXPECT_EQ(made("shr.u64", {{0, ~uint64_t{0}}, {64}}), 0u);
  EXPECT_EQ(made("shl.b32", {{1}, {0, 1}}), 0xffffffffu);  // an undefined amount
  EXPECT_EQ(made("shf.l.wrap.b32", {{0, 0xff000000}, {0, 1}, {8}}), 0x1ffu);
  EXPECT_EQ(made("prmt.b32", {{0, 0xff00}, {0}, {0x4100}}), 0xff0000u);
  EXPECT_EQ(made("prmt.b32", {{0, 0x80}, {0}, {0x7778}}), 0xffu);  // copies of a byte's sign
  EXPECT_EQ(made("bfe.u32", {{0, 0xffff00ff}, {8}, {8}}), 0u);
  EXPECT_EQ(made("bfe.s32", {{0, 0x8000}, {8}, {8}}), 0xffffff80u);
  EXPECT_EQ(made("bfi.b32", {{0, 0xff}, {0, 0xffffffff}, {4}, {4}}), 0xffffffffu);
  EXPECT_EQ(made("bfi.b32", {{0, 0xf0}, {0, 0xffffffff}, {4}, {4}}), 0xffffff0fu);
  EXPECT_EQ(made("brev.b32", {{0, 3}}), 0xc0000000u);
  EXPECT_EQ(made("cvt.u32.u8", {{0, 0xff00}}), 0u);
  EXPECT_EQ(made("cvt.s32.s8", {{0, 0x80}}), 0xffffff80u);
  EXPECT_EQ(made("cvt.u64.u32", {{0, 0x80000000}}), 0x80000000u);
  EXPECT_EQ(made("pack.b64.b32", {{0}, {0, 0xff}}), uint64_t{0xff} << 32);
  EXPECT_EQ(made("unpack.b64.b16", {{0, uint64_t{0xff00ff} << 32}, {1}}), 0u);
  EXPECT_EQ(made("unpack.b64.b16", {{0, uint64_t{0xff00ff} << 32}, {2}}), 0xffu);
}

TEST(UndefinedBits, OfNumbers) {
  EXPECT_EQ(made("add.u32", {{0x10, 1}, {2}}), 1u);  // no carry goes on
  EXPECT_EQ(made("add.u32", {{0x10, 1}, {1}}), 3u);
  EXPECT_EQ(made("add.u32", {{0x0e, 1}, {1}}), 0x1fu);
  EXPECT_EQ(made("sub.u32", {{0x10}, {0, 1}}), 0x1fu);
  EXPECT_EQ(made("sub.s32", {{0x11}, {0, 1}}), 1u);
  EXPECT_EQ(made("mul.lo.u32", {{0, 0x10}, {4}}), 0xffffffc0u);
  EXPECT_EQ(made("mul.wide.u32", {{0, 0xffffffff}, {0}}), 0u);
  EXPECT_EQ(made("mad.lo.u32", {{0, 0x10}, {4}, {0, 1}}), 0xffffffc1u);
  EXPECT_EQ(made("popc.b32", {{0, 1}}), 0xffffffffu);
  EXPECT_EQ(made("add.f32", {{0, 1}, {0}}), 0xffffffffu);
  EXPECT_EQ(made("cvt.rn.f32.u8", {{0, 0xff00}}), 0u);  // reads the lowest byte
  EXPECT_EQ(made("fma.rn.f16x2", {{0, 1}, {0}, {0}}), 0xffffu);
  EXPECT_EQ(made("add.u16x2", {{0, 0x10000}, {0}}), 0xffff0000u);
  EXPECT_EQ(made("mul.rn.f32x2", {{0, 1}, {0}}), 0xffffffffu);
  EXPECT_EQ(made("fma.rn.f32x2", {{0}, {0}, {0, uint64_t{1} << 32}}), 0xffffffff00000000u);
}

TEST(UndefinedBits, OfDotProducts) {
  for (const auto& [half, low, high] : {std::tuple("lo", ~0u, 0u), {"hi", 0u, ~0u}}) {
    const std::string opcode = std::string("dp2a.") + half + ".u32.u32";
    EXPECT_EQ(made(opcode, {{1}, {2, 0x80}, {3}}), low) << half;
    EXPECT_EQ(made(opcode, {{1}, {2, 0x10000}, {3}}), high) << half;
    EXPECT_EQ(made(opcode, {{1, 1}, {2}, {3}}), ~0u) << half;
    EXPECT_EQ(made(opcode, {{1}, {2}, {3, 1}}), ~0u) << half;
  }
}

TEST(UndefinedBits, OfChoices) {
  EXPECT_EQ(made("selp.b32", {{0, 1}, {0, 2}, {1}}), 1u);
  EXPECT_EQ(made("selp.b32", {{0, 1}, {0, 2}, {0}}), 2u);
  EXPECT_EQ(made("selp.b32", {{4}, {5}, {0, 1}}), 1u);
  EXPECT_EQ(made("setp.eq.u32", {{0x100, 0xff}, {0}}), 0u);  // a defined bit differs
  EXPECT_EQ(made("setp.ne.b32", {{0, 0xff}, {0}}), 1u);
  EXPECT_EQ(made("setp.lt.u32", {{0x100, 0xff}, {0x200}}), 0u);
  EXPECT_EQ(made("setp.lt.u32", {{0x100, 0xff}, {0x1ff}}), 1u);
  EXPECT_EQ(made("setp.le.u32", {{0x100, 0xff}, {0x1ff}}), 0u);
  EXPECT_EQ(made("setp.ge.u32", {{0, 0xff}, {0}}), 0u);
  EXPECT_EQ(made("setp.lt.s32", {{0xffffff00, 0xff}, {0}}), 0u);
  EXPECT_EQ(made("setp.lt.s32", {{0, 0x80000000}, {0}}), 1u);
  EXPECT_EQ(made("setp.lt.s16", {{0, 0xffff0000}, {1}}), 0u);  // the rest of a wider register
  EXPECT_EQ(made("setp.lt.f32", {{0, 1}, {0}}), 1u);
}

/// Also that the rules for single bits are exact.
TEST(UndefinedBits, WhatDependsOnAFillingIsUndefined) {
  std::mt19937_64 random(29);
  const auto some = [&]() -> uint64_t {
    switch (random() % 6) {
      case 0: return 0;
      case 1: return ~uint64_t{0};
      case 2: return random() % 70;
      case 3: return uint64_t{1} << random() % 64;
      case 4: return uint64_t{0xff} << 8 * (random() % 8);
      default: return random();
    }
  };
  const std::map<std::string, const LaneEntry*> all(OpcodeTable::host().spellings().begin(),
                                                    OpcodeTable::host().spellings().end());
  std::map<int, size_t> tried;
  for (const auto& [opcode, entry] : all) {
    if (entry->cls == Class::kMma) continue;
    Operation operation(opcode);
    const auto rule = static_cast<MadeOf>(operation.in.type);
    const uint32_t n = operation.sources();
    const bool compares = opcode.starts_with("setp.");
    ++tried[operation.in.type];
    for (int round = 0; round < 24; ++round) {
      if (compares) {
        operation.in.sub = static_cast<uint8_t>(random() % 4);
        operation.in.c = 3;
        operation.in.imm = random() % 2 ? 0xffffffff : 0;
      }
      SourceBits sources[4];
      bool moves[kWarpSize];
      std::fill_n(moves, kWarpSize, rule == MadeOf::kMoved);
      for (uint32_t i = 0; i < (operation.in.sub ? 3 : n); ++i) {
        const uint64_t width = i < n ? operation.width(i) : 1;
        sources[i].wide = operation.slot(i) == Slot::kB64;
        const bool defined = random() % 2;
        for (uint32_t l = 0; l < kWarpSize; ++l) {
          sources[i].value[l] = some() & width;
          sources[i].undefined[l] = defined ? 0 : some() & width;
          // Two of few values are equal, or nearly so, now and then.
          if (i == 1 && random() % 3 == 0) sources[1].value[l] = sources[0].value[l] & width;
          if (rule == MadeOf::kMoved && i >= operation.in.imm && sources[i].undefined[l]) moves[l] = false;
        }
      }
      UndefinedResult result;
      undefined_result(operation.in, sources, result);

      Lanes first, second, seen[2] = {};
      for (int filling = 0; filling < 28; ++filling) {
        Lanes value[4] = {};
        for (uint32_t i = 0; i < 4; ++i)
          for (uint32_t l = 0; l < kWarpSize; ++l) {
            const uint64_t bits = filling < 8 ? filling >> i & 1 ? ~uint64_t{0} : 0 : filling < 20 ? some() : random();
            value[i][l] = sources[i].value[l] ^ (sources[i].undefined[l] & bits);
          }
        Lanes now[2];
        operation.run(value, now[0], now[1]);
        if (filling == 0) std::copy_n(now[0], kWarpSize, first), std::copy_n(now[1], kWarpSize, second);
        for (uint32_t l = 0; l < kWarpSize; ++l) {
          seen[0][l] |= now[0][l] ^ first[l];
          seen[1][l] |= now[1][l] ^ second[l];
        }
      }
      for (uint32_t l = 0; l < kWarpSize; ++l) {
        const uint64_t width = operation.width(4), table = sources[3].undefined[l];
        ASSERT_EQ(seen[0][l] & ~result.first[l], 0u) << opcode << " of " << std::hex << sources[0].value[l];
        if (compares) {
          ASSERT_EQ(seen[1][l] & ~result.second[l], 0u) << opcode;
        }
        if (moves[l] || (rule == MadeOf::kLogic && !table)) {
          ASSERT_EQ(seen[0][l] & width, result.first[l] & width) << opcode;
        }
      }
    }
  }
  EXPECT_GE(all.size(), 1000u);
  EXPECT_EQ(tried.size(), 13u);  // the rules
}

}  // namespace
}  // namespace roofgen::sim_test::undefined_bits_test
