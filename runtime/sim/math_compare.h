// Comparisons for one lane; see math.h for the rules. No include guard: lanes.inc includes it once per host instruction
// set, after math_half.h and math_int.h.

template <class T>
FN bool eq(T a, T b) {
  return a == b;
}
template <class T>
FN bool ne(T a, T b) {
  return a != b;
}
template <class T>
FN bool lt(T a, T b) {
  return a < b;
}
template <class T>
FN bool le(T a, T b) {
  return a <= b;
}
template <class T>
FN bool gt(T a, T b) {
  return a > b;
}
template <class T>
FN bool ge(T a, T b) {
  return a >= b;
}
// Floating point: the ordered six above but for `ne`, then the unordered ones.
template <class T>
FN bool fne(T a, T b) {
  return (a < b) | (a > b);
}
template <class T>
FN bool equ(T a, T b) {
  return !((a < b) | (a > b));
}
template <class T>
FN bool neu(T a, T b) {
  return !(a == b);
}
template <class T>
FN bool ltu(T a, T b) {
  return !(a >= b);
}
template <class T>
FN bool leu(T a, T b) {
  return !(a > b);
}
template <class T>
FN bool gtu(T a, T b) {
  return !(a <= b);
}
template <class T>
FN bool geu(T a, T b) {
  return !(a < b);
}
template <class T>
FN bool num(T a, T b) {
  return (a == a) & (b == b);
}
template <class T>
FN bool nan(T a, T b) {
  return (a != a) | (b != b);
}
template <bool (*F)(float, float)>
FN bool cmp_ftz(float a, float b) {
  return F(flush(a), flush(b));
}
template <class F, bool (*C)(float, float)>
FN bool cmp_half(u16 a, u16 b) {
  return C(F::load(a), F::load(b));
}
template <class T, bool (*C)(T, T)>
FN u32 set_mask(T a, T b) {
  return C(a, b) ? ~0u : 0u;
}
template <class T, bool (*C)(T, T)>
FN float set_one(T a, T b) {
  return C(a, b) ? 1.0f : 0.0f;
}
template <class F, bool (*C)(float, float)>
FN u32 set_mask_half(u16 a, u16 b) {
  return cmp_half<F, C>(a, b) ? ~0u : 0u;
}
template <class F, bool (*C)(float, float)>
FN u16 set_mask16_half(u16 a, u16 b) {
  return cmp_half<F, C>(a, b) ? u16(0xffff) : u16(0);
}
template <class F, bool (*C)(float, float)>
FN u16 set_one_half(u16 a, u16 b) {
  return cmp_half<F, C>(a, b) ? F::store(1.0f) : u16(0);
}
template <class F, bool (*C)(float, float)>
FN u32 set_mask_pair(u32 a, u32 b) {
  return (cmp_half<F, C>(u16(a), u16(b)) ? 0xffffu : 0) |
         (cmp_half<F, C>(u16(a >> 16), u16(b >> 16)) ? 0xffff0000u : 0);
}
template <class F, bool (*C)(float, float)>
FN u32 set_one_pair(u32 a, u32 b) {
  u32 one = F::store(1.0f);
  return (cmp_half<F, C>(u16(a), u16(b)) ? one : 0) | (cmp_half<F, C>(u16(a >> 16), u16(b >> 16)) ? one << 16 : 0);
}
template <u32 Class>
FN bool testp64(double x) {
  u64 a = bits_of(x) << 1, infinite = u64{0x7ff} << 53, least = u64{1} << 53;
  return Class == 0   ? a < infinite
         : Class == 1 ? a == infinite
         : Class == 2 ? a <= infinite
         : Class == 3 ? a > infinite
         : Class == 4 ? a >= least && a < infinite
                      : a < least && a != 0;
}
template <u32 Class>
FN bool testp(float x) {
  u32 a = bits_of(x) & 0x7fffffffu;
  return Class == 0   ? a < 0x7f800000u                      // finite
         : Class == 1 ? a == 0x7f800000u                     // infinite
         : Class == 2 ? a <= 0x7f800000u                     // number
         : Class == 3 ? a > 0x7f800000u                      // notanumber
         : Class == 4 ? a >= 0x00800000u && a < 0x7f800000u  // normal
                      : a < 0x00800000u && a != 0;           // subnormal
}
