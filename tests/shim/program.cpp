// A driver-API program without any knowledge of roofgen; it finds libcuda.so.1 like any other program. Vector add,
// saxpy, a reduction through shared memory and a transpose, in CUDA C++ compiled by NVRTC. On request also an
// out-of-bounds access and calls that the simulated driver lacks. Prints one line per check.
#include <cuda.h>
#include <dlfcn.h>
#include <nvrtc.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

const char* const kSource = R"(
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void saxpy(float s, const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = s * x[i] + y[i];
}
extern "C" __global__ void sum(const float* x, float* out, int n) {
  extern __shared__ float part[];
  float v = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[i];
  part[threadIdx.x] = v;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = part[0];
}
extern "C" __global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
)";

// Cooperating CTAs: a grid-wide barrier, and clusters with distributed shared memory.
const char* const kTogether = R"(
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void rotate(int* x, int n) {  // x[i] of the next CTA, for every CTA
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int v = x[(i + blockDim.x) % n];
  cg::this_grid().sync();
  x[i] = v;
}
extern "C" __global__ void __cluster_dims__(4, 1, 1) ring(const int* x, int* y, int* ranks) {
  __shared__ int mine[64];
  cg::cluster_group cluster = cg::this_cluster();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  mine[threadIdx.x] = x[i];
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  const int* theirs = cluster.map_shared_rank(mine, next);
  y[i] = theirs[threadIdx.x];
  atomicAdd(&cluster.map_shared_rank(mine, next)[threadIdx.x], 1000);
  cluster.sync();
  if (threadIdx.x == 0) ranks[blockIdx.x] = cluster.block_rank() + 10 * cluster.num_blocks() + 100 * (mine[5] == x[i + 5] + 1000);
}
extern "C" __global__ void alone(int* out) {  // the cluster's size is the launch's
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) out[blockIdx.x + gridDim.x * blockIdx.y] = cluster.block_rank() + 10 * cluster.num_blocks();
  cluster.sync();
}
)";

// Tensor copies of tiles: 16 x 32 words of x go through shared memory, with a 128-byte swizzle, to the transposed
// position in y.
const char* const kTiles = R"(
struct alignas(64) Map { char bytes[128]; };
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
extern "C" __global__ void turn(const __grid_constant__ Map x, const __grid_constant__ Map y) {
  __shared__ alignas(1024) float in[16][32];
  __shared__ alignas(1024) float out[32][16];
  __shared__ alignas(8) unsigned long long bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&bar)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("prefetch.tensormap [%0];" :: "l"(&x) : "memory");
  }
  __syncthreads();
  const int row = blockIdx.y * 16, col = blockIdx.x * 32;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(&bar)), "r"(int(sizeof in)) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(at(in)), "l"(&x), "r"(col), "r"(row), "r"(at(&bar)) : "memory");
  }
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at(&bar)) : "memory");
  for (int i = threadIdx.x; i < 512; i += blockDim.x) {
    const int r = i / 32, c = i % 32;
    out[c][r] = in[r][(c / 4 ^ r % 8) * 4 + c % 4];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" :: "l"(&y), "r"(row), "r"(col), "r"(at(out)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
)";

// 16 pixels of 4 words, from the corner of a filter 3 pixels wide, in the order of a convolution.
const char* const kColumn = R"(
struct alignas(64) Map { char bytes[128]; };
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
extern "C" __global__ void column(const __grid_constant__ Map x, float* out) {
  __shared__ alignas(128) float in[16][4];
  __shared__ alignas(8) unsigned long long bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&bar)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(&bar)), "r"(int(sizeof in)) : "memory");
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {0, -1, 0}], [%2], {%3};"
                 :: "r"(at(in)), "l"(&x), "r"(at(&bar)), "h"(static_cast<unsigned short>(2)) : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at(&bar)) : "memory");
  for (int i = threadIdx.x; i < 64; i += blockDim.x) out[i] = in[i / 4][i % 4];
}
)";

void* library = nullptr;
template <class F>
F* entry(const char* symbol) {
  void* at = dlsym(library, symbol);
  if (!at) std::printf("missing %s\n", symbol);
  F* out = nullptr;
  std::memcpy(&out, &at, sizeof at);
  return out;
}
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define CU(name) entry<decltype(name)>(TEXT(name))
int failures = 0;
void check(bool good, const char* what) {
  std::printf("%s %s\n", good ? "ok" : "FAILED", what);
  failures += !good;
}
bool ok(CUresult r) {
  if (r != CUDA_SUCCESS) std::printf("status %d\n", static_cast<int>(r));
  return r == CUDA_SUCCESS;
}

std::string compile(const char* source, const char* arch) {
  nvrtcProgram program = nullptr;
  nvrtcCreateProgram(&program, source, "program.cu", 0, nullptr, nullptr);
  const char* options[] = {arch, "-I" ROOFGEN_CUDA_INCLUDE, "-I" ROOFGEN_CUDA_INCLUDE "/cccl", "-std=c++17"};
  if (nvrtcCompileProgram(program, 4, options) != NVRTC_SUCCESS) {
    size_t size = 0;
    nvrtcGetProgramLogSize(program, &size);
    std::string log(size, '\0');
    nvrtcGetProgramLog(program, log.data());
    std::printf("%s\n", log.c_str());
    return "";
  }
  size_t size = 0;
  nvrtcGetPTXSize(program, &size);
  std::string ptx(size, '\0');
  nvrtcGetPTX(program, ptx.data());
  nvrtcDestroyProgram(&program);
  return ptx;
}

}  // namespace

int main(int argc, char** argv) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return std::printf("no libcuda.so.1: %s\n", dlerror()), 3;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  check(CU(cuDeviceGet)(&device, 0) == CUDA_ERROR_NOT_INITIALIZED, "nothing before cuInit");
  check(ok(CU(cuInit)(0)) && ok(CU(cuDeviceGet)(&device, 0)), "init");
  CUdeviceptr early = 0;
  check(CU(cuMemAlloc)(&early, 4) == CUDA_ERROR_INVALID_CONTEXT, "nothing without a context");
  check(ok(CU(cuDevicePrimaryCtxRetain)(&context, device)) && ok(CU(cuCtxSetCurrent)(context)), "context");
  const std::string ptx = compile(kSource, "-arch=compute_80");
  check(!ptx.empty() && ok(CU(cuModuleLoadData)(&module, ptx.c_str())), "module");
  check(CU(cuModuleLoadData)(&module, "\177ELF\2\1\1") == CUDA_ERROR_NO_BINARY_FOR_GPU, "a CUBIN is refused");
  const auto function = [&](const char* name) {
    CUfunction f = nullptr;
    check(ok(CU(cuModuleGetFunction)(&f, module, name)), name);
    return f;
  };
  check(ok(CU(cuModuleLoadData)(&module, ptx.c_str())), "module again");

  constexpr int n = 1024, side = 64;
  std::vector<float> a(4096), b(4096), c(4096);
  for (int i = 0; i < 4096; ++i) a[i] = static_cast<float>(i % 37), b[i] = static_cast<float>(i % 11);
  CUdeviceptr da = 0, db = 0, dc = 0;
  check(ok(CU(cuMemAlloc)(&da, 16384)) && ok(CU(cuMemAlloc)(&db, 16384)) && ok(CU(cuMemAlloc)(&dc, 16384)), "memory");
  CU(cuMemcpyHtoD)(da, a.data(), 16384);
  CU(cuMemcpyHtoD)(db, b.data(), 16384);
  CUstream stream = nullptr;
  CUevent start = nullptr, stop = nullptr;
  check(ok(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING)) && ok(CU(cuEventCreate)(&start, 0)) &&
            ok(CU(cuEventCreate)(&stop, 0)),
        "stream");
  auto* launch = CU(cuLaunchKernel);
  const auto back = [&] {
    CU(cuMemcpyDtoHAsync)(c.data(), dc, 16384, stream);
    return ok(CU(cuStreamSynchronize)(stream));
  };
  bool same = true;

  int count = n;
  void* vadd[] = {&da, &db, &dc, &count};
  CU(cuEventRecord)(start, stream);
  check(ok(launch(function("vadd"), 4, 1, 1, 256, 1, 1, 0, stream, vadd, nullptr)), "vadd runs");
  CU(cuEventRecord)(stop, stream);
  check(CU(cuEventQuery)(stop) == CUDA_ERROR_NOT_READY, "work is queued");
  check(back(), "vadd is done");
  for (int i = 0; i < n; ++i) same = same && c[i] == a[i] + b[i];
  check(same, "vadd is right");
  float ms = 0;
  check(CU(cuEventQuery)(stop) == CUDA_SUCCESS && ok(CU(cuEventElapsedTime)(&ms, start, stop)) && ms > 0, "events");

  float scale = 3;
  CU(cuMemcpyDtoD)(dc, db, 16384);
  CU(cuStreamSynchronize)(nullptr);  // neither the host nor a non-blocking stream waits for it otherwise
  void* saxpy[] = {&scale, &da, &dc, &count};
  check(ok(launch(function("saxpy"), 2, 1, 1, 128, 1, 1, 0, stream, saxpy, nullptr)) && back(), "saxpy runs");
  for (int i = 0; i < n; ++i) same = same && c[i] == 3 * a[i] + b[i];
  check(same, "saxpy is right");

  void* sum[] = {&da, &dc, &count};
  check(ok(launch(function("sum"), 1, 1, 1, 256, 1, 1, 256 * 4, stream, sum, nullptr)) && back(), "sum runs");
  float expected = 0;
  for (int i = 0; i < n; ++i) expected += a[i];
  check(c[0] == expected, "sum is right");
  check(launch(function("sum"), 1, 1, 1, 256, 1, 1, 64 * 1024, stream, sum, nullptr) == CUDA_ERROR_INVALID_VALUE,
        "64 KiB need to be asked for");

  int width = side;
  void* turn[] = {&da, &dc, &width};
  const CUfunction transpose = function("transpose");
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  check(ok(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)), "capture");
  check(ok(launch(transpose, 2, 2, 1, 32, 32, 1, 0, stream, turn, nullptr)), "transpose is captured");
  check(ok(CU(cuStreamEndCapture)(stream, &graph)) && ok(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0)), "graph");
  check(ok(CU(cuGraphLaunch)(exec, stream)) && back(), "transpose runs");
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) same = same && c[y * side + x] == a[x * side + y];
  check(same, "transpose is right");

  CUmodule together = nullptr;
  const std::string more = compile(kTogether, "-arch=compute_90");
  check(!more.empty() && ok(CU(cuModuleLoadData)(&together, more.c_str())), "a module for sm_90");
  const auto other = [&](const char* name) {
    CUfunction f = nullptr;
    check(ok(CU(cuModuleGetFunction)(&f, together, name)), name);
    return f;
  };
  std::vector<int> ints(4096), got(4096);
  for (int i = 0; i < 4096; ++i) ints[i] = i * 7 % 1009;
  const auto ints_back = [&](CUdeviceptr from) { return ok(CU(cuMemcpyDtoH)(got.data(), from, 16384)); };
  CU(cuMemcpyHtoD)(da, ints.data(), 16384);
  int elements = 64 * 16;
  void* rotate[] = {&da, &elements};
  check(ok(CU(cuLaunchCooperativeKernel)(other("rotate"), 16, 1, 1, 64, 1, 1, 0, stream, rotate)) &&
            ok(CU(cuStreamSynchronize)(stream)) && ints_back(da),
        "a cooperative launch runs");
  for (int i = 0; i < elements; ++i) same = same && got[i] == ints[(i + 64) % elements];
  check(same, "its grid waited for itself");
  check(CU(cuLaunchCooperativeKernel)(other("rotate"), 132 * 32 + 1, 1, 1, 64, 1, 1, 0, stream, rotate) ==
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        "no more CTAs than the device holds");

  CU(cuMemcpyHtoD)(da, ints.data(), 16384);
  CU(cuMemsetD8)(dc, 0, 16384);
  CU(cuStreamSynchronize)(nullptr);
  void* ring[] = {&da, &db, &dc};
  check(ok(launch(other("ring"), 8, 1, 1, 64, 1, 1, 0, stream, ring, nullptr)) && ok(CU(cuStreamSynchronize)(stream)) &&
            ints_back(db),
        "clusters run, of the size that the kernel has");
  for (int i = 0; i < 512; ++i) same = same && got[i] == ints[i / 256 * 256 + (i + 64) % 256];
  check(same, "their CTAs see each other's shared memory");
  ints_back(dc);
  for (int i = 0; i < 8; ++i) same = same && got[i] == 140 + i % 4;
  check(same, "and change it");
  check(launch(other("ring"), 6, 1, 1, 64, 1, 1, 0, stream, ring, nullptr) == CUDA_ERROR_INVALID_VALUE,
        "6 CTAs are no clusters of 4");
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {2, 2, 1};
  CUlaunchConfig config{};
  config.gridDimX = 4, config.gridDimY = 2, config.gridDimZ = 1, config.blockDimX = 32,
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream, config.attrs = &cluster, config.numAttrs = 1;
  void* alone[] = {&dc};
  check(ok(CU(cuLaunchKernelEx)(&config, other("alone"), alone, nullptr)) && ok(CU(cuStreamSynchronize)(stream)) &&
            ints_back(dc),
        "clusters run, of the size that the launch has");
  const int ranks[] = {40, 41, 40, 41, 42, 43, 42, 43};
  for (int i = 0; i < 8; ++i) same = same && got[i] == ranks[i];
  check(same, "their ranks go x first");
  CUlaunchAttribute preferred[] = {cluster, cluster};
  preferred[1].id = static_cast<CUlaunchAttributeID>(11);  // the preferred size, of which none needs to run
  preferred[1].value.clusterDim = {4, 2, 1};
  config.attrs = preferred, config.numAttrs = 2;
  check(ok(CU(cuLaunchKernelEx)(&config, other("alone"), alone, nullptr)) && ok(CU(cuStreamSynchronize)(stream)) &&
            ints_back(dc),
        "a larger cluster may be preferred");
  for (int i = 0; i < 8; ++i) same = same && got[i] == ranks[i];
  config.attrs = &cluster, config.numAttrs = 1;
  cluster.value.clusterDim = {4, 4, 1};
  config.gridDimY = 4;
  check(CU(cuLaunchKernelEx)(&config, other("alone"), alone, nullptr) == CUDA_ERROR_INVALID_CLUSTER_SIZE,
        "16 CTAs are no portable cluster");
  check(ok(CU(cuFuncSetAttribute)(other("alone"), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)) &&
            ok(CU(cuLaunchKernelEx)(&config, other("alone"), alone, nullptr)),
        "but may be asked for");
  int clusters = 0;
  check(ok(CU(cuOccupancyMaxActiveClusters)(&clusters, other("alone"), &config)) && clusters > 0, "clusters at once");

  // 40 x 70 words, not a multiple of the tile; the row pitch is 72.
  CUmodule tiles = nullptr;
  const std::string engine = compile(kTiles, "-arch=compute_90");
  check(!engine.empty() && ok(CU(cuModuleLoadData)(&tiles, engine.c_str())), "a module with tensor copies");
  const auto map = [&](CUdeviceptr base, cuuint64_t wide, cuuint64_t high, cuuint64_t pitch, cuuint32_t box_wide,
                       cuuint32_t box_high, CUtensorMapSwizzle swizzle, CUtensorMap& out) {
    const cuuint64_t dims[] = {wide, high}, strides[] = {pitch * 4};
    const cuuint32_t box[] = {box_wide, box_high}, ones[] = {1, 1};
    void* address = nullptr;
    std::memcpy(&address, &base, sizeof base);
    return CU(cuTensorMapEncodeTiled)(&out, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, address, dims, strides, box, ones,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CUtensorMap x_map, y_map;
  CUdeviceptr big_x = 0, big_y = 0;
  std::vector<float> plain(40 * 72), turned(70 * 40);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i);
  check(ok(CU(cuMemAlloc)(&big_x, plain.size() * 4)) && ok(CU(cuMemAlloc)(&big_y, turned.size() * 4)) &&
            ok(CU(cuMemcpyHtoD)(big_x, plain.data(), plain.size() * 4)),
        "memory for tiles");
  check(ok(map(big_x, 70, 40, 72, 32, 16, CU_TENSOR_MAP_SWIZZLE_128B, x_map)) &&
            ok(map(big_y, 40, 70, 40, 16, 32, CU_TENSOR_MAP_SWIZZLE_NONE, y_map)),
        "tensor maps");
  check(map(big_x, 70, 40, 70, 32, 16, CU_TENSOR_MAP_SWIZZLE_NONE, y_map) == CUDA_ERROR_INVALID_VALUE,
        "rows 280 bytes apart make no map");
  check(map(big_x, 70, 40, 72, 64, 16, CU_TENSOR_MAP_SWIZZLE_128B, y_map) == CUDA_ERROR_INVALID_VALUE,
        "boxes of 256 bytes no swizzle of 128");
  check(ok(map(big_y, 40, 70, 40, 16, 32, CU_TENSOR_MAP_SWIZZLE_NONE, y_map)), "a tensor map again");
  void* both_maps[] = {&x_map, &y_map};
  CUfunction turn_tiles = nullptr;
  check(ok(CU(cuModuleGetFunction)(&turn_tiles, tiles, "turn")) &&
            ok(launch(turn_tiles, 3, 3, 1, 64, 1, 1, 0, stream, both_maps, nullptr)) &&
            ok(CU(cuStreamSynchronize)(stream)),
        "tensor copies run");
  CU(cuMemcpyDtoH)(turned.data(), big_y, turned.size() * 4);
  for (int r = 0; r < 40; ++r)
    for (int k = 0; k < 70; ++k) same = same && turned[k * 40 + r] == plain[r * 72 + k];
  check(same, "tiles land where they should");

  // Rows of 6 pixels; the filter's corner goes from -1 to 4, and its last column is 2 to the right.
  const auto images = [&](int low, int high, cuuint32_t pixels, CUtensorMap& out) {
    const cuuint64_t dims[] = {4, 6, 10}, strides[] = {16, 96};
    const cuuint32_t ones[] = {1, 1, 1};
    void* address = nullptr;
    std::memcpy(&address, &big_x, sizeof big_x);
    return CU(cuTensorMapEncodeIm2col)(&out, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, address, dims, strides, &low, &high, 4,
                                       pixels, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                       CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CUtensorMap image_map;
  check(images(-1, -1, 1025, image_map) == CUDA_ERROR_INVALID_VALUE, "columns of 1025 pixels make no map");
  check(images(2, -4, 16, image_map) == CUDA_ERROR_INVALID_VALUE, "nor a box without a pixel");
  check(ok(images(-1, -1, 16, image_map)), "an im2col map");
  CUmodule columns = nullptr;
  CUfunction take_column = nullptr;
  const std::string im2col = compile(kColumn, "-arch=compute_90");
  void* of_column[] = {&image_map, &big_y};
  check(!im2col.empty() && ok(CU(cuModuleLoadData)(&columns, im2col.c_str())) &&
            ok(CU(cuModuleGetFunction)(&take_column, columns, "column")) &&
            ok(launch(take_column, 1, 1, 1, 32, 1, 1, 0, stream, of_column, nullptr)) &&
            ok(CU(cuStreamSynchronize)(stream)),
        "an im2col copy runs");
  CU(cuMemcpyDtoH)(turned.data(), big_y, 64 * 4);
  for (int pixel = 0; pixel < 16; ++pixel)
    for (int channel = 0; channel < 4; ++channel) {
      const int w = pixel % 6 - 1 + 2, image = pixel / 6;
      same = same && turned[pixel * 4 + channel] == (w < 6 ? plain[(image * 6 + w) * 4 + channel] : 0);
    }
  check(same, "its pixels are the filter's last column");

  CUdeviceptr managed = 0;
  check(ok(CU(cuMemAllocManaged)(&managed, n * 4, CU_MEM_ATTACH_GLOBAL)), "managed memory");
  float* shared = nullptr;
  std::memcpy(&shared, &managed, sizeof managed);
  check(shared[n - 1] == 0, "is zero at first");
  for (int i = 0; i < n; ++i) shared[i] = static_cast<float>(i);
  void* add_to_it[] = {&managed, &db, &managed, &count};
  check(ok(launch(function("vadd"), 4, 1, 1, 256, 1, 1, 0, stream, add_to_it, nullptr)) &&
            ok(CU(cuStreamSynchronize)(stream)),
        "a kernel writes what the host wrote");
  CU(cuMemcpyDtoH)(plain.data(), db, n * 4);
  for (int i = 0; i < n; ++i) same = same && shared[i] == static_cast<float>(i) + plain[i];
  check(same, "and the host reads it");
  check(ok(CU(cuMemFree)(managed)), "managed memory is freed");
  void* found = nullptr;
  CUdriverProcAddressQueryResult how{};
  auto* look_up = CU(cuGetProcAddress);
  check(ok(look_up("cuMemAlloc", &found, 13000, 0, &how)) && found == dlsym(library, "cuMemAlloc_v2"),
        "cuGetProcAddress");
  check(look_up("cuMemCharm", &found, 13000, 0, &how) == CUDA_SUCCESS && !found &&
            how == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
        "an entry point that is not there");

  std::string line;
  if (std::FILE* maps = std::fopen("/proc/self/maps", "r")) {
    char text[4096];
    bool one = true;
    while (std::fgets(text, sizeof text, maps)) {
      if (!std::strstr(text, "libcuda.so")) continue;
      const std::string file = std::strchr(text, '/') ? std::strchr(text, '/') : "";
      one = one && (line.empty() || line == file);
      line = file;
    }
    check(one && !line.empty(), "one library serves libcuda");
    std::fclose(maps);
  }
  if (!line.empty()) line.pop_back();  // removes the line end
  std::printf("served by %s%s\n", line.c_str(), dlsym(library, "roofgen_simulated_driver") ? " (simulated)" : "");

  if (argc > 1 && std::string(argv[1]) == "fault") {
    CUdeviceptr outside = 64;
    void* wrong[] = {&outside, &db, &dc, &count};
    check(ok(launch(function("vadd"), 1, 1, 1, 32, 1, 1, 0, stream, wrong, nullptr)), "the wrong launch is queued");
    check(CU(cuStreamSynchronize)(stream) == CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds is found");
    check(CU(cuMemAlloc)(&managed, 4) == CUDA_ERROR_ILLEGAL_ADDRESS, "and stays");
    return failures ? 1 : 0;
  }
  CU(cuGraphExecDestroy)(exec);
  CU(cuGraphDestroy)(graph);
  CU(cuStreamDestroy)(stream);
  check(ok(CU(cuMemFree)(da)) && CU(cuMemFree)(da) == CUDA_ERROR_INVALID_VALUE, "memory is freed once");
  check(ok(CU(cuModuleUnload)(module)) && ok(CU(cuDevicePrimaryCtxRelease)(device)), "the end");
  return failures ? 1 : 0;
}
