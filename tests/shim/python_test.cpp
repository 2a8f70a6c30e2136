// cuda-python on the simulated driver (tests/shim/cuda_*.py). `./roofgen test` installs the packages into build/python;
// otherwise the test uses any python3 that has them.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::python_test {
namespace {

constexpr int kSkipped = 77;  ///< exit status of the scripts when a required package is missing

/// Library folders: the simulated driver's first, then that of the NVRTC used by roofgen.
std::string libraries(const Home& home) {
  const Outcome doctor = home.run("doctor --json");
  std::string path = ROOFGEN_SHIM_DIR;
  if (doctor.exit != 0) return path;
  const fs::path nvrtc = parse_json(doctor.out).at("nvrtc").at("library").get<std::string>();
  return nvrtc.has_parent_path() ? path + ":" + nvrtc.parent_path().string() : path;
}

Outcome python(const Home& home, const std::string& script) {
  const std::string command = "cd '" + home.dir().string() + "' && LD_LIBRARY_PATH='" + libraries(home) +
                              "' ROOFGEN_SIM_LOG=sim.log PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" ROOFGEN_PYTHON_DIR
                              "' python3 '" ROOFGEN_SOURCE_DIR "/tests/shim/" +
                              script + "' >out.txt 2>err.txt </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, home.read("out.txt"), home.read("err.txt")};
}

TEST(Shim, CudaPythonsBindingsRunOnItAndOnNothingElse) {
  const Home home;
  const Outcome run = python(home, "cuda_python.py");
  if (run.exit == kSkipped) GTEST_SKIP() << run.out;
  EXPECT_EQ(run.exit, 0) << run.out << run.err;
  EXPECT_EQ(run.out.find("FAILED"), std::string::npos) << run.out;
  for (const char* what : {"ok vector add", "ok saxpy", "ok reduction", "ok transpose"})
    EXPECT_NE(run.out.find(what), std::string::npos) << what;
  EXPECT_NE(run.out.find("served by " + fs::canonical(ROOFGEN_SHIM_DIR "/libcuda.so.1").string() + " (simulated)"),
            std::string::npos)
      << run.out;
  const std::string log = home.read("sim.log");
  EXPECT_NE(log.find("a simulated NVIDIA H200"), std::string::npos) << log;
  EXPECT_EQ(log.find("finding"), std::string::npos) << log;
}

TEST(Shim, CudaCoreRunsOnIt) {
  const Home home;
  const Outcome run = python(home, "cuda_core.py");
  if (run.exit == kSkipped) GTEST_SKIP() << run.out;
  EXPECT_EQ(run.exit, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("ok saxpy<double>"), std::string::npos) << run.out;
  EXPECT_EQ(home.read("sim.log").find("finding"), std::string::npos);
  EXPECT_EQ(home.read("sim.log").find("cuGetExportTable"), std::string::npos) << "NVRTC's own question";
}

}  // namespace
}  // namespace roofgen::test::python_test
