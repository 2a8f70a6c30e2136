// grid: 1  block: 1
// args: [{"name": "step", "type": "f32", "value": 0.1}, {"name": "y", "type": "i32", "size": 2}]
// Ten steps of 0.1 in float are a little more than 1.
__global__ void steps(float step, int* y) {
  float x = 0;
  for (int i = 0; i < 10; ++i) x += step;
  y[0] = x >= 1.0000001f ? 1 : 0;
  y[1] = (int)(x * 8388608.0f);
}
