// The order of work in streams, as the API promises it.
#include "runtime/shim/stream_order.h"

#include <gtest/gtest.h>

namespace roofgen::test::stream_order_test {
namespace {

using shim::StreamOrder;
using Kind = StreamOrder::Kind;
constexpr uint32_t kDefault = StreamOrder::kLegacyStream;

class Order : public testing::Test {
 protected:
  /// Whether work is behind the last work of a stream, which is a new piece now.
  bool is_before(StreamOrder::Point work, uint32_t stream) {
    order_.submit(stream);
    return StreamOrder::is_before(work, order_.clock(stream));
  }
  StreamOrder order_;
};

TEST_F(Order, AStreamIsInOrderAndOthersRunBeside) {
  const uint32_t a = order_.open(Kind::kBlocking), b = order_.open(Kind::kBlocking), c = order_.open(Kind::kFree);
  const auto work = order_.submit(a);
  EXPECT_TRUE(is_before(work, a));
  EXPECT_FALSE(is_before(work, b));
  EXPECT_FALSE(is_before(work, c));
}

TEST_F(Order, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  const uint32_t a = order_.open(Kind::kBlocking), b = order_.open(Kind::kBlocking), c = order_.open(Kind::kFree);
  const auto in_a = order_.submit(a), in_c = order_.submit(c);
  const auto legacy = order_.submit(kDefault);
  EXPECT_TRUE(StreamOrder::is_before(in_a, order_.clock(kDefault)));
  EXPECT_FALSE(StreamOrder::is_before(in_c, order_.clock(kDefault)));
  EXPECT_TRUE(is_before(legacy, b));
  EXPECT_TRUE(is_before(in_a, b)) << "through the legacy stream";
  EXPECT_FALSE(is_before(legacy, c));
  const auto later = order_.submit(a);
  order_.host_waits(b);
  EXPECT_FALSE(order_.host_knows(later)) << "b is behind the legacy stream, and a goes on beside it";
  EXPECT_TRUE(order_.host_knows(legacy));
  order_.host_waits(kDefault);
  EXPECT_TRUE(order_.host_knows(later)) << "the default stream waits for all blocking streams";
  EXPECT_FALSE(order_.host_knows(in_c));
  order_.host_waits_for_all();
  EXPECT_TRUE(order_.host_knows(in_c));
}

TEST_F(Order, AWaitForAStreamIsNoneForWhatItWouldWaitForNext) {
  const uint32_t a = order_.open(Kind::kBlocking);
  order_.submit(a);
  const auto legacy = order_.submit(kDefault);
  order_.host_waits(a);
  EXPECT_FALSE(order_.host_knows(legacy));
}

TEST_F(Order, AnEventCarriesWhatItsStreamHasDone) {
  const uint32_t a = order_.open(Kind::kFree), b = order_.open(Kind::kFree), c = order_.open(Kind::kFree);
  const auto first = order_.submit(a);
  order_.submit(a);  // the record
  const StreamOrder::Clock event = order_.clock(a);
  const auto after = order_.submit(a);
  order_.wait(b, event);
  EXPECT_TRUE(is_before(first, b));
  EXPECT_FALSE(is_before(after, b));
  EXPECT_FALSE(is_before(first, c));
  order_.wait(c, order_.clock(b));
  EXPECT_TRUE(is_before(first, c)) << "through b";
  order_.wait(c, {});  // an event that nobody has recorded
  order_.host_waits(event);
  EXPECT_TRUE(order_.host_knows(first));
  EXPECT_FALSE(order_.host_knows(after));
}

TEST_F(Order, WhatTheHostHasSeenEndIsBeforeAllThatFollows) {
  const uint32_t a = order_.open(Kind::kFree), b = order_.open(Kind::kFree);
  const auto work = order_.submit(a);
  const auto beside = order_.submit(b);
  order_.host_waits(a);
  EXPECT_TRUE(is_before(work, b));
  EXPECT_TRUE(is_before(work, order_.open(Kind::kFree)));
  EXPECT_FALSE(is_before(beside, a));
}

TEST_F(Order, WorkOfClosedStreamsGoesOn) {
  const uint32_t a = order_.open(Kind::kBlocking), b = order_.open(Kind::kBlocking);
  const auto work = order_.submit(a);
  order_.close(a);
  const uint32_t c = order_.open(Kind::kBlocking);
  EXPECT_NE(c, a) << "the host does not know that it has ended";
  EXPECT_FALSE(is_before(work, b));
  EXPECT_TRUE(is_before(work, kDefault));
  order_.host_waits_for_all();
  const auto other = order_.submit(b);
  const uint32_t d = order_.open(Kind::kFree);
  EXPECT_EQ(d, a);
  EXPECT_TRUE(is_before(work, d));
  EXPECT_FALSE(is_before(other, d));
  for (int i = 0; i < 1000; ++i) {
    const uint32_t next = order_.open(Kind::kFree);
    order_.submit(next);
    order_.host_waits(next);
    order_.close(next);
    EXPECT_LT(next, 5u);
  }
}

}  // namespace
}  // namespace roofgen::test::stream_order_test
