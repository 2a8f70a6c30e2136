// grid: 4  block: 32
// args: [{"name": "y", "type": "u8", "size": 128, "expect": "iota"}]
__global__ void number(unsigned char* y) { y[threadIdx.x * 4 + blockIdx.x] = threadIdx.x * 4 + blockIdx.x; }
