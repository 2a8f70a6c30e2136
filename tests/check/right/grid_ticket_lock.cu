// grid: 6  block: 32
// args: [{"type": "u32", "size": 2, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "fill": 0, "expect": 6}]
__global__ void count(unsigned* tickets, int* y) {
  if (threadIdx.x) return;
  const unsigned mine = atomicAdd(tickets, 1);
  volatile unsigned* serving = tickets + 1;
  while (*serving != mine) __nanosleep(20);
  __threadfence();
  *y += 1;
  __threadfence();
  *serving = mine + 1;
}
