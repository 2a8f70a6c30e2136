// Integer, bit and comparison instructions for one lane; see math.h for the rules. No include guard:
// lanes.inc includes it once per host instruction set, after math.h.

// ---- integers --------------------------------------------------------------------------------------
// Signed arithmetic is done on the unsigned type, where it wraps as PTX says.

template <class T>
FN T iadd(T a, T b) {
  return T(a + b);
}
template <class T>
FN T isub(T a, T b) {
  return T(a - b);
}
template <class T>
FN T imul(T a, T b) {
  return T(u64(a) * u64(b));
}
template <class T>
FN T imad(T a, T b, T c) {
  return T(u64(a) * u64(b) + u64(c));
}
FN s32 add_sat(s32 a, s32 b) {
  s64 r = s64(a) + b;
  return s32(r > 2147483647 ? 2147483647 : r < -2147483648ll ? -2147483648ll : r);
}
FN s32 sub_sat(s32 a, s32 b) {
  s64 r = s64(a) - b;
  return s32(r > 2147483647 ? 2147483647 : r < -2147483648ll ? -2147483648ll : r);
}
template <class W, class T>
FN W mul_wide(T a, T b) {
  return W(u64(s64(a)) * u64(s64(b)));
}
template <class W, class T>
FN W mad_wide(T a, T b, W c) {
  return W(u64(s64(a)) * u64(s64(b)) + u64(c));
}
FN u32 mul_hi_u32(u32 a, u32 b) { return u32(u64(a) * b >> 32); }
FN u32 mul_hi_s32(s32 a, s32 b) { return u32(u64(s64(a) * b) >> 32); }
FN u16 mul_hi_u16(u16 a, u16 b) { return u16(u32(a) * b >> 16); }
FN u16 mul_hi_s16(s16 a, s16 b) { return u16(u32(s32(a) * b) >> 16); }
FN u64 mul_hi_u64(u64 a, u64 b) {
  u64 al = u32(a), ah = a >> 32, bl = u32(b), bh = b >> 32;
  u64 mid = ah * bl + (al * bl >> 32), mid2 = al * bh + u32(mid);
  return ah * bh + (mid >> 32) + (mid2 >> 32);
}
FN u64 mul_hi_s64(u64 a, u64 b) { return mul_hi_u64(a, b) - (a >> 63 ? b : 0) - (b >> 63 ? a : 0); }
FN u32 mad_hi_u32(u32 a, u32 b, u32 c) { return mul_hi_u32(a, b) + c; }
FN u32 mad_hi_s32(s32 a, s32 b, u32 c) { return mul_hi_s32(a, b) + c; }
FN u16 mad_hi_u16(u16 a, u16 b, u16 c) { return u16(mul_hi_u16(a, b) + c); }
FN u16 mad_hi_s16(s16 a, s16 b, u16 c) { return u16(u16(mul_hi_s16(a, b)) + c); }
FN u64 mad_hi_s64(u64 a, u64 b, u64 c) { return mul_hi_s64(a, b) + c; }
FN u64 mad_hi_u64(u64 a, u64 b, u64 c) { return mul_hi_u64(a, b) + c; }
FN u32 mul24_u32(u32 a, u32 b) { return u32(u64(a & 0xffffffu) * (b & 0xffffffu)); }
FN u32 mul24_s32(s32 a, s32 b) { return u32(s64(s32(u32(a) << 8) >> 8) * (s32(u32(b) << 8) >> 8)); }
/// Division by zero is undefined in PTX; GPUs return all ones, and so do we.
template <class T>
FN T udiv(T a, T b) {
  return b == 0 ? T(~T{0}) : T(a / b);
}
template <class T>
FN T urem(T a, T b) {
  return b == 0 ? a : T(a % b);
}
template <class T>
FN T sdiv(T a, T b) {
  return b == 0 ? T(-1) : b == -1 ? T(0 - u64(s64(a))) : T(a / b);
}
template <class T>
FN T srem(T a, T b) {
  return b == 0 ? a : b == -1 ? T(0) : T(a % b);
}
template <class T>
FN T imin(T a, T b) {
  return a < b ? a : b;
}
template <class T>
FN T imax(T a, T b) {
  return a > b ? a : b;
}
template <class T>
FN T ineg(T a) {
  return T(0 - u64(s64(a)));
}
template <class T>
FN T iabs(T a) {
  return a < 0 ? T(0 - u64(s64(a))) : a;
}
template <class T>
FN T band(T a, T b) {
  return T(a & b);
}
template <class T>
FN T bor(T a, T b) {
  return T(a | b);
}
template <class T>
FN T bxor(T a, T b) {
  return T(a ^ b);
}
template <class T>
FN T bnot(T a) {
  return T(~a);
}
template <class T>
FN T cnot(T a) {
  return a == 0;
}
FN bool pand(bool a, bool b) { return a & b; }
FN bool por(bool a, bool b) { return a | b; }
FN bool pxor(bool a, bool b) { return a ^ b; }
FN bool pnot(bool a) { return !a; }
template <class T>
FN T shl(T a, u32 n) {
  return n >= sizeof(T) * 8 ? T(0) : T(u64(a) << (n & 63));
}
template <class T>
FN T shr_u(T a, u32 n) {
  return n >= sizeof(T) * 8 ? T(0) : T(a >> (n & 63));
}
template <class T>
FN T shr_s(T a, u32 n) {
  return T(a >> (n >= sizeof(T) * 8 ? sizeof(T) * 8 - 1 : n));
}
FN u32 shf_l_wrap(u32 lo, u32 hi, u32 n) { return u32((u64(hi) << 32 | lo) << (n & 31) >> 32); }
FN u32 shf_r_wrap(u32 lo, u32 hi, u32 n) { return u32((u64(hi) << 32 | lo) >> (n & 31)); }
FN u32 shf_l_clamp(u32 lo, u32 hi, u32 n) { return u32((u64(hi) << 32 | lo) << (n > 32 ? 32 : n) >> 32); }
FN u32 shf_r_clamp(u32 lo, u32 hi, u32 n) { return u32((u64(hi) << 32 | lo) >> (n > 32 ? 32 : n)); }
FN u32 sad_u32(u32 a, u32 b, u32 c) { return c + (a < b ? b - a : a - b); }
template <class T>
FN T sad(T a, T b, T c) {
  return a < b ? T(u64(c) + u64(b) - u64(a)) : T(u64(c) + u64(a) - u64(b));
}
FN u32 sad_s32(s32 a, s32 b, u32 c) { return c + (a < b ? u32(b) - u32(a) : u32(a) - u32(b)); }
FN u32 popc32(u32 x) {
  x = x - ((x >> 1) & 0x55555555u);
  x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
  return ((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}
FN u32 popc64(u64 x) { return popc32(u32(x)) + popc32(u32(x >> 32)); }
FN u32 clz32(u32 x) {
  x |= x >> 1;
  x |= x >> 2;
  x |= x >> 4;
  x |= x >> 8;
  x |= x >> 16;
  return 32 - popc32(x);
}
FN u32 clz64(u64 x) { return x >> 32 ? clz32(u32(x >> 32)) : 32 + clz32(u32(x)); }
FN u32 brev32(u32 x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
  return x >> 16 | x << 16;
}
FN u64 brev64(u64 x) { return u64(brev32(u32(x))) << 32 | brev32(u32(x >> 32)); }
FN u32 bfind_u32(u32 x) { return 31 - clz32(x); }  // -1 when nothing is found
FN u32 bfind_s32(s32 x) { return bfind_u32(u32(x < 0 ? ~x : x)); }
FN u32 bfind_u64(u64 x) { return 63 - clz64(x); }
FN u32 bfind_s64(s64 x) { return bfind_u64(u64(x < 0 ? ~x : x)); }
FN u32 bfind_shift_u32(u32 x) { return x ? clz32(x) : ~0u; }
FN u32 bfind_shift_s32(s32 x) { return bfind_shift_u32(u32(x < 0 ? ~x : x)); }
FN u32 bfind_shift_u64(u64 x) { return x ? clz64(x) : ~0u; }
FN u32 bfind_shift_s64(s64 x) { return bfind_shift_u64(u64(x < 0 ? ~x : x)); }
FN u64 low_bits(u32 n) { return n >= 64 ? ~u64{0} : (u64{1} << n) - 1; }
/// Bit field extract: start b, length c, both 8 bits; a field past the top reads as zero or, signed,
/// as the sign bit of the field's highest existing bit.
FN u64 bfe_u(u64 a, u32 b, u32 c, u32 width) {
  b &= 255;
  c &= 255;
  return b >= width ? 0 : (a >> b) & low_bits(c);
}
FN u64 bfe_s(u64 a, u32 b, u32 c, u32 width) {
  b &= 255;
  c &= 255;
  if (c == 0) return 0;
  u32 top = b + c - 1 < width - 1 ? b + c - 1 : width - 1;
  u64 sign = (a >> top & 1) ? ~u64{0} : 0;
  u64 field = b >= width ? 0 : a >> b;
  u32 have = b >= width ? 0 : (c < width - b ? c : width - b);
  return (field & low_bits(have)) | (sign & ~low_bits(have));
}
FN u32 bfe_u32(u32 a, u32 b, u32 c) { return u32(bfe_u(a, b, c, 32)); }
FN u32 bfe_s32(u32 a, u32 b, u32 c) { return u32(bfe_s(a, b, c, 32)); }
FN u64 bfe_u64(u64 a, u32 b, u32 c) { return bfe_u(a, b, c, 64); }
FN u64 bfe_s64(u64 a, u32 b, u32 c) { return bfe_s(a, b, c, 64); }
FN u64 bfi_any(u64 a, u64 b, u32 at, u32 n, u32 width) {
  at &= 255;
  n &= 255;
  u64 field = at >= width ? 0 : low_bits(n) << at;
  return (b & ~field) | (at >= width ? 0 : (a << at) & field);
}
FN u32 bfi32(u32 a, u32 b, u32 at, u32 n) { return u32(bfi_any(a, b, at, n, 32)); }
FN u64 bfi64(u64 a, u64 b, u32 at, u32 n) { return bfi_any(a, b, at, n, 64); }
FN u32 bmsk_clamp(u32 at, u32 n) {
  u64 end = u64(at) + n;
  return at >= 32 ? 0 : u32(low_bits(u32(end > 32 ? 32 : end)) & ~low_bits(at));
}
FN u32 bmsk_wrap(u32 at, u32 n) { return u32(low_bits(n & 31) << (at & 31)); }
FN u32 prmt(u32 a, u32 b, u32 selector) {
  u64 bytes = u64(b) << 32 | a;
  u32 r = 0;
  for (int i = 0; i < 4; ++i) {
    u32 pick = selector >> (4 * i) & 15;
    u32 byte = u32(bytes >> (8 * (pick & 7))) & 255;
    u32 sign = byte & 128 ? 255 : 0;
    r |= (pick & 8 ? sign : byte) << (8 * i);
  }
  return r;
}
template <int Mode>
FN u32 prmt_mode(u32 a, u32 b, u32 c) {
  c &= 3;
  u32 selector = 0;
  for (u32 i = 0; i < 4; ++i) {
    u32 pick = Mode == 0   ? i + c                   // f4e
               : Mode == 1 ? (8 + c - i) & 7         // b4e
               : Mode == 2 ? c                       // rc8
               : Mode == 3 ? (i > c ? i : c)         // ecl
               : Mode == 4 ? (i < c ? i : c)         // ecr
                           : (c & 1) * 2 + (i & 1);  // rc16
    selector |= pick << (4 * i);
  }
  return prmt(a, b, selector);
}
FN u32 lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 r = 0;
  for (u32 i = 0; i < 8; ++i) r |= (table >> i & 1 ? ~0u : 0u) & (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}
template <class A, class B>
FN u32 dp4a(u32 a, u32 b, u32 c) {
  u32 r = c;
  for (int i = 0; i < 4; ++i) r += u32(s32(A(a >> (8 * i))) * s32(B(b >> (8 * i))));
  return r;
}

/// The |n|-th set bit from `base` on, upwards or (n < 0) downwards; n = 0: whether that bit itself is set. All ones:
/// there is none.
FN u32 fns(u32 mask, u32 base, s32 n) {
  if (n == 0) return base < 32 && (mask >> base & 1) ? base : ~0u;
  u32 left = n < 0 ? 0 - u32(n) : u32(n), step = n < 0 ? ~0u : 1;
  for (u32 at = base; at < 32; at += step)
    if ((mask >> at & 1) && --left == 0) return at;
  return ~0u;
}
/// Two 16-bit numbers of a with the lower or upper two bytes of b.
template <class A, class B, int Shift>
FN u32 dp2a(u32 a, u32 b, u32 c) {
  return c + u32(s32(A(a)) * s32(B(b >> Shift))) + u32(s32(A(a >> 16)) * s32(B(b >> (Shift + 8))));
}
template <class T>
FN u32 add_x2(u32 a, u32 b) {
  return (u32(u16(a + b))) | (((a >> 16) + (b >> 16)) << 16);
}
template <class T>
FN u32 min_x2(u32 a, u32 b) {
  return u32(u16(imin<T>(T(a), T(b)))) | u32(u16(imin<T>(T(a >> 16), T(b >> 16)))) << 16;
}
template <class T>
FN u32 max_x2(u32 a, u32 b) {
  return u32(u16(imax<T>(T(a), T(b)))) | u32(u16(imax<T>(T(a >> 16), T(b >> 16)))) << 16;
}
/// Absolute differences of the parts; with Sum, their sum and c.
template <class T, bool Sum>
FN u32 vabsdiff(u32 a, u32 b, u32 c) {
  constexpr int bits = 8 * sizeof(T);
  u32 r = Sum ? c : 0;
  for (int i = 0; i < 32 / bits; ++i) {
    s32 x = s32(T(a >> (bits * i))), y = s32(T(b >> (bits * i)));
    u32 d = u32(x < y ? y - x : x - y);
    r += Sum ? d : (d & u32(low_of_width(bits))) << (bits * i);
  }
  return r;
}

template <class T>
FN T mov(T a) {
  return a;
}
/// No `mov`: instructions that share a function share a rule of doubles.
template <class T>
FN T cvt_same(T a) {
  return a;
}
FN u32 pack_b32_b16(u16 lo, u16 hi) { return lo | u32(hi) << 16; }
FN u64 pack_b64_b32(u32 lo, u32 hi) { return lo | u64(hi) << 32; }
FN u64 pack_b64_b16(u16 a, u16 b, u16 c, u16 d) { return a | u64(b) << 16 | u64(c) << 32 | u64(d) << 48; }
FN u16 unpack_b32_b16(u32 a, u32 part) { return u16(a >> (16 * (part & 1))); }
FN u32 unpack_b64_b32(u64 a, u32 part) { return u32(a >> (32 * (part & 1))); }
FN u16 unpack_b64_b16(u64 a, u32 part) { return u16(a >> (16 * (part & 3))); }
template <class T>
FN T select(T a, T b, bool p) {
  return p ? a : b;
}
template <class T>
FN T slct_s(T a, T b, s32 c) {
  return c >= 0 ? a : b;
}
template <class T>
FN T slct_f(T a, T b, float c) {
  return c >= 0.0f ? a : b;
}
template <class T>
FN T slct_f_ftz(T a, T b, float c) {
  return flush(c) >= 0.0f ? a : b;
}
