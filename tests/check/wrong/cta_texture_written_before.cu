// grid: 1  block: 64
// args: [{"name": "x", "type": "f32", "size": 64, "fill": 0}, {"type": "f32", "buffer": "x", "texture": {}}, {"type": "f32", "size": 64}]
// finds: race at 8
// The memory of a texture is written by the kernel that reads it.
__global__ void neighbours(float* x, cudaTextureObject_t texture, float* out) {
  x[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x ^ 32);
}
