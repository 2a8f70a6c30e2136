// grid: 1  block: 1
// args: [{"type": "u8", "size": 16, "fill": 0}]
// finds: misaligned at 5
__global__ void count(unsigned char* x) {
  atomicAdd(reinterpret_cast<int*>(x + 2), 1);
}
