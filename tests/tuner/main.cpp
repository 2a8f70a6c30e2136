// main of a test binary that also acts as its own worker, of the compiler pool or of a GPU, and as the program started
// by a profiler, like roofgen itself.
#include <gtest/gtest.h>

#include <string_view>

#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tuner/evidence/replay.h"

int main(int argc, char** argv) {
  const std::string_view job = argc > 1 ? argv[1] : "";
  if (job == "__compile-worker") return roofgen::compile_worker_main();
  if (job == "__gpu-worker") return roofgen::gpu_worker_main();
  if (job == "__replay") return roofgen::replay_main(argc - 2, argv + 2);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
