// grid: 2  block: 32
// args: [{"symbol": "weights", "type": "f32", "size": 4, "values": [1, 2, 3, 4]}, {"type": "f32", "size": 64, "expect": 10}, {"symbol": "calls", "type": "i32", "size": 1, "fill": 5, "expect": [69]}, {"symbol": "inner::scale", "type": "f32", "size": 1, "fill": 1}]
__constant__ float weights[8];
__device__ int calls;
namespace inner {
static __device__ float scale;
}
__global__ void sum(float* y) {
  float s = 0;
  for (int i = 0; i < 8; ++i) s += weights[i];
  y[blockIdx.x * blockDim.x + threadIdx.x] = s * inner::scale;
  atomicAdd(&calls, 1);
}
