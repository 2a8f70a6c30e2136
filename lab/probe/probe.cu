// Measures the constants of the time model on a Hopper GPU and prints them as one JSON object (docs/evidence/probe.md).
//
//   nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -cudart static \
//        -Xcompiler -static-libstdc++,-static-libgcc -o probe lab/probe/probe.cu
//   ./probe [SECTION ...] > probe.json
//
// Every section runs in a process of its own that is killed when its time is up, so that neither a hanging kernel nor a
// sticky error takes the others along. Products are compared with the host's. Cycles are those of one SM's clock.
#include <signal.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "barriers.cuh"
#include "dsmem.cuh"
#include "launch.cuh"
#include "memory.cuh"
#include "pipes.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

struct SectionOf {
  const char* name;
  void (*run)();
  double seconds;
};

constexpr SectionOf kSections[] = {
    {"barriers", barrierSection, 6}, {"wgmma", wgmmaSection, 12},         {"tma", tmaSection, 12},
    {"pipes", pipeSection, 6},       {"dsmem", clusterSection, 6},        {"launch", launchSection, 8},
    {"memory", memorySection, 6},    {"sustained", sustainedSection, 10},
};
constexpr double kAllSeconds = 56;

void deviceSection() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  int driver = 0, clock = 0;
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0));
  printf(
      "\"device\": {\n    \"name\": \"%s\",\n    \"capability\": %d,\n    \"multiprocessors\": %d,\n"
      "    \"l2_bytes\": %d,\n    \"clock_mhz\": %d,\n    \"driver\": %d\n  }",
      device.name, device.major * 10 + device.minor, device.multiProcessorCount, device.l2CacheSize, clock / 1000,
      driver);
  fflush(stdout);
  if (device.major != 9 || device.minor != 0) {
    fail("needs a GPU of compute capability 9.0, %s has %d.%d", device.name, device.major, device.minor);
  }
}

// The output of `run` in a process of its own; empty, with `why`, if it did not end well in time.
std::string inProcess(void (*run)(), double seconds, std::string& why) {
  int ends[2];
  if (pipe(ends) != 0) {
    fail("pipe: %s", strerror(errno));
  }
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    run();
    fflush(nullptr);
    _exit(0);
  }
  close(ends[1]);
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  char buffer[4096];
  bool late = false;
  for (;;) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    timeval step = {0, 100000};
    const bool ready = select(ends[0] + 1, &set, nullptr, nullptr, &step) > 0;
    if (ready) {
      const ssize_t got = read(ends[0], buffer, sizeof buffer);
      if (got <= 0) {
        break;
      }
      text.append(buffer, static_cast<size_t>(got));
    }
    if (!late && Seconds(std::chrono::steady_clock::now() - begin).count() > seconds) {
      late = true;
      kill(child, SIGKILL);  // what it has written already is read to its end
    }
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  why = late ? "time is up" : WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "failed";
  return text;
}

int main(int count, char** arguments) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i < count; ++i) {
    if (std::none_of(std::begin(kSections), std::end(kSections),
                     [&](const SectionOf& section) { return strcmp(section.name, arguments[i]) == 0; })) {
      fprintf(stderr, "probe: no section '%s'; sections:", arguments[i]);
      for (const SectionOf& section : kSections) {
        fprintf(stderr, " %s", section.name);
      }
      fprintf(stderr, "\n");
      return 2;
    }
  }
  std::string why;
  const std::string device = inProcess(deviceSection, 10, why);
  if (!why.empty()) {
    fprintf(stderr, "probe: no GPU was found that can be measured\n");
    return 3;
  }
  printf("{\n  \"schema\": \"roofgen.probe.1\",\n  %s", device.c_str());
  bool well = true;
  for (const SectionOf& section : kSections) {
    if (count > 1 && std::none_of(arguments + 1, arguments + count,
                                  [&](const char* name) { return strcmp(name, section.name) == 0; })) {
      continue;
    }
    const double left = kAllSeconds - Seconds(std::chrono::steady_clock::now() - begin).count();
    if (left < 2) {
      printf(",\n  \"%s_error\": \"time is up\"", section.name);
      well = false;
      continue;
    }
    std::string text = inProcess(section.run, std::min(left, section.seconds), why);
    if (!why.empty()) {
      // What it wrote before is kept: it ends after a whole value, because values are written whole.
      printf(",\n  \"%s_error\": \"%s\"", section.name, why.c_str());
      well = false;
      if (!text.empty()) {
        text += "\n  }";
      }
    }
    if (!text.empty()) {
      printf(",\n  %s", text.c_str());
    }
    fflush(stdout);
  }
  printf("\n}\n");
  return well ? 0 : 1;
}
