// The softmax of a row of 128 numbers for each block: their maximum, then the sum of the exponentials.
// Each reduction ends with a barrier, behind which its words are free.
// grid: 2  block: 128
// args: [{"type": "f32", "size": 256, "fill": 3}, {"name": "y", "type": "f32", "size": 256, "expect": 0.0078125}]
// with scratch_of_two_reductions: race at 19, race at 21
//   Both reductions use the same four words. A warp that is done with the maximum writes its part of the sum over a
//   part of the maximum that a slower warp has yet to read. Seen in NVIDIA/cutlass issue 3597 (example 93). PTX ISA,
//   "Data Race".
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename Op>
__device__ float all_reduce(float value, float* words, Op op) {
  for (int step = 16; step; step /= 2) value = op(value, __shfl_xor_sync(0xffffffff, value, step));
  if (threadIdx.x % 32 == 0) words[threadIdx.x / 32] = value;
  __syncthreads();
  const float all = op(op(words[0], words[1]), op(words[2], words[3]));
  __syncthreads();
  // edit scratch_of_two_reductions:
  return all;
}

__global__ void softmax(const float* x, float* y) {
  __shared__ float words[4];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float most = all_reduce(x[i], words, Max());
  const float e = expf(x[i] - most);
  y[i] = e / all_reduce(e, words, Sum());
}
