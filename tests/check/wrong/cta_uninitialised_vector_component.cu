// grid: 1  block: 32
// args: [{"name": "y", "type": "f32", "size": 128}]
// finds: uninitialised at 8
__global__ void k(float4* y) {
  __shared__ float4 s[32];
  const int t = threadIdx.x;
  s[t].x = s[t].y = s[t].z = 1;
  const float4 v = s[t];
  y[t] = make_float4(v.x, v.y, v.z, v.w + 1);
}
