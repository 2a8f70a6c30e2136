// What most tests include, parsed once for all of them.
#pragma once

#define GTEST_DONT_DEFINE_TEST 1
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/precompiled_json.h"

namespace roofgen::test {

/// A test that calls a function.
struct FunctionTest : testing::Test {
  explicit FunctionTest(void (*b)()) : body(b) {}
  void TestBody() override { body(); }
  void (*body)();
};

inline bool add_test(const char* suite, const char* name, const char* file, int line, void (*body)()) {
  testing::RegisterTest(suite, name, nullptr, nullptr, file, line,
                        [=]() -> testing::Test* { return new FunctionTest(body); });
  return true;
}

}  // namespace roofgen::test

// GoogleTest makes objects of a class for each test by another class: 20 ms to compile. A function takes 1 ms; it is in
// a class, whose base has names that tests use.
#define TEST(suite, name)                                                                        \
  struct suite##_##name##_Test : ::testing::Test {                                               \
    static void body();                                                                          \
  };                                                                                             \
  [[maybe_unused]] static const bool suite##_##name##_added =                                    \
      ::roofgen::test::add_test(#suite, #name, __FILE__, __LINE__, suite##_##name##_Test::body); \
  void suite##_##name##_Test::body()
