// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) { atomicExch(&y[threadIdx.x], 5); }
