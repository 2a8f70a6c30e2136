// grid: 1  block: 64  smem: 1024
// args: [{"name": "x", "type": "f32", "size": 64, "fill": "iota"}, {"name": "y", "type": "f32", "size": 64}]
__global__ void pick(const float* x, float* y) {
  extern __shared__ unsigned char room[];
  float* value = reinterpret_cast<float*>(room);
  int* index = reinterpret_cast<int*>(value + 64);
  double* half = reinterpret_cast<double*>(index + 64);
  value[threadIdx.x] = x[threadIdx.x];
  index[threadIdx.x] = (threadIdx.x * 5) % 64;
  half[threadIdx.x] = 0.5;
  __syncthreads();
  y[threadIdx.x] = static_cast<float>(value[index[threadIdx.x]] * half[63 - threadIdx.x]);
}
