#include "base/pool.h"

#include <gtest/gtest.h>

#include <atomic>

namespace roofgen::pool_test {

TEST(Pool, AJobThatWaitsIsCalledAgainAfterTheOthers) {
  Pool pool(1);
  std::atomic<int> calls{0}, others{0}, others_before_the_second{0};
  pool.push_until([&] {
    if (++calls == 2) others_before_the_second = others.load();
    return calls == 3;
  });
  for (int i = 0; i < 5; ++i) pool.push([&] { ++others; });
  pool.drain([] {});
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(others_before_the_second, 5);
  pool.drain([] {});
  EXPECT_EQ(calls, 3);
}

}  // namespace roofgen::pool_test
