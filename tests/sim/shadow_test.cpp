// The simulator's shadow of shared memory against a model with a record per byte and a clock per pair of warps. Chunks,
// words and bytes have separate records only when needed, and common requests take shortcuts; neither may be visible.
// The same for device memory, where a line belongs to one warp until others access it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/sim/device_shadow.h"
#include "runtime/sim/shared_shadow.h"

namespace roofgen::sim::shadow_test {
namespace {

constexpr uint32_t kBytesHere = 96, kWarpsHere = 4;

class Model {
 public:
  explicit Model(uint32_t bytes = kBytesHere, bool written = false) : bytes_(bytes) {
    for (Byte& b : bytes_) b.written = written;
  }
  bool read(uint32_t warp, uint32_t offset, uint32_t bytes) {
    for (uint32_t i = offset; i < offset + bytes; ++i) {
      Byte& b = bytes_[i];
      if (b.pending || !b.written || !seen(warp, b.writer, b.at)) return false;
      b.read_at[warp] = ++now_;
    }
    return true;
  }
  bool write(uint32_t warp, uint32_t offset, uint32_t bytes) {
    for (uint32_t i = offset; i < offset + bytes; ++i) {
      Byte& b = bytes_[i];
      if (b.pending || !seen(warp, b.writer, b.at)) return false;
      for (uint32_t v = 0; v < kWarpsHere; ++v)
        if (!seen(warp, v, b.read_at[v])) return false;
      b = {};
      b.written = true;
      b.writer = warp;
      b.at = ++now_;
    }
    return true;
  }
  bool issue(uint32_t warp, uint32_t offset, uint32_t bytes) {
    if (!write(warp, offset, bytes)) return false;
    for (uint32_t i = offset; i < offset + bytes; ++i) bytes_[i].pending = true;
    return true;
  }
  void land(uint32_t warp, uint32_t offset, uint32_t bytes) {
    for (uint32_t i = offset; i < offset + bytes; ++i)
      bytes_[i].pending = false, bytes_[i].writer = warp, bytes_[i].at = ++now_;
  }
  void barrier(uint32_t warps) {
    uint64_t all[kWarpsHere] = {};
    for (uint32_t w = 0; w < kWarpsHere; ++w)
      for (uint32_t v = 0; v < kWarpsHere && warps >> w & 1; ++v)
        all[v] = std::max(all[v], v == w ? now_ : seen_[w][v]);
    for (uint32_t w = 0; w < kWarpsHere; ++w)
      if (warps >> w & 1) std::copy(all, all + kWarpsHere, seen_[w]);
  }

 private:
  struct Byte {
    bool written = false, pending = false;
    uint32_t writer = 0;
    uint64_t at = 0, read_at[kWarpsHere] = {};
  };
  bool seen(uint32_t warp, uint32_t other, uint64_t at) const { return warp == other || at <= seen_[warp][other]; }
  std::vector<Byte> bytes_;
  uint64_t now_ = 0, seen_[kWarpsHere][kWarpsHere] = {};
};

TEST(SharedShadow, IsAsAModelOfBytes) {
  uint32_t refused = 0, steps = 0;
  SharedShadow shadow;
  for (uint32_t seed = 0; seed < 16'000; ++seed) {
    std::mt19937 random(seed);
    Model model;
    shadow.reset(kBytesHere, kWarpsHere);
    const uint32_t chunks = 1 + random() % (kBytesHere / 16), calm = random() % 12, whole = 1 + random() % 8,
                   reads = 1 + random() % 8;
    if (random() % 8 != 0) {
      for (uint32_t i = 0; i < chunks; ++i) ASSERT_TRUE(shadow.write(0, 16 * i, 16).ok() && model.write(0, 16 * i, 16));
      for (uint32_t w = 0; w < kWarpsHere; ++w) shadow.arrive(0, w, true);
      shadow.release(0, 15);
      model.barrier(15);
    }
    for (bool ok = true; ok && steps < 1'000'000; ++steps) {
      const uint32_t warp = random() % kWarpsHere, way = random() % 12;
      if (random() % (calm + 1) != 0) {
        const uint32_t warps = random() % whole ? 15 : 1 + random() % 15;
        for (uint32_t w = 0; w < kWarpsHere; ++w)
          if (warps >> w & 1) shadow.arrive(0, w, true);
        shadow.release(0, warps);
        model.barrier(warps);
      }
      const uint32_t size = 1u << (way < 4   ? 4
                                   : way < 7 ? 2 + random() % 2
                                   : way < 9 ? random() % 5
                                             : 2),
                     offset = random() % (chunks * 16 / size) * size;
      bool model_ok;
      if (random() % 8 == 0 && size >= 4) {
        ok = shadow.async_issue(warp, offset, size).ok();
        model_ok = model.issue(warp, offset, size);
        if (ok && model_ok && random() % 16) {
          shadow.async_land(warp, offset, size);
          model.land(warp, offset, size);
        }
      } else if (random() % reads == 0) {
        ok = (way < 4   ? shadow.write_chunk(warp, offset / 16, 0)
              : way < 7 ? shadow.write_words(warp, offset / 4, size / 4)
                        : shadow.write(warp, offset, size))
                 .ok();
        model_ok = model.write(warp, offset, size);
      } else if (way >= 9) {
        ok = shadow.read_each_word(warp, &offset, 1);
        model_ok = model.read(warp, offset, size);
      } else {
        ok = (way < 4   ? shadow.read_chunk(warp, offset / 16)
              : way < 7 ? shadow.read_words(warp, offset / 4, size / 4)
                        : shadow.read(warp, offset, size))
                 .ok();
        model_ok = model.read(warp, offset, size);
      }
      ASSERT_EQ(ok, model_ok) << "seed " << seed << ", warp " << warp << ", " << size << " bytes at " << offset;
      refused += !ok;
    }
  }
  EXPECT_GT(refused, 12'000u);
  EXPECT_GT(steps, 100'000u);
  RecordProperty("steps", static_cast<int>(steps));
}

TEST(DeviceShadow, IsAsAModelOfBytes) {
  constexpr uint32_t kLinesHere = 1024, kApart = 37;  // enough to make the table grow
  constexpr uint64_t kBase = uint64_t{1} << 40;
  uint32_t refused = 0, steps = 0;
  SharedShadow shared;
  DeviceShadow shadow(shared);
  for (uint32_t seed = 0; seed < 12'000; ++seed) {
    std::mt19937 random(seed);
    const uint32_t lines = seed % 400 == 0 ? kLinesHere : 1 + random() % 5,
                   calm = lines == kLinesHere ? 1u << 30 : random() % 12, whole = 1 + random() % 8,
                   reads = 1 + random() % 8;
    Model model(lines * kLineBytes, true);
    shared.reset(random() % 2 * 48, kWarpsHere);
    shadow.reset(kWarpsHere);
    const auto at = [](uint32_t offset) {
      return kBase + uint64_t{offset / kLineBytes} * kApart * kLineBytes + offset % kLineBytes;
    };
    const auto sync = [&](uint32_t warps) {
      for (uint32_t w = 0; w < kWarpsHere; ++w)
        if (warps >> w & 1) shared.arrive(0, w, true);
      shared.release(0, warps);
      shadow.settle();
      model.barrier(warps);
    };
    if (lines == kLinesHere) {  // until a barrier, each warp has its own lines
      for (uint32_t i = 0; i < lines; ++i) {
        ASSERT_TRUE(shadow.write(i % kWarpsHere, at(i * kLineBytes), kLineBytes).ok() &&
                    model.write(i % kWarpsHere, i * kLineBytes, kLineBytes));
        if (i == lines / 3) sync(15);
      }
    }
    uint32_t left = 400;
    for (bool ok = true; ok && left; --left, ++steps) {
      const uint32_t warp = random() % kWarpsHere;
      if (random() % (calm + 1) != 0 && calm != 1u << 30) sync(random() % whole ? 15 : 1 + random() % 15);
      const uint32_t size = random() % 3 == 0 ? kLineBytes : 1u << random() % 5,
                     offset = random() % (lines * kLineBytes / size) * size;
      const bool writes = random() % reads == 0;
      ok = (writes ? shadow.write(warp, at(offset), size) : shadow.read(warp, at(offset), size)).ok();
      const bool model_ok = writes ? model.write(warp, offset, size) : model.read(warp, offset, size);
      ASSERT_EQ(ok, model_ok) << "seed " << seed << ", warp " << warp << ", " << size << " bytes at " << offset;
      refused += !ok;
    }
  }
  EXPECT_GT(refused, 8'000u);
  EXPECT_GT(steps, 100'000u);
  RecordProperty("steps", static_cast<int>(steps));
  RecordProperty("refused", static_cast<int>(refused));
}

TEST(DeviceShadow, StrongAccessesDoNotRaceWithEachOther) {
  SharedShadow shared;
  DeviceShadow shadow(shared);
  using Verdict = SharedShadow::Verdict;
  shared.reset(0, 3);
  shadow.reset(3);
  constexpr uint64_t kAt = uint64_t{1} << 40;
  EXPECT_TRUE(shadow.read(1, kAt, 4, true).ok());
  EXPECT_TRUE(shadow.write(0, kAt, 4, true).ok());
  EXPECT_TRUE(shadow.read(1, kAt, 4, true).ok());
  EXPECT_TRUE(shadow.write(1, kAt, 4, true).ok());
  EXPECT_TRUE(shadow.read(0, kAt, 4, true).ok());
  EXPECT_TRUE(shadow.write(2, kAt + 4, 4).ok());  // next to it
  EXPECT_EQ(shadow.read(0, kAt, 4).verdict, Verdict::kReadAfterWrite);
  EXPECT_EQ(shadow.read(1, kAt + 4, 4, true).verdict, Verdict::kReadAfterWrite);
  EXPECT_EQ(shadow.write(1, kAt + 4, 4, true).verdict, Verdict::kWriteAfterWrite);
  // A plain write after a strong write counts as plain.
  shadow.reset(3);
  EXPECT_TRUE(shadow.write(0, kAt + 8, 4, true).ok());
  EXPECT_TRUE(shadow.write(0, kAt + 8, 4).ok());
  EXPECT_EQ(shadow.read(1, kAt + 8, 4, true).verdict, Verdict::kReadAfterWrite);
}

}  // namespace
}  // namespace roofgen::sim::shadow_test
