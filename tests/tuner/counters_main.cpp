// main of a test binary that also acts as the program started by a profiler, like roofgen itself.
#include <gtest/gtest.h>

#include <cstring>

#include "tuner/evidence/replay.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "__replay") == 0) return roofgen::replay_main(argc - 2, argv + 2);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
