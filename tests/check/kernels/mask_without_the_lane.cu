// grid: 1  block: 32
// args: [{"type": "i32", "size": 32}]
// finds: bad-member-mask at 5
__global__ void ask(int* y) {
  y[threadIdx.x] = __ballot_sync(0x0000ffffu, threadIdx.x & 1);
}
