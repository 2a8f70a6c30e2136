// grid: 1  block: 32
// args: [{"type": "f32", "size": 32, "fill": 0, "texture": {"dims": [8, 4]}}, {"type": "f32", "size": 32}]
// finds: bad-texture at 6
// A texture of two dimensions is read as one of one.
__global__ void copy(cudaTextureObject_t image, float* out) {
  out[threadIdx.x] = tex1D<float>(image, threadIdx.x + 0.5f);
}
