// grid: 4  block: 32
// args: [{"name": "label", "type": "i32", "size": 128, "fill": "iota", "expect": 0}]
// Labels only fall, all by atomics, until none changes.
__global__ void spread(int* label) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  for (int before = i; before;) before = atomicMin(label + i, atomicAdd(label + before / 2, 0));
}
