// grid: 1  block: 64
// args: [{"type": "i16", "size": 62, "fill": "iota", "texture": {}}, {"type": "i32", "size": 64}]
// Plain memory is read as zeros outside.
__global__ void differences(cudaTextureObject_t x, int* out) {
  const int i = threadIdx.x;
  out[i] = tex1Dfetch<short>(x, i + 1) - tex1Dfetch<short>(x, i - 1);
}
