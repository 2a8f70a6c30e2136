// cublaslt_peer on a fake driver and a fake cuBLASLt.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "tests/runtime/process.h"

namespace {

using nlohmann::json;
using roofgen::testing::read_text;
using roofgen::testing::TempDir;

struct Outcome {
  int exit = -1;
  std::string out, err;
};

class Peer : public ::testing::Test {
 protected:
  Outcome run(const std::string& arguments, const std::string& environment = "") {
    const std::string command = "ROOFGEN_LIBCUDA=" ROOFGEN_FAKE_CUDA
                                " ROOFGEN_LIBNVML=/no/nvml.so ROOFGEN_CUBLASLT=" ROOFGEN_FAKE_CUBLASLT " " +
                                environment + " " ROOFGEN_PEER " " + arguments + " >" + (dir_ / "out") + " 2>" +
                                (dir_ / "err") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(dir_ / "out"),
            read_text(dir_ / "err")};
  }
  TempDir dir_;
};

TEST_F(Peer, HelpAndUsage) {
  EXPECT_EQ(run("--help").exit, 0);
  EXPECT_EQ(run("--what").exit, 2);
  EXPECT_EQ(run("--m 7 --n 8 --k 8").exit, 2);
  EXPECT_EQ(run("--epilogue swish").exit, 2);
  EXPECT_EQ(run("--bundle /no/such").exit, 2);
}

TEST_F(Peer, NothingToRunOnIs3AndOneLine) {
  const Outcome no_driver = run("--m 64 --n 64 --k 64", "ROOFGEN_LIBCUDA=/no/such.so");
  EXPECT_EQ(no_driver.exit, 3);
  EXPECT_EQ(no_driver.err.find("cublaslt_peer: error: no CUDA driver"), 0u) << no_driver.err;
  EXPECT_EQ(std::count(no_driver.err.begin(), no_driver.err.end(), '\n'), 1);
  const Outcome no_library = run("--m 64 --n 64 --k 64", "ROOFGEN_CUBLASLT=/no/such.so");
  EXPECT_EQ(no_library.exit, 3);
  EXPECT_NE(no_library.err.find("no cuBLASLt"), std::string::npos) << no_library.err;
}

TEST_F(Peer, EveryEpilogueIsChecked) {
  for (const char* epilogue : {"none", "bias", "relu", "gelu-bias"}) {
    const Outcome o =
        run(std::string("--m 40 --n 24 --k 32 --mode burst --rounds 1 --rest 0 --json - --epilogue ") + epilogue);
    ASSERT_EQ(o.exit, 0) << o.err << o.out;
    const json doc = json::parse(o.out);
    EXPECT_EQ(doc["schema"], "roofgen.peers.1");
    EXPECT_EQ(doc["peers"][0]["state"], "timed") << o.out;
    EXPECT_LE(doc["peers"][0]["error_over_tolerance"], 1);
    EXPECT_GT(doc["peers"][0]["timings"]["burst"]["cold"]["samples"], 0);
    EXPECT_EQ(doc["versions"]["cublaslt"], "13.1.2");
    EXPECT_EQ(doc["notes"][0], "roofgen has no matrix product of its own yet: the peers alone");
  }
}

TEST_F(Peer, AttentionProductsLieWhereOursDo) {
  const Outcome o = run("--attention 24 20 16 2 3 --mode burst --rounds 1 --rest 0 --json -");
  ASSERT_EQ(o.exit, 0) << o.err << o.out;
  const json docs = json::parse(o.out);
  ASSERT_EQ(docs.size(), 2u);
  for (const json& doc : docs)
    EXPECT_EQ(doc["peers"][0]["state"], "timed") << doc["problem"]["name"] << doc["peers"][0]["reason"];
}

TEST_F(Peer, WrongIsReportedAndNotTimed) {
  const Outcome o = run("--m 40 --n 24 --k 32 --mode burst --rounds 1 --rest 0", "ROOFGEN_FAKE_CUBLASLT=wrong");
  EXPECT_EQ(o.exit, 1);
  EXPECT_NE(o.out.find("cublaslt: wrong: its error is"), std::string::npos) << o.out;
  const Outcome none = run("--m 40 --n 24 --k 32 --mode burst --rounds 1 --rest 0", "ROOFGEN_FAKE_CUBLASLT=nothing");
  EXPECT_EQ(none.exit, 1);
  EXPECT_NE(none.out.find("cublaslt: missing: cuBLASLt has no algorithm for it on this GPU"), std::string::npos)
      << none.out;
}

}  // namespace
