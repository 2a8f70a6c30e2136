// grid: 2  block: 32
// args: [{"type": "struct", "fields": [{"name": "x", "type": "f32", "size": 64, "fill": "iota"}, {"type": "i32", "value": 64}, {"type": "f32x3", "value": [1, 2, 3]}, {"type": "i8", "value": [1, 2, 3]}, {"type": "struct", "fields": [{"type": "f64", "value": 0.5}, {"type": "u8", "value": 7}]}, {"type": "f32x4", "value": [1, 0, 0, 1]}, {"name": "y", "type": "f64", "size": 64, "expect": 57.5}]}, {"type": "u32x3", "value": [64, 1, 1]}, {"type": "bytes", "value": "01 00 02 00 ff"}, {"type": "null"}]
struct Inner {
  double half;
  unsigned char seven;
};
struct Job {
  float* x;
  int n;
  float3 s;
  char tags[3];
  Inner inner;
  float4 v;
  double* y;
};
struct Bytes { unsigned char b[5]; };
// 1 + 2 + 3, 1 + 2 + 3, 7.5, 2, 64, 258, minus 286.
__global__ void run(Job job, dim3 size, Bytes bytes, const int* nothing) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= job.n || nothing) return;
  const double sum = job.s.x + job.s.y + job.s.z + job.tags[0] + job.tags[1] + job.tags[2] + job.inner.half + job.inner.seven + job.v.x + job.v.w + size.x + bytes.b[0] + bytes.b[2] + bytes.b[4];
  job.y[i] = sum - 286 - job.x[i] + i;
}
