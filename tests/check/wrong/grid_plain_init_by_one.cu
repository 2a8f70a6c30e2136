// grid: 4  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0}]
// finds: race
__global__ void count(int* n) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *n = 5;
  if (blockIdx.x && threadIdx.x == 0) atomicAdd(n, 1);
}
