// main of a test binary whose tests compile: it is also the worker that the compiler pool starts.
// Link this (target roofgen_test_worker_main) instead of gtest_main.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/compiler.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "__compile-worker") == 0) return roofgen::compile_worker_main();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
