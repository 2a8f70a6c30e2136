// grid: 1  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0}]
// max-instructions: 100000
// finds: instruction-limit
__global__ void wait(volatile int* flag) {
  while (*flag == 0) {
  }
}
