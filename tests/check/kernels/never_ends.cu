// grid: 1  block: 32
// args: [{"type": "i32", "size": 2, "fill": 0}]
// max-instructions: 100000
// finds: instruction-limit
__global__ void wait(volatile int* flag) {
  for (int i = 0; *flag == 0; ++i) flag[1] = i;
}
