// Some lanes never assign these variables, and the same lanes never use them.
// grid: 2  block: 64  leaves open: orders  uncoalesced at: 12
// args: [{"type": "i32", "size": 128, "fill": "iota"}, {"type": "i32", "size": 128}, {"type": "i32", "size": 1, "fill": 0, "expect": 76}, {"type": "i32", "value": 40}]
__global__ void not_selected(const int* x, int* y, int* count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v;
  if (i < n) v = x[i];
  __syncwarp();
  int best;
  bool found = false;
  for (int k = 0; k < 3; ++k) {
    const int now = x[(i + k) % 128];
    if (now % 3 == 1 && (!found || now < best)) best = now, found = true;
  }
  y[i] = (i < n ? v : 0) + (found ? best : -1);
  // One lane adds for all counting lanes, and broadcasts the old value.
  const bool counts = x[i] > 51;
  const unsigned all = __ballot_sync(~0u, counts);
  if (!counts) return;
  const int leader = __ffs(all) - 1;
  int before;
  if (threadIdx.x % 32 == leader) before = atomicAdd(count, __popc(all));
  before = __shfl_sync(all, before, leader);
  if (before < 0) y[i] = 0;
}
