// grid: 2  block: 64
// args: [{"name": "i", "type": "i32", "size": 8, "values": [0, 0, 1000, -1000, -1, 0, 0, 7], "expect": [128, -128, 0, 127, 0, 127, 0, 127]}, {"name": "u", "type": "u32", "size": 2, "fill": 0, "expect": [8, 95]}, {"name": "l", "type": "u64", "size": 3, "values": [0, 5000000000, 0], "expect": [640000000000, 0, 127]}, {"name": "f", "type": "f32", "size": 1, "fill": 0, "expect": 64}, {"name": "d", "type": "f64", "size": 1, "fill": 0, "expect": 32}]
__global__ void all(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  const int t = blockIdx.x * 64 + threadIdx.x;
  atomicAdd(&i[0], 1);
  atomicSub(&i[1], 1);
  atomicMin(&i[2], t);
  atomicMax(&i[3], t);
  atomicAnd(&i[4], t);
  atomicOr(&i[5], t);
  atomicXor(&i[6], t);
  if (t == 127) atomicExch(&i[7], t);
  atomicInc(&u[0], 9);   // wraps around from 9 to 0
  atomicDec(&u[1], 222); // 0, 222, 221, ...
  atomicAdd(&l[0], 5000000000ull);
  atomicMin(&l[1], static_cast<unsigned long long>(t));
  atomicMax(&l[2], static_cast<unsigned long long>(t));
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
}
