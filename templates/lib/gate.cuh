// Activations of a gate.
{% if gated == "relu" %}
__device__ __forceinline__ float gate(float x) { return x < 0.0f ? 0.0f : x; }  // a NaN stays one
{% elif gated == "sigmoid" %}
__device__ __forceinline__ float gate(float x) { return rcp_approx(1.0f + ex2(-1.4426950408889634f * x)); }
{% elif gated == "silu" %}
__device__ __forceinline__ float gate(float x) { return x * rcp_approx(1.0f + ex2(-1.4426950408889634f * x)); }
{% elif gated == "gelu" %}
__device__ __forceinline__ float gate(float x) { return 0.5f * x * (1.0f + erff(0.70710678118654752f * x)); }
{% elif gated == "gelu_tanh" %}
/// 0.5 (1 + tanh(u)) = 1 / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3).
__device__ __forceinline__ float gate(float x) {
  return x * rcp_approx(1.0f + ex2(x * fmaf(x * x, -0.102943223f, -2.30220819f)));
}
{% endif %}
