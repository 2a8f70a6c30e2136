// grid: 4  block: 64
// args: [{"name": "x", "type": "f32", "size": 256, "fill": "iota"}, {"name": "most", "type": "f32", "size": 1, "fill": 0, "expect": 255}]
__global__ void largest(const float* x, float* most) {
  atomicMax(reinterpret_cast<int*>(most), __float_as_int(x[blockIdx.x * 64 + threadIdx.x]));
}
