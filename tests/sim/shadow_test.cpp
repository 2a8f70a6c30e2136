// What the simulator remembers about shared memory, against a model with a record per byte and a clock per pair of warps. Chunks,
// words and bytes have records of their own only where they need them, and common requests have shorter ways: none of that shows.
#include "runtime/sim/shared_shadow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace roofgen::sim {
namespace {

constexpr uint32_t kBytesHere = 96, kWarpsHere = 4;

class Model {
 public:
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
    for (uint32_t i = offset; i < offset + bytes; ++i) bytes_[i].pending = false, bytes_[i].writer = warp, bytes_[i].at = ++now_;
  }
  void barrier(uint32_t warps) {
    uint64_t all[kWarpsHere] = {};
    for (uint32_t w = 0; w < kWarpsHere; ++w)
      for (uint32_t v = 0; v < kWarpsHere && warps >> w & 1; ++v) all[v] = std::max(all[v], v == w ? now_ : seen_[w][v]);
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
  Byte bytes_[kBytesHere];
  uint64_t now_ = 0, seen_[kWarpsHere][kWarpsHere] = {};
};

TEST(SharedShadow, IsAsAModelOfBytes) {
  uint32_t refused = 0, steps = 0;
  SharedShadow shadow;
  for (uint32_t seed = 0; seed < 16'000; ++seed) {
    std::mt19937 random(seed);
    Model model;
    shadow.reset(kBytesHere, kWarpsHere);
    const uint32_t chunks = 1 + random() % (kBytesHere / 16), calm = random() % 12, whole = 1 + random() % 8, reads = 1 + random() % 8;
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
      const uint32_t size = 1u << (way < 4 ? 4 : way < 7 ? 2 + random() % 2 : way < 9 ? random() % 5 : 2), offset = random() % (chunks * 16 / size) * size;
      bool model_ok;
      if (random() % 8 == 0 && size >= 4) {
        ok = shadow.async_issue(warp, offset, size).ok();
        model_ok = model.issue(warp, offset, size);
        if (ok && model_ok && random() % 16) {
          shadow.async_land(warp, offset, size);
          model.land(warp, offset, size);
        }
      } else if (random() % reads == 0) {
        ok = (way < 4 ? shadow.write_chunk(warp, offset / 16, 0) : way < 7 ? shadow.write_words(warp, offset / 4, size / 4) : shadow.write(warp, offset, size)).ok();
        model_ok = model.write(warp, offset, size);
      } else if (way >= 9) {
        ok = shadow.read_each_word(warp, &offset, 1);
        model_ok = model.read(warp, offset, size);
      } else {
        ok = (way < 4 ? shadow.read_chunk(warp, offset / 16) : way < 7 ? shadow.read_words(warp, offset / 4, size / 4) : shadow.read(warp, offset, size)).ok();
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

}  // namespace
}  // namespace roofgen::sim
