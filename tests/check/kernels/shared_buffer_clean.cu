// grid: 1  block: 32
// args: [{"name": "x", "type": "f32", "size": 64, "fill": "iota", "expect": 5, "ignore": [[0, 32]]}, {"name": "upper", "type": "f32", "buffer": "x", "offset": 32}, {"type": "struct", "fields": [{"type": "f32", "buffer": "x"}, {"type": "i32", "value": 32}]}]
struct View {
  float* from;
  int n;
};
__global__ void lower_to_upper(float* x, float* upper, View view) {
  if (upper == x + view.n && view.from == x) upper[threadIdx.x] = x[threadIdx.x] * 0 + 5;
}
