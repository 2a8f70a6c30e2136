// roofgen run as a user runs it: a program of the driver API (run_program.cpp) and a Python script.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/program.h"
#include "tests/support/json_schema.h"

namespace roofgen::test::run_test {
namespace {

const std::string kProgram = ROOFGEN_RUN_PROGRAM;

class RunProgram : public testing::Test {
 protected:
  Outcome run(const std::string& modes, const std::string& flags = "", const std::string& before = "") {
    return home_.run("run " + flags + " -- '" + kProgram + "' " + modes, before);
  }
  /// The JSON report, held to its schema.
  Json report(const std::string& modes, int exit) {
    const Outcome o = run(modes, "--json");
    EXPECT_EQ(o.exit, exit) << o.out << o.err;
    const Json j = parse_json(o.out);
    expect_schema("run", j);
    return j;
  }
  static void expect_in(const std::string& part, const std::string& text) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  }
  Home home_;
};

TEST_F(RunProgram, ACleanProgramIsCountedAndItsStreamsAreItsOwn) {
  home_.write("input", "given\n");
  const Outcome o = home_.run("run -- sh -c \"'" + kProgram + "' echo step step <input\"");
  EXPECT_EQ(o.exit, 0) << o.err;
  EXPECT_EQ(o.out, "out\ngiven\n");
  EXPECT_TRUE(o.err.starts_with("err\n")) << o.err;
  expect_in("driver    simulated NVIDIA H200", o.err);
  expect_in("  step(unsigned int*, int)         2     2 ", o.err);
  expect_in("\nverdict   clean\n", o.err);
}

TEST_F(RunProgram, FindingsHaveTheirPlaceAndNumber) {
  const Json j = report("step race race", 1);
  EXPECT_FALSE(j.at("clean").get<bool>());
  EXPECT_EQ(j.at("exit_status"), 0);
  ASSERT_EQ(j.at("kernels").size(), 2u);
  EXPECT_EQ(j.at("kernels")[0].at("launches"), 1);
  EXPECT_EQ(j.at("kernels")[0].at("findings"), 0);
  EXPECT_EQ(j.at("kernels")[0].at("counts").at("ctas"), 1);
  EXPECT_EQ(j.at("kernels")[1].at("launches"), 2);
  ASSERT_EQ(j.at("findings").size(), 1u);
  const Json f = j.at("findings")[0];
  EXPECT_EQ(f.at("kind"), "race");
  EXPECT_EQ(f.at("kernel"), "spread");
  EXPECT_EQ(f.at("source").at("line"), 20);
  EXPECT_EQ(f.at("instruction"), "ld.shared.u32 %r4, [%r4]");
  EXPECT_EQ(f.at("count"), 2);
  const Outcome text = run("race race");
  EXPECT_EQ(text.exit, 1);
  expect_in("step.cu:20: race: ", text.err);
  expect_in(": ld.shared.u32 %r4, [%r4]; 2 times\n", text.err);
  expect_in("verdict   2 findings (explained in docs/use/findings.md)\n", text.err);
}

TEST_F(RunProgram, DependentLaunchesMustWait) {
  EXPECT_EQ(run("careful careful careful sync").exit, 0);
  const Outcome o = run("careful careless sync");
  EXPECT_EQ(o.exit, 1);
  expect_in("dependent.cu:5: race: read of ", o.err);
  expect_in("which careful writes, before a griddepcontrol.wait: careful may still run\n", o.err);
  EXPECT_EQ(run("careful clear careless sync").exit, 0) << "a memset between waits for the kernel before it";
  EXPECT_EQ(run("careless sync").exit, 0) << "nothing is before it";
}

TEST_F(RunProgram, WaitsMayEndWithoutSuccess) {
  Outcome o = run("patient");
  EXPECT_EQ(o.exit, 0) << o.err;
  EXPECT_EQ(o.out, "7 7\n");
  o = run("hasty");
  EXPECT_EQ(o.exit, 1);
  EXPECT_EQ(o.out, "7 7\n") << "what was tried leaves nothing";
  expect_in(" read by warp 1 at patient.cu:10 with no barrier between; so it is when", o.err);
  expect_in(" a try_wait ends at its time limit, without success\n", o.err);
}

TEST_F(RunProgram, RacesBetweenStreamsAreFindings) {
  EXPECT_TRUE(report("ordered sync", 0).at("clean").get<bool>());
  const std::string message =
      "step(unsigned int*, int) in stream 2 writes byte 0 of an allocation of 256 bytes, which "
      "step(unsigned int*, int) in stream 1 writes: no event or synchronisation orders them";
  const Json j = report("unordered sync", 1);
  ASSERT_EQ(j.at("findings").size(), 1u) << j;
  const Json f = j.at("findings")[0];
  EXPECT_EQ(f.at("kind"), "race");
  EXPECT_EQ(f.at("message"), message);
  EXPECT_EQ(f.at("kernel"), "step(unsigned int*, int)");
  EXPECT_EQ(f.at("ptx"), nullptr);
  EXPECT_EQ(f.at("source"), nullptr);
  EXPECT_EQ(j.at("kernels")[0].at("findings"), 1);
  EXPECT_EQ(j.at("kernels")[0].at("launches"), 2) << "it ends nothing";
  EXPECT_EQ(report("unordered", 1).at("findings").size(), 1u) << "what runs at the end of the program is followed too";
  const Outcome o = run("unordered sync", "--strict");
  EXPECT_EQ(o.exit, 1);
  EXPECT_EQ(o.out, "") << "no launch is at fault";
  expect_in("\n\nrace: " + message + "\n\nverdict   1 finding ", o.err);
}

TEST_F(RunProgram, AnAccessOutOfBoundsFailsTheLaunch) {
  const Outcome o = run("beyond");
  EXPECT_EQ(o.exit, 1);
  expect_in("cuCtxSynchronize: status 700\n", o.out);
  expect_in("step.cu:7: out-of-bounds: read of 4 bytes", o.err);
  expect_in("\n  step(unsigned int*, int), CTA 1, thread 0, _Z4stepPji.ptx:", o.err);
  expect_in(": ld.global.u32 %r5, [%rd3]\n", o.err);
  EXPECT_EQ(run("race", "--strict").out, "cuCtxSynchronize: status 719\n");
}

TEST_F(RunProgram, KeepsGoingAfterFindings) {
  EXPECT_EQ(report("beyond race", 1).at("findings").size(), 1u) << "the context is lost";
  const Outcome o = run("beyond race", "--keep-going");
  EXPECT_EQ(o.exit, 1);
  EXPECT_EQ(o.out, "");
  expect_in("step.cu:7: out-of-bounds: read of 4 bytes", o.err);
  expect_in("step.cu:20: race: ", o.err);
  EXPECT_EQ(run("race", "--keep-going --strict").exit, 2);
}

TEST_F(RunProgram, ItsExitStatusIsForwarded) {
  Outcome o = run("step exit=7");
  EXPECT_EQ(o.exit, 7);
  expect_in("verdict   no findings; the program ended with exit status 7\n", o.err);
  EXPECT_EQ(run("race exit=7").exit, 7);
  o = run("step race abort");
  EXPECT_EQ(o.exit, 128 + SIGABRT);
  expect_in("1 finding (explained in docs/use/findings.md); the program was ended by signal 6 (Aborted)\n", o.err);
  const Json killed = report("step step kill", 128 + SIGKILL);
  EXPECT_EQ(killed.at("exit_status"), nullptr);
  EXPECT_EQ(killed.at("signal"), SIGKILL);
  EXPECT_EQ(killed.at("kernels")[0].at("launches"), 2);
}

TEST_F(RunProgram, ChildProcessesAreInTheReport) {
  for (const std::string child : {"fork", "exec"}) {
    const Json j = report("step " + child + " step race _exit", 1);
    EXPECT_EQ(j.at("processes").size(), 2u) << j;
    EXPECT_EQ(j.at("kernels")[0].at("launches"), 2) << j;
    EXPECT_EQ(j.at("findings").size(), 1u) << j;
  }
  const Outcome o = run("step exec step");
  expect_in(", loaded by 2 processes; at most 256 B of device memory allocated\n", o.err);
}

TEST_F(RunProgram, UncheckedLaunchesAreNotClean) {
  Outcome o = home_.run("run true");
  EXPECT_EQ(o.exit, 3);
  expect_in("driver    not loaded\n", o.err);
  expect_in("verdict   nothing was checked: the program did not load the simulated driver\n", o.err);
  EXPECT_EQ(home_.run("run false").exit, 1);
  o = run("load");
  EXPECT_EQ(o.exit, 5) << o.err;
  expect_in("driver    never initialised\n", o.err);
  expect_in("verdict   nothing was checked: no kernel ran\n", o.err);
  o = run("forget _exit");
  expect_in("verdict   nothing was checked: no kernel ran\n", o.err);
  // A GPU runs what is queued when the program returns.
  const Json forgotten = report("forget", 0);
  EXPECT_EQ(forgotten.at("kernels")[0].at("launches"), 1) << forgotten;
  EXPECT_EQ(forgotten.at("kernels")[0].at("launches_not_run"), 0) << forgotten;
  EXPECT_EQ(report("forget sync forget forget", 0).at("kernels")[0].at("launches"), 3);
  EXPECT_EQ(report("fill forget", 0).at("kernels")[0].at("launches"), 1);
  EXPECT_EQ(report("forget fork", 0).at("kernels")[0].at("launches"), 1) << "a child does not run its parent's queue";
  o = run("array step");
  EXPECT_EQ(o.exit, 5) << o.err;
  expect_in("  cuMipmappedArrayCreate: CUDA_ERROR_NOT_SUPPORTED (801): ", o.err);
  expect_in(
      "verdict   incomplete: nothing wrong in what ran, but the simulated driver does not support a call or a kernel\n",
      o.err);
  EXPECT_EQ(run("array step", "--allow-incomplete").exit, 0);
}

TEST_F(RunProgram, AnotherDriverIsNamed) {
  const std::string other = (home_.dir() / "libcuda.so.1").string();
  fs::copy_file(ROOFGEN_OTHER_LIBRARY, other);
  const Outcome o = run("open=" + other + " sleep");
  EXPECT_EQ(o.exit, 3) << o.out;
  expect_in("did not load the simulated driver, but " + other + "\n", o.err);
}

TEST_F(RunProgram, SettingsReachTheDriver) {
  Outcome o = run("array step", "--device a100-sxm-80 --log calls.txt --jobs 1");
  EXPECT_EQ(o.exit, 5) << o.err;
  expect_in("simulated NVIDIA A100", o.err);
  expect_in("cuMipmappedArrayCreate: CUDA_ERROR_NOT_SUPPORTED (801)", home_.read("calls.txt"));
  o = run("race", "--output report.json", "ROOFGEN_SHIM=" ROOFGEN_SHIM_DIR);
  EXPECT_EQ(o.out, "");
  expect_in("verdict   1 finding", o.err);
  EXPECT_EQ(parse_json(home_.read("report.json")).at("findings").size(), 1u);
  o = run("echo", "--json");
  EXPECT_TRUE(o.err.ends_with("out\n")) << o.err;
  EXPECT_EQ(parse_json(o.out).at("schema"), "roofgen.run.1");
}

TEST_F(RunProgram, WordsAfterTheProgramAreItsOwn) {
  EXPECT_EQ(home_.run("run --json sh -c 'echo $0 $* >words' --json -- --help '[1,2]' tune").exit, 3);
  EXPECT_EQ(home_.read("words"), "--json -- --help [1,2] tune\n");
}

TEST_F(RunProgram, RefusalsAreOneLine) {
  const auto refused = [&](const std::string& arguments, int exit, const std::string& message,
                           const char* before = "") {
    const Outcome o = home_.run("run " + arguments, before);
    EXPECT_EQ(o.exit, exit) << arguments << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_NE(o.err.find("error: " + message), std::string::npos) << o.err;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
  };
  refused("", 2, "a program was expected, as in roofgen run -- python3 script.py");
  refused("--json --", 2, "a program was expected");
  refused("-- no-such-program", 2, "cannot run no-such-program: No such file or directory");
  refused("-- /etc/passwd", 2, "cannot run /etc/passwd: Permission denied");
  refused("--devise a100 true", 2, "unknown option --devise; did you mean --device?");
  refused("--device a1000 true", 2, "unknown device");
  refused("--device v100-sxm2 true", 3, "the kernels need sm_80 or newer");
  refused("--log no/such true", 1, "cannot be written");
  refused("true", 3, "ROOFGEN_SHIM=/nowhere: no libcuda.so.1 there", "ROOFGEN_SHIM=/nowhere");
}

TEST_F(RunProgram, SignalsAreForwardedAndTheReportIsPrinted) {
  const std::string command = "cd '" + home_.dir().string() + "' && '" ROOFGEN_PROGRAM "' run -- '" + kProgram +
                              "' step wait >out.txt 2>err.txt & pid=$!; cd '" + home_.dir().string() +
                              "'; for i in $(seq 600); do grep -q waiting out.txt && break; sleep 0.05; done; "
                              "kill -TERM $pid; wait $pid";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
  expect_in("verdict   no findings; the program was ended by signal 15 (Terminated)\n", home_.read("err.txt"));
}

// A stand-in for PyTorch: the runtime of its version is loaded before the program's libraries.
TEST_F(RunProgram, PyTorchGetsTheSimulatedRuntime) {
  const auto loaded = [&](const std::string& version) {
    home_.write("torch/__init__.py", "raise ImportError('it is not imported')\n");
    home_.write("torch/version.py", "__version__ = '2.15'\ncuda: Optional[str] = '" + version + "'\n");
    home_.write("maps.py", "print([line for line in open('/proc/self/maps') if '/shim/libcudart.so.' in line][:1])\n");
    return home_.run("run python3 maps.py", "PYTHONPATH=$PWD").out;
  };
  expect_in("/shim/libcudart.so.13", loaded("13.2"));
  expect_in("/shim/libcudart.so.12", loaded("12.8"));
  EXPECT_EQ(loaded("11.8"), "[]\n");
  EXPECT_EQ(loaded("None"), "[]\n");
  loaded("13.2");
  const Outcome o = home_.run("run python3 maps.py", "PYTHONPATH=$PWD");
  EXPECT_EQ(o.exit, 3) << "no process called the driver: " << o.err;
}

TEST_F(RunProgram, APythonScript) {
  const Outcome o = home_.run("run python3 " ROOFGEN_SOURCE_DIR "/tests/shim/cuda_python.py");
  if (o.exit == 77) GTEST_SKIP() << o.out;
  EXPECT_EQ(o.exit, 0) << o.out << o.err;
  expect_in("ok transpose", o.out);
  expect_in("  reduce  ", o.err);
  expect_in("verdict   clean\n", o.err);
}

}  // namespace
}  // namespace roofgen::test::run_test
