// grid: 1  block: 32
// args: [{"type": "f32", "size": 64, "texture": {"dims": [8, 8], "filter_mode": "linear"}}, {"type": "f32", "size": 32}]
// finds: uninitialised at 6
// The image was never filled.
__global__ void copy(cudaTextureObject_t image, float* out) {
  out[threadIdx.x] = tex2D<float>(image, threadIdx.x % 8, threadIdx.x / 8);
}
