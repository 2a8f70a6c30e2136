// Section `launch`: the time of a launch and of an empty CTA, alone and in a graph.
#pragma once

#include "host.cuh"

__global__ void empty() {}

__global__ void emptyShared() {
  extern __shared__ unsigned char raw[];
  if (threadIdx.x == 2000) {
    raw[0] = 1;
  }
}

// About `work` cycles, between waiting for the kernel before and letting the next one start.
__global__ void dependent(long long work) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const long long start = cycles();
  while (cycles() - start < work) {
  }
}

void launchSection() {
  Section section("launch");
  const int sms = multiprocessors();
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  empty<<<1, 32>>>();
  sync("empty");
  section.put("empty_us", eventMs([&] {
                for (int i = 0; i < 1000; ++i) {
                  empty<<<1, 32>>>();
                }
              }));
  const auto graphUs = [&](int kernels, const std::function<void()>& body) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kernels; ++i) {
      body();
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    std::vector<double> runs;
    for (int i = 0; i < 5; ++i) {
      cudaEvent_t start, stop;
      CHECK(cudaEventCreate(&start));
      CHECK(cudaEventCreate(&stop));
      CHECK(cudaEventRecord(start, stream));
      CHECK(cudaGraphLaunch(executable, stream));
      CHECK(cudaEventRecord(stop, stream));
      CHECK(cudaEventSynchronize(stop));
      float ms = 0;
      CHECK(cudaEventElapsedTime(&ms, start, stop));
      runs.push_back(ms * 1e3);
    }
    return median(runs);
  };
  const auto perKernel = [&](const std::function<void()>& body) {
    return (graphUs(220, body) - graphUs(20, body)) / 200;
  };
  section.put("graph_empty_us", perKernel([&] { empty<<<1, 32, 0, stream>>>(); }));
  section.put("graph_empty_all_sms_us", perKernel([&] { empty<<<sms, 1024, 0, stream>>>(); }));
  // How long an SM needs for a CTA that does nothing: small ones, large ones, and one at a time.
  const auto perCta = [&](int block, size_t shared) {
    CHECK(cudaFuncSetAttribute(emptyShared, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
    const auto us = [&](int waves) {
      return graphUs(1, [&] { emptyShared<<<sms * waves, block, shared, stream>>>(); });
    };
    return (us(520) - us(20)) / 500;
  };
  section.put("cta_128_threads_us", perCta(128, 0));
  section.put("cta_384_threads_alone_us", perCta(384, 200 * 1024));
  section.put("cta_1024_threads_us", perCta(1024, 0));
  for (bool programmatic : {false, true}) {
    for (long long work : {0ll, 5000ll}) {
      const double us = perKernel([&] {
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(sms);
        config.blockDim = dim3(256);
        config.stream = stream;
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        config.attrs = &attribute;
        config.numAttrs = programmatic ? 1 : 0;
        CHECK(cudaLaunchKernelEx(&config, dependent, work));
      });
      section.put((programmatic ? "dependent_" : "serial_") + std::to_string(work) + "_cycles_us", us);
    }
  }
}
