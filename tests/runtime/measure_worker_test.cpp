// The measurement protocol on a GPU worker: both real, only the driver is fake.
#include <gtest/gtest.h>

#include "runtime/measure/measure.h"
#include "tests/runtime/fake_driver.h"

namespace roofgen::measure_worker_test {
namespace {

using testing::fake_binary;
using testing::fill_launch;

TEST(MeasureOnAWorker, OnlyFaultyContendersAreRejectedAndOthersAreRanked) {
  setenv("ROOFGEN_LIBCUDA", ROOFGEN_FAKE_CUDA, 1);
  setenv("ROOFGEN_LIBNVML", ROOFGEN_FAKE_NVML, 1);
  setenv("ROOFGEN_FAKE_NVML_SCRIPT", "", 1);
  setenv("ROOFGEN_FAKE_CUDA_SCRIPT", "hang in mapped", 1);
  std::vector<std::string> warnings;
  GpuWorkerOptions options;
  options.timeout_s = 0.5;
  options.warn = [&](const std::string& line) { warnings.push_back(line); };
  auto gpu = make_gpu_worker(std::move(options));
  ASSERT_TRUE(gpu) << to_string(gpu.error());

  Workload workload;
  workload.buffers = {
      {"to", 4096, [](uint64_t, std::span<std::byte> part) { std::fill(part.begin(), part.end(), std::byte{1}); }}};
  const Binary fill = fake_binary("fill"), other = fake_binary("other"), fault = fake_binary("fault"),
               hang = fake_binary("mapped");
  auto contender = [](const char* name, const Binary& binary, uint32_t ctas) {
    Contender out;
    out.name = name;
    Launch launch = fill_launch({}, 1, 64);
    launch.grid.x = ctas;
    out.kernels = {{&binary, launch}};
    return out;
  };
  std::vector<Contender> contenders = {contender("slow", other, 8), contender("bad", fault, 4),
                                       contender("fast", fill, 4), contender("stuck", hang, 4)};
  TensorMap map;
  map.dims = {64, 16};
  map.stride_bytes = {128};
  map.box = {64, 16};
  contenders[3].kernels[0].launch.args = {{"to", true, 0, 8, std::make_shared<const TensorMap>(map)}};

  Protocol protocol;
  protocol.warmup_s = 0;
  protocol.max_samples = 12;
  protocol.final_rounds = 6;
  auto standings = measure(**gpu, workload, contenders, protocol, {});
  ASSERT_TRUE(standings) << to_string(standings.error());
  EXPECT_FALSE(standings->lost) << standings->lost_because;
  ASSERT_EQ(standings->order, (std::vector<size_t>{2, 0}));
  const auto& outcomes = standings->outcomes;
  ASSERT_TRUE(outcomes[2].measurement && outcomes[2].measurement->cold && outcomes[0].measurement &&
              outcomes[0].measurement->cold);
  EXPECT_NEAR(outcomes[2].measurement->cold->median_ns, 12'000, 10);
  EXPECT_NEAR(outcomes[2].measurement->hot->median_ns, 12'000, 10);
  EXPECT_NEAR(outcomes[0].measurement->cold->median_ns, 24'000, 10);
  EXPECT_NEAR(outcomes[2].measurement->sm_mhz, 1500, 1);
  ASSERT_TRUE(outcomes[1].rejected && outcomes[3].rejected);
  EXPECT_EQ(outcomes[1].rejected->stage, "gpu fault");
  EXPECT_NE(outcomes[1].rejected->reason.find("an illegal memory access was encountered"), std::string::npos);
  EXPECT_EQ(outcomes[3].rejected->stage, "gpu timeout");
  EXPECT_NE(outcomes[3].rejected->reason.find("mapped did not end within 0.5 s"), std::string::npos)
      << outcomes[3].rejected->reason;
  EXPECT_EQ((*gpu)->generation(), 2u);
  EXPECT_EQ(warnings.size(), 2u);
}

}  // namespace
}  // namespace roofgen::measure_worker_test
