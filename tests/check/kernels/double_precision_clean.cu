// grid: 1  block: 64
// args: [{"name": "y", "type": "f64", "size": 64, "expect": "iota", "tolerance": 1e-10}]
__global__ void there_and_back(double* y) {
  const double t = threadIdx.x;
  double v = sqrt(t * t) + log(exp(t / 8)) * 8 - t;
  v += sin(t) * sin(t) + cos(t) * cos(t) - 1;
  v = pow(v + 2, 3.0);
  y[threadIdx.x] = cbrt(v) - 2 + floor(0.5) + fmod(8.0, 2.0);
}
