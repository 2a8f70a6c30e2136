// grid: 1  block: 32
// args: [{"name": "out", "type": "i32", "size": 64}]
struct Item {
  char c;
  int i;
};
__global__ void k(Item* out) {
  __shared__ Item s[32];
  const int t = threadIdx.x;
  s[t].c = t;
  s[t].i = t;
  __syncthreads();
  out[t] = s[31 - t];
}
