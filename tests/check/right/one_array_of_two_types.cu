// grid: 1  block: 64
// args: [{"name": "x", "type": "f32", "size": 64, "fill": "iota"}, {"name": "y", "type": "f32", "size": 64}]
union Scratch {
  float f[64];
  int order[64];
};
__global__ void reverse_then_count(const float* x, float* y) {
  __shared__ Scratch s;
  s.f[63 - threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float v = s.f[threadIdx.x];
  __syncthreads();
  s.order[threadIdx.x] = static_cast<int>(v);
  __syncthreads();
  y[threadIdx.x] = static_cast<float>(s.order[63 - threadIdx.x]);
}
