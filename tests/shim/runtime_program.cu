// A program of the runtime API for the tests of the simulated runtime: runtime_program MODE. It is linked with
// -cudart shared, and has kernels in two translation units.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <string>
#include <vector>

int runtime_other(int value);  // runtime_other.cu
void runtime_textures();       // runtime_textures.cu
void runtime_stale_texture();

static int failures = 0;
void check(bool good, const char* what) {
  std::printf("%s %s\n", good ? "ok" : "FAILED", what);
  failures += !good;
}

namespace {

bool ok(cudaError_t error) {
  if (error != cudaSuccess) std::printf("%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  return error == cudaSuccess;
}

__constant__ float factors[4];
__device__ int launches;
__managed__ int counter = 5;

template <class T>
__global__ void scale(const T* x, T* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * static_cast<T>(factors[i % 4]);
  if (i == 0) ++launches;
}
__global__ void sum(const int* x, int* out) {
  extern __shared__ int part[];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = part[0];
}
__global__ void rotate(int* x, int n) {
  const int i = static_cast<int>(cooperative_groups::this_grid().thread_rank());
  const int next = x[(i + 64) % n];
  cooperative_groups::this_grid().sync();
  x[i] = next;
}
__global__ void count() { atomicAdd(&counter, 1); }
/// Warp 0 reads values that other warps write, without a barrier.
__global__ void without_barrier(int* out) {
  __shared__ int part[64];
  part[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = part[63 - threadIdx.x];
}
__global__ void numbers(int* x) { x[threadIdx.x] = threadIdx.x; }

template <class T>
struct Device {
  explicit Device(size_t n) : count(n) { check(ok(cudaMalloc(&at, n * sizeof(T))), "cudaMalloc"); }
  ~Device() { cudaFree(at); }
  void set(const std::vector<T>& values) { cudaMemcpy(at, values.data(), count * sizeof(T), cudaMemcpyHostToDevice); }
  std::vector<T> get() const {
    std::vector<T> values(count);
    cudaMemcpy(values.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }
  size_t count;
  T* at = nullptr;
};

void properties() {
  int devices = 0, device = -1, attribute = 0, blocks = 0, threads = 0;
  cudaDeviceProp p;
  check(ok(cudaGetDeviceCount(&devices)) && devices == 1 && ok(cudaSetDevice(0)) && ok(cudaGetDevice(&device)) &&
            device == 0,
        "one device");
  check(ok(cudaGetDeviceProperties(&p, 0)) && std::string(p.name).find("NVIDIA") == 0 && p.warpSize == 32 &&
            p.maxThreadsPerBlock == 1024 && p.maxThreadsDim[2] == 64 && p.maxGridSize[1] == 65535 && p.major >= 8 &&
            p.multiProcessorCount > 0 && p.regsPerMultiprocessor == 65536 && p.totalGlobalMem > size_t{1} << 30,
        "properties");
  check(ok(cudaDeviceGetAttribute(&attribute, cudaDevAttrMultiProcessorCount, 0)) && attribute == p.multiProcessorCount,
        "attributes");
  cudaFuncAttributes a;
  check(ok(cudaFuncGetAttributes(&a, without_barrier)) && a.sharedSizeBytes == 256 && a.maxThreadsPerBlock == 1024 &&
            a.maxDynamicSharedSizeBytes == 48 * 1024 - 256,
        "attributes of a kernel");
  check(ok(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, sum)) && blocks > 0 && threads > 0, "occupancy");
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult how;
  check(ok(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, cudaEnableDefault, &how)) && entry &&
            how == cudaDriverEntryPointSuccess,
        "entry points of the driver");
}

void kernels() {
  constexpr int n = 1000;
  const float host_factors[] = {1, 2, 3, 4};
  std::vector<float> in(n), expected(n);
  for (int i = 0; i < n; ++i) in[i] = static_cast<float>(i), expected[i] = in[i] * host_factors[i % 4];
  Device<float> x(n), y(n);
  x.set(in);
  check(ok(cudaMemcpyToSymbol(factors, host_factors, sizeof host_factors)), "a constant is set");
  cudaStream_t stream;
  cudaEvent_t start, stop;
  check(ok(cudaStreamCreate(&stream)) && ok(cudaEventCreate(&start)) && ok(cudaEventCreate(&stop)), "stream, events");
  cudaEventRecord(start, stream);
  scale<<<4, 256, 0, stream>>>(x.at, y.at, n);
  cudaEventRecord(stop, stream);
  check(ok(cudaGetLastError()) && cudaEventQuery(stop) == cudaErrorNotReady, "the launch is queued");
  cudaGetLastError();
  float ms = 0;
  check(ok(cudaEventSynchronize(stop)) && ok(cudaEventElapsedTime(&ms, start, stop)) && ms > 0, "and runs");
  check(y.get() == expected, "a template is right");
  int count = 0;
  check(ok(cudaMemcpyFromSymbol(&count, launches, sizeof count)) && count == 1, "a variable is read");
  check(runtime_other(20) == 41, "the other file has its own kernel and constant");

  std::vector<int> ints(512);
  for (int i = 0; i < 512; ++i) ints[i] = i;
  Device<int> z(512), total(1);
  z.set(ints);
  sum<<<1, 512, 512 * sizeof(int)>>>(z.at, total.at);
  check(total.get()[0] == 511 * 256, "dynamic shared memory");
  sum<<<1, 512, 60000>>>(z.at, total.at);
  check(cudaGetLastError() == cudaErrorInvalidValue, "more than 48 KiB must be asked for");
  check(ok(cudaFuncSetAttribute(sum, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000)), "which is possible");
  sum<<<1, 512, 60000>>>(z.at, total.at);
  check(ok(cudaDeviceSynchronize()), "then it runs");
  int all = 512;
  int* at = z.at;
  void* args[] = {&at, &all};
  check(ok(cudaLaunchCooperativeKernel(rotate, 8, 64, args)) && z.get()[0] == 64 && z.get()[511] == 63,
        "a cooperative launch");
  sum<<<1, 2048>>>(z.at, total.at);
  check(cudaPeekAtLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaErrorInvalidConfiguration &&
            cudaGetLastError() == cudaSuccess,
        "a block of 2048 threads is an error, once");

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamCaptureStatus capture;
  unsigned long long id = 0;
  check(ok(cudaStreamGetCaptureInfo(stream, &capture, &id)) && capture == cudaStreamCaptureStatusNone, "no capture");
  check(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)), "capture");
  check(ok(cudaStreamGetCaptureInfo(stream, &capture, &id)) && capture == cudaStreamCaptureStatusActive && id > 0,
        "its id");
  cudaMemsetAsync(y.at, 0, n * sizeof(float), stream);
  scale<<<4, 256, 0, stream>>>(x.at, y.at, n);
  check(ok(cudaStreamEndCapture(stream, &graph)) && ok(cudaGraphInstantiate(&exec, graph, 0)) &&
            ok(cudaGraphLaunch(exec, stream)) && ok(cudaStreamSynchronize(stream)) && y.get() == expected,
        "a graph");
  cudaStreamDestroy(stream);
}

void memory() {
  int *managed = nullptr, *mapped = nullptr, *other = nullptr, *pinned = nullptr;
  check(ok(cudaMallocManaged(&managed, 64 * sizeof(int))), "managed memory");
  for (int i = 0; i < 64; ++i) managed[i] = i + 1;
  Device<int> total(1);
  sum<<<1, 64, 64 * sizeof(int)>>>(managed, total.at);
  check(total.get()[0] == 65 * 32, "a kernel reads it");
  counter += 10;
  count<<<2, 32>>>();
  check(ok(cudaDeviceSynchronize()) && counter == 5 + 10 + 64, "a managed variable");
  cudaPointerAttributes a;
  check(ok(cudaPointerGetAttributes(&a, managed)) && a.type == cudaMemoryTypeManaged, "its attributes");
  check(ok(cudaHostAlloc(&mapped, 4, cudaHostAllocMapped)) && ok(cudaHostGetDevicePointer(&other, mapped, 0)),
        "mapped memory");
  check(ok(cudaMallocHost(&pinned, 64 * sizeof(int))), "page-locked memory");
  for (int i = 0; i < 64; ++i) pinned[i] = 2;
  sum<<<1, 64, 64 * sizeof(int)>>>(pinned, total.at);
  check(total.get()[0] == 128, "a kernel reads it, too");
  numbers<<<1, 64>>>(pinned);
  check(ok(cudaDeviceSynchronize()) && pinned[63] == 63, "and writes it");
  check(ok(cudaFreeHost(pinned)) && ok(cudaFreeHost(mapped)) && ok(cudaFree(managed)), "all is freed");
  size_t pitch = 0;
  char* rows = nullptr;
  std::vector<char> in(30, 'a'), out(30);
  check(ok(cudaMallocPitch(&rows, &pitch, 10, 3)) &&
            ok(cudaMemcpy2D(rows, pitch, in.data(), 10, 10, 3, cudaMemcpyHostToDevice)) &&
            ok(cudaMemset2D(rows + 2, pitch, 'b', 3, 2)) &&
            ok(cudaMemcpy2D(out.data(), 10, rows, pitch, 10, 3, cudaMemcpyDeviceToHost)),
        "rows");
  check(std::string(out.begin(), out.end()) == "aabbbaaaaaaabbbaaaaaaaaaaaaaaa", "are right");
  cudaExtent extent = make_cudaExtent(10, 3, 2);
  cudaPitchedPtr volume;
  std::vector<char> box(60, 'c'), back(60);
  cudaMemcpy3DParms copy{};
  check(ok(cudaMalloc3D(&volume, extent)), "a volume");
  copy.srcPtr = make_cudaPitchedPtr(box.data(), 10, 10, 3);
  copy.dstPtr = volume;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  check(ok(cudaMemcpy3D(&copy)), "is copied there");
  copy.srcPtr = volume;
  copy.dstPtr = make_cudaPitchedPtr(back.data(), 10, 10, 3);
  copy.kind = cudaMemcpyDeviceToHost;
  check(ok(cudaMemcpy3D(&copy)) && back == box, "and back");
  int* late = nullptr;
  check(ok(cudaMallocAsync(&late, 64, nullptr)) && ok(cudaMemsetAsync(late, 1, 64)) &&
            ok(cudaFreeAsync(late, nullptr)) && ok(cudaDeviceSynchronize()),
        "stream-ordered memory");
  check(cudaMemcpy(out.data(), in.data(), 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue, "a wrong direction");
  cudaMipmappedArray_t levels;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  check(cudaMallocMipmappedArray(&levels, &format, {16, 16, 0}, 2) == cudaErrorNotSupported,
        "arrays of several levels are refused");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "all") {
    properties();
    kernels();
    memory();
    runtime_textures();
    check(ok(cudaDeviceReset()) && runtime_other(1) == 3, "a kernel runs after a reset");
  }
  Device<int> out(64);
  if (mode == "unordered" || mode == "ordered") {
    cudaStream_t a, b;
    cudaEvent_t written;
    check(ok(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking)) &&
              ok(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking)) && ok(cudaEventCreate(&written)),
          "streams");
    Device<int> sums(1);
    numbers<<<1, 64, 0, a>>>(out.at);
    cudaEventRecord(written, a);
    if (mode == "ordered") cudaStreamWaitEvent(b, written, 0);
    sum<<<1, 64, 64 * sizeof(int), b>>>(out.at, sums.at);
    check(ok(cudaStreamSynchronize(b)) && ok(cudaDeviceSynchronize()), "two streams run");
  }
  if (mode == "race") {
    without_barrier<<<1, 64>>>(out.at);
    check(ok(cudaDeviceSynchronize()), "the wrong kernel runs");
  }
  if (mode == "stale") runtime_stale_texture();
  if (mode == "beyond") {
    without_barrier<<<1, 64>>>(out.at + 1);
    check(cudaDeviceSynchronize() == cudaErrorIllegalAddress, "out of bounds is found");
    check(cudaDeviceSynchronize() == cudaErrorIllegalAddress, "and stays");
  }
  return failures ? 1 : 0;
}
