// Which runs the locks of a launch suggest.
#include "runtime/sim/lock_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace roofgen::lock_order_test {
using sim::LockOrder;
using sim::Pause;
using sim::Pauses;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

constexpr uint64_t kA = 16, kB = 32, kC = 48;

uint64_t warp(uint32_t w, uint32_t lane = 0) { return LockOrder::thread_of(0, w, lane); }

void take(LockOrder& locks, uint64_t thread, uint64_t word) { EXPECT_FALSE(locks.change(thread, word, 0, 1)); }
void give(LockOrder& locks, uint64_t thread, uint64_t word) { locks.give_back(thread, word, 0); }

void take_both(LockOrder& locks, uint64_t thread, uint64_t first, uint64_t second) {
  take(locks, thread, first), take(locks, thread, second);
  give(locks, thread, second), give(locks, thread, first);
}

}  // namespace

TEST(LockOrder, TwoLocksInBothOrdersAreARing) {
  LockOrder locks({});
  take_both(locks, warp(0), kA, kB);
  take_both(locks, warp(0), kA, kB);
  take_both(locks, warp(1), kA, kC);
  take_both(locks, warp(1), kB, kA);  // its third and fourth
  EXPECT_THAT(locks.cycles(), ElementsAre(Pauses{{warp(0), 1}, {warp(1), 3}}));
}

TEST(LockOrder, ARingOfThreeNeedsAllOfThem) {
  LockOrder locks({});
  take_both(locks, warp(0), kA, kB);
  take_both(locks, warp(1), kB, kC);
  EXPECT_THAT(locks.cycles(), IsEmpty());
  take_both(locks, warp(2), kC, kA);
  EXPECT_THAT(locks.cycles(), ElementsAre(Pauses{{warp(0), 1}, {warp(1), 1}, {warp(2), 1}}));
}

TEST(LockOrder, WhatCannotBeADeadlockIsNone) {
  const auto rings = [](auto&& run) {
    LockOrder locks({});
    run(locks);
    return locks.cycles();
  };
  // One warp takes both orders; lanes of a warp.
  EXPECT_THAT(rings([](LockOrder& l) { take_both(l, warp(0), kA, kB), take_both(l, warp(0), kB, kA); }), IsEmpty());
  EXPECT_THAT(rings([](LockOrder& l) { take_both(l, warp(0, 1), kA, kB), take_both(l, warp(0, 2), kB, kA); }),
              IsEmpty());
  // A third lock keeps them apart.
  EXPECT_THAT(rings([](LockOrder& l) {
                for (const auto& [w, first, second] : {std::tuple(0u, kA, kB), std::tuple(1u, kB, kA)}) {
                  take(l, warp(w), kC);
                  take_both(l, warp(w), first, second);
                  give(l, warp(w), kC);
                }
              }),
              IsEmpty());
  // Words that are changed and never written back, as a maximum by atomicCAS.
  EXPECT_THAT(rings([](LockOrder& l) {
                for (uint64_t i = 1; i < 4; ++i) {
                  l.change(warp(0), kA, 10 * i, 10 * i + 1), l.change(warp(0), kB, 10 * i, 10 * i + 1);
                  l.change(warp(1), kB, 10 * i + 1, 10 * i + 2), l.change(warp(1), kA, 10 * i + 1, 10 * i + 2);
                }
              }),
              IsEmpty());
}

TEST(LockOrder, WarpsPauseBeforeTheirLockUntilAllHaveComeAndAfterIt) {
  const Pauses pauses{{warp(0), 2}, {warp(1), 1}};
  LockOrder locks(pauses);
  EXPECT_FALSE(locks.comes(warp(0), false, 1));
  take(locks, warp(0), kA);
  EXPECT_FALSE(locks.comes(warp(0), true, 0));  // gives kA back
  EXPECT_TRUE(locks.comes(warp(0), false, 1));
  EXPECT_FALSE(locks.comes(warp(0), false, 1));  // once
  EXPECT_FALSE(locks.all_have_come());
  EXPECT_TRUE(locks.comes(warp(1), false, 1));
  EXPECT_TRUE(locks.all_have_come());
  EXPECT_TRUE(locks.change(warp(1), kC, 0, 1));
  EXPECT_TRUE(locks.change(warp(0), kB, 0, 1));
}

}  // namespace roofgen::lock_order_test
