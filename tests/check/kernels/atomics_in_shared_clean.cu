// grid: 1  block: 256
// args: [{"name": "y", "type": "i32", "size": 4, "expect": [256, 255, 0, 128]}]
__global__ void few(int* y) {
  __shared__ int box[4];
  const int t = threadIdx.x;
  if (t < 4) box[t] = 0;
  __syncthreads();
  atomicAdd(&box[0], 1);
  atomicMax(&box[1], t);
  atomicCAS(&box[2], 5, t);
  if (t % 2) atomicAdd_block(&box[3], 1);
  __syncthreads();
  if (t < 4) y[t] = box[t];
}
