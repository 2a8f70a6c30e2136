// The tensor unit of sm_100 and tensor memory in the event model, on hand-written streams. The shapes and cycles are
// published measurements of a B200 (SemiAnalysisAI/microbench-blackwell at 9a068d8, umma_latency/fit_results.csv).
#include <gtest/gtest.h>

#include "roofline/device.h"
#include "tuner/timing/instruction_facts.h"

namespace roofgen::timing::tensor_unit_test {
namespace {

using sass::Step;
using sass::Sync;

enum : uint32_t { kProduct, kScaled, kFp4, kInt8, kCopy, kCommit, kWait, kLoad, kUse, kEnd };

/// Every instruction once, in the order of the enumeration. The use waits for what the load has asked for.
sass::Code code() {
  sass::Code out;
  out.arch = "sm_100a";
  const auto add = [&](const char* opcode, const char* operands, uint64_t write_barrier = 7, uint64_t wait_mask = 0) {
    const uint64_t upper = uint64_t{1} << 41 | write_barrier << 46 | uint64_t{7} << 49 | wait_mask << 52;
    out.instructions.push_back(sass::decode({"", opcode, operands}, 0, upper));
  };
  add("UTCHMMA", "gdesc[UR20],gdesc[UR22],tmem[UR8],tmem[UR6],idesc[UR7],UP0");
  add("UTCQMMA", "gdesc[UR20],gdesc[UR22],tmem[UR8],tmem[UR6],idesc[UR7],tmem[UR16],UP0");
  add("UTCOMMA.4X", "gdesc[UR20],gdesc[UR22],tmem[UR8],tmem[UR6],idesc[UR7],tmem[UR16],UP0");
  add("UTCIMMA", "gdesc[UR20],gdesc[UR22],tmem[UR8],tmem[UR6],idesc[UR7],UP0");
  add("UTCCP.T.S.128dp256bit", "tmem[UR8],gdesc[UR4]");
  add("UTCBAR", "[UR13],URZ");
  add("SYNCS.PHASECHK.TRANS64.TRYWAIT", "P0,[UR10],R0");
  add("LDTM.x32", "R4,tmem[UR6]", 0);
  add("FADD", "R2,R4,R4", 7, 1);
  add("EXIT", "");
  return out;
}

Machine b200() { return *machine_of(*load_device(DataFiles(), "b200")); }

Sync product(int rows, int columns, int ctas = 1, bool a_in_tensor_memory = false) {
  Sync s;
  s.kind = Sync::Kind::kMatrix;
  s.rows = static_cast<uint16_t>(rows), s.columns = static_cast<uint16_t>(columns);
  s.ctas = static_cast<uint8_t>(ctas), s.a_in_tensor_memory = a_in_tensor_memory;
  return s;
}

MatrixCycles cycles_of(const Sync& work, uint32_t instruction = kProduct, const Machine& m = b200()) {
  return matrix_cycles(m, facts_of(m, code())[instruction], work);
}

TEST(TensorUnit, IntervalsAreThoseMeasured) {
  const struct {
    Sync work;
    double measured;
  } kPoints[] = {{product(128, 256), 128},  {product(128, 128), 64},         {product(128, 64), 48},
                 {product(64, 64), 32},     {product(128, 64, 1, true), 32}, {product(256, 256, 2), 128},
                 {product(128, 64, 2), 25}, {product(128, 256, 2), 64},      {product(128, 64, 2, true), 18}};
  for (const auto& [work, measured] : kPoints)
    EXPECT_NEAR(cycles_of(work).interval, measured, (work.ctas == 1 ? 0.01 : 0.1) * measured)
        << work.rows << " x " << work.columns << ", " << int{work.ctas} << " CTAs";
}

TEST(TensorUnit, LatenciesAreThoseMeasured) {
  EXPECT_NEAR(cycles_of(product(128, 256)).latency, 264, 3);
  EXPECT_NEAR(cycles_of(product(64, 64)).latency, 152, 3);
  EXPECT_NEAR(cycles_of(product(128, 256, 1, true)).latency, 232, 5);
  EXPECT_NEAR(cycles_of(product(256, 256, 2)).latency, 298, 5);
}

TEST(TensorUnit, EveryFormatTakesAsLongButInt8OnBlackwellUltra) {
  const Machine ultra = *machine_of(*load_device(DataFiles(), "b300"));
  for (const uint32_t instruction : {kScaled, kFp4, kInt8})
    EXPECT_EQ(cycles_of(product(128, 256), instruction).interval, 128) << instruction;
  EXPECT_NEAR(cycles_of(product(128, 256), kFp4, ultra).math, 128 / 1.5, 0.1);
  EXPECT_NEAR(cycles_of(product(128, 256), kInt8, ultra).math, 128 * 30, 1);
}

TEST(TensorUnit, OperandsInSharedMemoryBoundNarrowProducts) {
  for (const int n : {64, 80, 96, 112}) {
    EXPECT_GT(cycles_of(product(128, n)).read, cycles_of(product(128, n)).math) << n;
    EXPECT_LE(cycles_of(product(128, n, 1, true)).read, cycles_of(product(128, n, 1, true)).math) << n;
  }
  EXPECT_LE(cycles_of(product(128, 128)).read, cycles_of(product(128, 128)).math);
}

class Script {
 public:
  Script& sync(uint32_t index, Sync s) {
    stream_.steps.push_back({index, Step::kFirstSync + static_cast<uint32_t>(stream_.syncs.size())});
    stream_.syncs.push_back(s);
    return *this;
  }
  Script& init() { return sync(kWait, of(Sync::Kind::kInit)); }
  Script& products(int n, Sync work) {
    for (int k = 0; k < n; ++k) sync(kProduct, work);
    return *this;
  }
  Script& commit() { return sync(kCommit, of(Sync::Kind::kCommit)); }
  Script& wait() { return sync(kWait, of(Sync::Kind::kWait)); }
  Script& plain(uint32_t index) {
    stream_.steps.push_back({index});
    return *this;
  }
  sass::WarpStream end() { return plain(kEnd).stream_; }

 private:
  static Sync of(Sync::Kind kind) {
    Sync s;
    s.kind = kind, s.barrier = 2048, s.count = 1;
    return s;
  }
  sass::WarpStream stream_;
};

SmTime time_of(std::vector<sass::WarpStream> warps) {
  sass::CtaStream cta;
  cta.warps = std::move(warps);
  SmLoad load;
  load.ctas = {&cta};
  Machine m = b200();
  m.fetch_latency = 0;
  return simulate_sm(m, code(), load);
}

TEST(TensorUnit, AnArrivalComesAfterTheProductsBeforeIt) {
  const double none = time_of({Script().init().commit().wait().end()}).cycles;
  const double one = time_of({Script().init().products(1, product(128, 256)).commit().wait().end()}).cycles;
  const SmTime many = time_of({Script().init().products(9, product(128, 256)).commit().wait().end()});
  EXPECT_GT(one, none + 128);
  EXPECT_NEAR(many.cycles - one, 8 * 128, 1);
  EXPECT_EQ(many.broken_waits, 0u);
  EXPECT_EQ(many.pipe_cycles[static_cast<size_t>(sass::Pipe::kTensor)] / 4, 9 * 128);
}

TEST(TensorUnit, WarpsShareIt) {
  const auto warp = [] { return Script().init().products(8, product(128, 256)).commit().wait().end(); };
  EXPECT_NEAR(time_of({warp(), warp()}).cycles - time_of({warp()}).cycles, 8 * 128, 40);
}

TEST(TensorUnit, CopiesTakeTheirTurnAndReadSharedMemory) {
  Sync copy;
  copy.kind = Sync::Kind::kMatrix, copy.bytes = 4096;
  const auto with = [&](bool copies) {
    Script s;
    s.init().products(4, product(128, 256));
    if (copies) s.sync(kCopy, copy);
    return time_of({s.products(4, product(128, 256)).commit().wait().end()}).cycles;
  };
  EXPECT_NEAR(with(true) - with(false), 4096 / 128, 1);
}

TEST(TensorCopies, RowsAndPagesTakeTheirTime) {
  Sync load;
  load.kind = Sync::Kind::kLoad, load.rows = 128, load.bytes = 128 * 16;
  const Machine m = b200();
  load.pages = 16;  // rows 8 KiB apart
  EXPECT_NEAR(copy_cycles(m, load), 128 + 16 * 0.525, 0.01);
  load.pages = 128;  // rows 128 KiB apart: 1.525 cycles, as measured
  EXPECT_NEAR(copy_cycles(m, load), 128 * 1.525, 0.01);
  load.bytes = 128 * 256;
  EXPECT_NEAR(copy_cycles(m, load), load.bytes / m.copy_bytes_per_cycle, 0.01);
}

TEST(TensorMemory, ALoadTakesARegisterACycle) {
  const double one = time_of({Script().plain(kLoad).plain(kUse).end()}).cycles;
  const double two = time_of({Script().plain(kLoad).plain(kLoad).plain(kUse).end()}).cycles;
  EXPECT_NEAR(two - one, 32, 1);
  EXPECT_GT(one, 32 + 25);
}

}  // namespace
}  // namespace roofgen::timing::tensor_unit_test
