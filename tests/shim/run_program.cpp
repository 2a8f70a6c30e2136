// A driver-API program for the tests of `roofgen run`: run_program MODE... does one thing after another. It needs no
// toolkit: its kernels are PTX, and it finds libcuda.so.1 as any program does.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

/// step: y[i] += 1 for i < n. spread: y[i] = i % 32 through shared memory, where the second warp reads values of the
/// first one without a barrier, in a function of a header of the toolkit.
const char* const kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.file 1 "step.cu"
.file 2 "/usr/local/cuda/include/sm_60_atomic_functions.hpp"
.visible .entry _Z4stepPji(.param .u64 p_y, .param .u32 p_n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p_y];
  ld.param.u32 %r1, [p_n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r2, %r3, %r4, %r2;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra $done;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  .loc 1 7 3
  ld.global.u32 %r5, [%rd3];
  add.s32 %r5, %r5, 1;
  st.global.u32 [%rd3], %r5;
$done:
  ret;
}
.visible .entry spread(.param .u64 p_y)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd1, [p_y];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  shl.b32 %r3, %r1, 2;
  add.s32 %r4, %r2, %r3;
  st.shared.u32 [%r4], %r1;
  and.b32 %r3, %r3, 124;
  add.s32 %r4, %r2, %r3;
  .loc 1 20 5
  .loc 2 384 3, function_name $name, inlined_at 1 20 5
  ld.shared.u32 %r4, [%r4];
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
  ret;
}
)";

/// y[i] = 7, which thread 0 hands to all through an mbarrier; they look again until it has arrived.
const char* const kPatientPtx = R"(.version 8.0
.target sm_90
.address_size 64
.file 1 "patient.cu"
.visible .entry patient(.param .u64 p_y)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  .shared .align 8 .b8 bar[8];
  .shared .align 4 .b8 word[4];
  ld.param.u64 %rd1, [p_y];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $READY;
  mbarrier.init.shared::cta.b64 [bar], 1;
$READY:
  bar.sync 0;
  @%p1 bra $WAIT;
  mov.u32 %r2, 7;
  st.shared.u32 [word], %r2;
  mbarrier.arrive.shared::cta.b64 %rd4, [bar];
$WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
  @!%p2 bra $WAIT;
  .loc 1 10 3
  ld.shared.u32 %r3, [word];
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r3;
  ret;
}
)";

/// careful and careless: y[i] += 1 behind and in front of a wait for the kernel before.
const char* const kDependentPtx = R"(.version 8.0
.target sm_90
.address_size 64
.file 1 "dependent.cu"
.visible .entry careful(.param .u64 p_y)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p_y];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  griddepcontrol.wait;
  ld.global.u32 %r2, [%rd3];
  add.s32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}
.visible .entry careless(.param .u64 p_y)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p_y];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  .loc 1 5 3
  ld.global.u32 %r2, [%rd3];
  griddepcontrol.wait;
  add.s32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

void* library = nullptr;
template <class... Args>
void cu(const char* symbol, Args... args) {
  void* at = dlsym(library, symbol);
  int (*f)(Args...) = nullptr;
  std::memcpy(&f, &at, sizeof f);
  const int status = f ? f(args...) : -1;
  if (status) std::printf("%s: status %d\n", symbol, status);
}

void *context = nullptr, *module = nullptr;
unsigned long long y = 0;
constexpr int kElements = 64;

void start() {
  if (library) return;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) std::exit((std::printf("%s\n", dlerror()), 9));
  cu("cuInit", 0u);
  cu("cuDevicePrimaryCtxRetain", &context, 0);
  cu("cuCtxSetCurrent", context);
  cu("cuModuleLoadData", &module, static_cast<const void*>(kPtx));
  cu("cuMemAlloc_v2", &y, size_t{kElements} * 4);
  cu("cuMemsetD32_v2", y, 0u, size_t{kElements});
}

void launch(const char* kernel, int n, unsigned ctas, void* stream = nullptr) {
  start();
  void* function = nullptr;
  void* args[] = {&y, &n};
  cu("cuModuleGetFunction", &function, module, kernel);
  cu("cuLaunchKernel", function, ctas, 1u, 1u, 64u, 1u, 1u, 0u, stream, static_cast<void**>(args),
     static_cast<void**>(nullptr));
}
/// Two launches in streams that do not block, with a wait of the host between or without.
void launch_beside(bool waits) {
  start();
  cu("cuCtxSynchronize");
  for (int i = 0; i < 2; ++i) {
    void* stream = nullptr;
    cu("cuStreamCreate", &stream, 1u);
    launch("_Z4stepPji", kElements, 1, stream);
    if (waits) cu("cuStreamSynchronize", stream);
  }
}
/// CUlaunchAttribute and CUlaunchConfig.
struct Attribute {
  int id;
  char padding[4];
  int value[16];
};
struct Config {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  Attribute* attributes;
  unsigned attribute_count;
};
/// Launches a kernel of kDependentPtx that may begin before the work in front of it has ended.
void launch_dependent(const char* kernel) {
  start();
  static void* dependent = nullptr;
  if (!dependent) cu("cuModuleLoadData", &dependent, static_cast<const void*>(kDependentPtx));
  void* function = nullptr;
  void* args[] = {&y};
  cu("cuModuleGetFunction", &function, dependent, kernel);
  Attribute overlap{6, {}, {1}};  // PROGRAMMATIC_STREAM_SERIALIZATION
  const Config config{{1, 1, 1}, {64, 1, 1}, 0, nullptr, &overlap, 1};
  cu("cuLaunchKernelEx", &config, function, static_cast<void**>(args), static_cast<void**>(nullptr));
}
/// `hasty`: they look once.
void launch_waiting(bool hasty) {
  start();
  std::string ptx = kPatientPtx;
  const std::string again = "@!%p2 bra $WAIT;";
  if (hasty) ptx.erase(ptx.find(again), again.size());
  void *waiting = nullptr, *function = nullptr, *args[] = {&y};
  cu("cuModuleLoadData", &waiting, static_cast<const void*>(ptx.c_str()));
  cu("cuModuleGetFunction", &function, waiting, "patient");
  cu("cuLaunchKernel", function, 1u, 1u, 1u, 64u, 1u, 1u, 0u, static_cast<void*>(nullptr), static_cast<void**>(args),
     static_cast<void**>(nullptr));
  unsigned out[kElements] = {};
  cu("cuMemcpyDtoH_v2", static_cast<void*>(out), y, sizeof out);
  std::printf("%u %u\n", out[0], out[kElements - 1]);
}
void wait_for_all() { cu("cuCtxSynchronize"); }

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string mode = argv[i];
    if (mode == "step") launch("_Z4stepPji", kElements, 1), wait_for_all();
    if (mode == "race") launch("spread", 0, 1), wait_for_all();
    if (mode == "careful" || mode == "careless") launch_dependent(argv[i]);
    if (mode == "patient" || mode == "hasty") launch_waiting(mode == "hasty");
    if (mode == "clear") start(), cu("cuMemsetD32Async", y, 0u, size_t{kElements}, static_cast<void*>(nullptr));
    if (mode == "sync") wait_for_all();
    if (mode == "unordered" || mode == "ordered") launch_beside(mode == "ordered");
    if (mode == "beyond") launch("_Z4stepPji", kElements + 1, 2), wait_for_all();
    if (mode == "forget") launch("_Z4stepPji", kElements, 1);
    if (mode == "fill")  // the copy takes the host's bytes at once, and runs later
      start(), cu("cuMemcpyHtoDAsync_v2", y, static_cast<const void*>(kPtx), size_t{4}, static_cast<void*>(nullptr));
    if (mode == "load") library = dlopen("libcuda.so.1", RTLD_NOW);
    if (mode == "array") start(), cu("cuMipmappedArrayCreate");
    if (mode == "abort") std::abort();
    if (mode == "kill") std::raise(SIGKILL);
    if (mode == "_exit") _exit(0);
    if (mode.starts_with("exit=")) return std::atoi(mode.c_str() + 5);
    if (mode == "sleep") usleep(300000);
    if (mode == "wait") std::printf("waiting\n"), std::fflush(stdout), pause();
    if (mode == "echo") {
      std::printf("out\n");
      std::fprintf(stderr, "err\n");
      for (int c; (c = std::getchar()) != EOF;) std::putchar(c);
    }
    if (mode.starts_with("open=") && !dlopen(mode.c_str() + 5, RTLD_NOW)) return std::printf("%s\n", dlerror()), 8;
    if (mode == "fork" || mode == "exec") {  // a child does the rest
      const pid_t child = fork();
      if (child == 0 && mode == "exec") execv("/proc/self/exe", argv + i);  // argv[i] is the name
      if (child == 0) continue;
      int status = 0;
      waitpid(child, &status, 0);
      return WEXITSTATUS(status);
    }
  }
  std::fflush(stdout);
  return 0;
}
