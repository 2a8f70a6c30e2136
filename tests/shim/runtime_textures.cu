// Arrays, textures and surfaces for runtime_program.cu. Expected values follow from "Texture Fetching" of the CUDA C++
// Programming Guide.
#include <cuda_runtime.h>

#include <cmath>
#include <cstring>
#include <vector>

void check(bool good, const char* what);  // runtime_program.cu

namespace {

constexpr int kWidth = 20, kHeight = 9, kDepth = 3;

struct Texture {
  Texture(cudaResourceDesc resource, cudaTextureDesc how) {
    check(cudaCreateTextureObject(&object, &resource, &how, nullptr) == cudaSuccess, "a texture is made");
  }
  ~Texture() { check(cudaDestroyTextureObject(object) == cudaSuccess, "a texture is destroyed"); }
  cudaTextureObject_t object = 0;
};

cudaResourceDesc of_array(cudaArray_t array) {
  cudaResourceDesc r{};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = array;
  return r;
}
cudaTextureDesc sampled(cudaTextureAddressMode mode, cudaTextureFilterMode filter, bool normalised,
                        cudaTextureReadMode read = cudaReadModeElementType) {
  cudaTextureDesc d{};
  for (auto& m : d.addressMode) m = mode;
  d.filterMode = filter;
  d.readMode = read;
  d.normalizedCoords = normalised;
  return d;
}

__global__ void sample(cudaTextureObject_t image, const float2* at, float* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = tex2D<float>(image, at[i].x, at[i].y);
}
__global__ void sample_bytes(cudaTextureObject_t image, float4* out) {
  out[threadIdx.x] = tex1Dfetch<float4>(image, static_cast<int>(threadIdx.x) - 1);
}
__global__ void sample_volume(cudaTextureObject_t image, cudaTextureObject_t layers, float* out) {
  out[threadIdx.x] = tex3D<float>(image, 1.5f, 2.5f, threadIdx.x + 0.5f) +
                     100 * tex2DLayered<float>(layers, 1.5f, 2.5f, threadIdx.x);
}
__global__ void gather(cudaTextureObject_t image, float4* out) { *out = tex2Dgather<float4>(image, 2, 3, 0); }
__global__ void turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  const int x = threadIdx.x, y = blockIdx.x;
  surf2Dwrite(surf2Dread<float>(from, x * 4, y), to, (kWidth - 1 - x) * 4, kHeight - 1 - y);
}
__global__ void write_and_read(cudaSurfaceObject_t to, cudaTextureObject_t image, float* out) {
  surf2Dwrite(1.0f, to, threadIdx.x * 4, 0);
  __syncthreads();
  out[threadIdx.x] = tex2D<float>(image, threadIdx.x ^ 1, 0);
}

float value(int x, int y, int z = 0) { return static_cast<float>(x + 30 * y + 300 * z); }

/// What tex2D gives for a coordinate of the array of value(x, y) that clamps and filters linearly.
float filtered(float x, float y) {
  const auto place = [](float c, int* low, float* part) {
    const float fixed = std::floor((c - 0.5f) * 256 + 0.5f) / 256;
    *low = static_cast<int>(std::floor(fixed));
    *part = fixed - static_cast<float>(*low);
  };
  const auto at = [](int x, int y) {
    return value(std::min(std::max(x, 0), kWidth - 1), std::min(std::max(y, 0), kHeight - 1));
  };
  int i, j;
  float a, b;
  place(x, &i, &a);
  place(y, &j, &b);
  return (1 - a) * (1 - b) * at(i, j) + a * (1 - b) * at(i + 1, j) + (1 - a) * b * at(i, j + 1) +
         a * b * at(i + 1, j + 1);
}

std::vector<float> sampled_at(cudaTextureObject_t image, const std::vector<float2>& places) {
  float2* at;
  float* out;
  std::vector<float> result(places.size());
  cudaMalloc(&at, places.size() * sizeof(float2));
  cudaMalloc(&out, places.size() * sizeof(float));
  cudaMemcpy(at, places.data(), places.size() * sizeof(float2), cudaMemcpyHostToDevice);
  sample<<<1, 128>>>(image, at, out, static_cast<int>(places.size()));
  check(cudaMemcpy(result.data(), out, places.size() * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess,
        "a texture is read");
  cudaFree(at);
  cudaFree(out);
  return result;
}

void planes() {
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  std::vector<float> host(kWidth * kHeight);
  for (int i = 0; i < kWidth * kHeight; ++i) host[i] = value(i % kWidth, i / kWidth);
  cudaArray_t array, other;
  check(cudaMallocArray(&array, &floats, kWidth, kHeight, cudaArraySurfaceLoadStore) == cudaSuccess &&
            cudaMallocArray(&other, &floats, kWidth, kHeight, cudaArraySurfaceLoadStore) == cudaSuccess,
        "arrays");
  cudaChannelFormatDesc channels;
  cudaExtent extent;
  unsigned flags = 0;
  check(cudaArrayGetInfo(&channels, &extent, &flags, array) == cudaSuccess && channels.x == 32 && channels.y == 0 &&
            channels.f == cudaChannelFormatKindFloat && extent.width == kWidth && extent.height == kHeight &&
            extent.depth == 0 && flags == cudaArraySurfaceLoadStore,
        "what an array is");
  check(cudaMemcpy2DToArray(array, 0, 0, host.data(), kWidth * 4, kWidth * 4, kHeight, cudaMemcpyHostToDevice) ==
            cudaSuccess,
        "an array is filled");
  check(cudaMemcpy2DToArray(array, 4, 0, host.data(), kWidth * 4, kWidth * 4, 1, cudaMemcpyHostToDevice) ==
            cudaErrorInvalidValue,
        "not beyond its rows");

  std::vector<float2> places = {{0.5f, 0.5f}, {1, 1}, {3.25f, 4.75f}, {-2, 3}, {19.9f, 8.9f}, {100, 100}, {7.001f, 2}};
  const Texture linear(of_array(array), sampled(cudaAddressModeClamp, cudaFilterModeLinear, false));
  std::vector<float> got = sampled_at(linear.object, places);
  bool good = true;
  for (size_t i = 0; i < places.size(); ++i) good &= std::fabs(got[i] - filtered(places[i].x, places[i].y)) < 1e-3f;
  check(good, "linear filtering");

  places = {{1.25f, 0.5f}, {-0.25f, 0.5f}, {0.51f, -1.5f}};
  const Texture wrap(of_array(array), sampled(cudaAddressModeWrap, cudaFilterModePoint, true));
  check(sampled_at(wrap.object, places) == std::vector<float>{value(5, 4), value(15, 4), value(10, 4)}, "wrapping");
  const Texture mirror(of_array(array), sampled(cudaAddressModeMirror, cudaFilterModePoint, true));
  check(sampled_at(mirror.object, places) == std::vector<float>{value(15, 4), value(5, 4), value(10, 4)}, "mirroring");
  cudaTextureDesc border = sampled(cudaAddressModeBorder, cudaFilterModePoint, false);
  border.borderColor[0] = 7;
  const Texture bordered(of_array(array), border);
  check(sampled_at(bordered.object, {{-0.5f, 0}, {0, 0}, {20, 8}}) == std::vector<float>{7, 0, 7}, "a border");

  cudaSurfaceObject_t from = 0, to = 0;
  cudaResourceDesc r = of_array(array), s = of_array(other);
  check(cudaCreateSurfaceObject(&from, &r) == cudaSuccess && cudaCreateSurfaceObject(&to, &s) == cudaSuccess,
        "surfaces");
  turn<<<kHeight, kWidth>>>(from, to);
  std::vector<float> turned(kWidth * kHeight);
  check(cudaMemcpy2DFromArray(turned.data(), kWidth * 4, other, 0, 0, kWidth * 4, kHeight, cudaMemcpyDeviceToHost) ==
                cudaSuccess &&
            turned == std::vector<float>(host.rbegin(), host.rend()),
        "a surface is written and read");
  float4* corners;
  float4 four;
  cudaMalloc(&corners, sizeof four);
  gather<<<1, 1>>>(linear.object, corners);
  cudaMemcpy(&four, corners, sizeof four, cudaMemcpyDeviceToHost);
  check(four.x == value(1, 3) && four.y == value(2, 3) && four.z == value(2, 2) && four.w == value(1, 2), "a gather");
  cudaFree(corners);
  check(cudaDestroySurfaceObject(from) == cudaSuccess && cudaDestroySurfaceObject(to) == cudaSuccess &&
            cudaDestroySurfaceObject(to) != cudaSuccess,
        "surfaces are destroyed once");
  check(cudaFreeArray(array) == cudaSuccess && cudaFreeArray(other) == cudaSuccess, "arrays are freed");
}

void volumes() {
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  std::vector<float> host(kWidth * kHeight * kDepth);
  for (int z = 0, i = 0; z < kDepth; ++z)
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) host[i++] = value(x, y, z);
  cudaArray_t volume, layers;
  const cudaExtent extent = make_cudaExtent(kWidth, kHeight, kDepth);
  check(cudaMalloc3DArray(&volume, &floats, extent) == cudaSuccess &&
            cudaMalloc3DArray(&layers, &floats, extent, cudaArrayLayered) == cudaSuccess,
        "arrays with depth");
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(host.data(), kWidth * 4, kWidth, kHeight);
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  for (cudaArray_t to : {volume, layers}) {
    copy.dstArray = to;
    check(cudaMemcpy3D(&copy) == cudaSuccess, "a volume is copied");
  }
  float* out;
  std::vector<float> got(kDepth);
  cudaMalloc(&out, kDepth * sizeof(float));
  {
    const Texture v(of_array(volume), sampled(cudaAddressModeClamp, cudaFilterModeLinear, false));
    const Texture l(of_array(layers), sampled(cudaAddressModeClamp, cudaFilterModePoint, false));
    sample_volume<<<1, kDepth>>>(v.object, l.object, out);
    cudaMemcpy(got.data(), out, kDepth * sizeof(float), cudaMemcpyDeviceToHost);
  }
  check(got == std::vector<float>{101 * value(1, 2, 0), 101 * value(1, 2, 1), 101 * value(1, 2, 2)},
        "a volume and layers");
  cudaFree(out);
  cudaFreeArray(volume);
  cudaFreeArray(layers);
}

void memory() {
  std::vector<unsigned char> host(64);
  for (int i = 0; i < 64; ++i) host[i] = static_cast<unsigned char>(i);
  unsigned char* bytes;
  float4* out;
  cudaMalloc(&bytes, 64);
  cudaMalloc(&out, 18 * sizeof(float4));
  cudaMemcpy(bytes, host.data(), 64, cudaMemcpyHostToDevice);
  cudaResourceDesc r{};
  r.resType = cudaResourceTypeLinear;
  r.res.linear.devPtr = bytes;
  r.res.linear.desc = cudaCreateChannelDesc<uchar4>();
  r.res.linear.sizeInBytes = 64;
  std::vector<float4> got(18);
  {
    const Texture t(r, sampled(cudaAddressModeClamp, cudaFilterModePoint, false, cudaReadModeNormalizedFloat));
    sample_bytes<<<1, 18>>>(t.object, out);
    cudaMemcpy(got.data(), out, 18 * sizeof(float4), cudaMemcpyDeviceToHost);
    cudaResourceDesc again;
    cudaTextureDesc how;
    check(cudaGetTextureObjectResourceDesc(&again, t.object) == cudaSuccess &&
              again.res.linear.devPtr == bytes && again.res.linear.sizeInBytes == 64 &&
              again.res.linear.desc.w == 8 && cudaGetTextureObjectTextureDesc(&how, t.object) == cudaSuccess &&
              how.readMode == cudaReadModeNormalizedFloat && how.addressMode[0] == cudaAddressModeClamp,
          "what a texture was made of");
  }
  bool good = got[0].x == 0 && got[17].w == 0;
  for (int i = 0; i < 16; ++i) good &= got[i + 1].x == 4 * i / 255.0f && got[i + 1].w == (4 * i + 3) / 255.0f;
  check(good, "plain memory, with zeros outside");
  r.resType = cudaResourceTypePitch2D;
  r.res.pitch2D = {bytes, cudaCreateChannelDesc<unsigned char>(), 10, 2, 24};
  cudaTextureObject_t refused = 0;
  const cudaTextureDesc plain = sampled(cudaAddressModeClamp, cudaFilterModePoint, false);
  check(cudaCreateTextureObject(&refused, &r, &plain, nullptr) == cudaErrorInvalidValue, "a pitch of 24 bytes is refused");
  const cudaTextureDesc linear = sampled(cudaAddressModeClamp, cudaFilterModeLinear, false);
  r.res.pitch2D.pitchInBytes = 32;
  check(cudaCreateTextureObject(&refused, &r, &linear, nullptr) == cudaErrorInvalidValue,
        "bytes that are no floats are not filtered");
  cudaFree(bytes);
  cudaFree(out);
}

}  // namespace

void runtime_textures() {
  planes();
  volumes();
  memory();
}

/// A texture is read after a surface of the same array was written by the same kernel.
void runtime_stale_texture() {
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &floats, 64, 1, cudaArraySurfaceLoadStore);
  std::vector<float> zeros(64);
  cudaMemcpy2DToArray(array, 0, 0, zeros.data(), 256, 256, 1, cudaMemcpyHostToDevice);
  cudaResourceDesc r = of_array(array);
  cudaSurfaceObject_t to = 0;
  cudaCreateSurfaceObject(&to, &r);
  const Texture image(r, sampled(cudaAddressModeClamp, cudaFilterModePoint, false));
  float* out;
  cudaMalloc(&out, 64 * sizeof(float));
  write_and_read<<<1, 64>>>(to, image.object, out);
  check(cudaDeviceSynchronize() == cudaSuccess, "the kernel runs");
}
