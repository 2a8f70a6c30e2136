// grid: 4  block: 64
// args: [{"name": "y", "type": "i32", "size": 256, "expect": "iota"}]
__global__ void number(int* y) { y[threadIdx.x * 4 + blockIdx.x] = threadIdx.x * 4 + blockIdx.x; }
