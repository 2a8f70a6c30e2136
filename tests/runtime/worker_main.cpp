// main of a test binary whose tests start workers: the binary also acts as the worker, of the compiler pool or of a
// GPU. List this file beside the tests, before gtest_main. Needs roofgen_compile and roofgen_cuda.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/compiler.h"
#include "runtime/executor.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "__compile-worker") == 0) return roofgen::compile_worker_main();
  if (argc == 2 && std::strcmp(argv[1], "__gpu-worker") == 0) return roofgen::gpu_worker_main();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
