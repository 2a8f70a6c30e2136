// grid: 1  block: 64
// args: [{"name": "x", "type": "f32", "size": 64, "fill": "random", "range": [0.1, 12], "seed": 5}, {"name": "y", "type": "f32", "size": 768}]
// Functions of the library round on purpose, take numbers apart, and reach them by tables and fast ways.
__global__ void functions(const float* x, float* y) {
  const float v = x[threadIdx.x] / 3.0f;
  float* out = y + threadIdx.x * 12;
  out[0] = expf(v);
  out[1] = logf(v + 2);
  out[2] = sinf(v);
  out[3] = cosf(v * 3);
  out[4] = powf(v, 1.7f);
  out[5] = tanhf(v);
  out[6] = exp2f(-v);
  out[7] = rsqrtf(v);
  out[8] = erff(v / 4);
  out[9] = __expf(-v);
  out[10] = cbrtf(v);
  out[11] = v / (1 + expf(-v));
}
