// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 96}]
// with cta_bits_field_beside_the_written_ones: uninitialised at 17
//   args: [{"name": "y", "type": "i32", "size": 64}]
struct Fields {
  unsigned low : 5, middle : 10, high : 7;  // 10 bits are of no field
};
__global__ void k(int* y) {
  __shared__ volatile Fields s[32];
  const int t = threadIdx.x;
  s[t].low = t;
  s[t].middle = 3 * t;
  // edit cta_bits_field_beside_the_written_ones:
  s[t].high = t + 1;
  __syncwarp();
  y[t] = s[31 - t].low;
  y[t + 32] = s[31 - t].middle;
  y[t + 64] = s[31 - t].high;
  // edit cta_bits_field_beside_the_written_ones:
}
