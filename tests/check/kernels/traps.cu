// grid: 1  block: 32
// args: [{"type": "i32", "value": 3}]
// finds: trap at 5
__global__ void refuse(int n) {
  if (n % 2) __trap();
}
