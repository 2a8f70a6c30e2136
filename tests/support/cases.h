// Parameterised tests of a list of cases.
#pragma once

#include <gtest/gtest.h>

#include <vector>

/// The tests of `suite` for each of the cases; a test has the name that PrintTo writes. INSTANTIATE_TEST_SUITE_P
/// compiles its arguments twice, and testing::Values a template for each list: a long list took seconds.
#define TEST_EACH(prefix, suite, ...)                                                       \
  static std::vector<suite::ParamType> prefix##_##suite##_cases() { return {__VA_ARGS__}; } \
  INSTANTIATE_TEST_SUITE_P(prefix, suite, testing::ValuesIn(prefix##_##suite##_cases()),    \
                           testing::PrintToStringParamName())
