// grid: 1  block: 1
// args: [{"name": "x", "type": "f32", "size": 5, "values": [16777216, 1, 1, 1, 1]}, {"name": "y", "type": "f32", "size": 2, "expect": [16777220, 16777220]}]
// Kahan's sum is right, the plain one is not.
__global__ void sums(const float* x, float* y) {
  float plain = 0, sum = 0, rest = 0;
  for (int i = 0; i < 5; ++i) {
    plain += x[i];
    const float term = x[i] - rest, next = sum + term;
    rest = (next - sum) - term;
    sum = next;
  }
  y[0] = plain;
  y[1] = sum;
}
