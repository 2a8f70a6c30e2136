// grid: 1  block: 32  kernel: fill<double>
// args: [{"type": "f64", "size": 32, "expect": 3}, {"type": "f64", "value": 3}]
template <class T>
__global__ void fill(T* y, T value) {
  y[threadIdx.x] = value;
}
template __global__ void fill<float>(float*, float);
template __global__ void fill<double>(double*, double);
