// grid: 2  block: 2
// args: []
// prints: 0.0: 1.50 odd 100%\n0.1: 2.50 even 100%\n1.0: 1.50 odd 100%\n1.1: 2.50 even 100%\n
__global__ void hello() {
  printf("%d.%u: %.2f %s %d%%\n", blockIdx.x, threadIdx.x, threadIdx.x + 1.5f, threadIdx.x ? "even" : "odd", 100);
}
