// Vectorised tests of a warp's addresses. Included by lanes.inc.

/// Whether every lane has 2^shift more than the lane before.
bool climbs(const u64* value, u32 shift) {
  u64 apart = 0;
  for (u64 i = 0; i < 32; ++i) apart |= value[i] ^ (value[0] + (i << shift));
  return apart == 0;
}

FN SharedRow row_of(const u32* offset) {
  SharedRow r{0, 0, offset[1] - offset[0], false};
  u32 apart = 0;
  for (u32 i = 0; i < 32; ++i) {
    r.highest = offset[i] > r.highest ? offset[i] : r.highest;
    r.bits |= offset[i];
    apart |= offset[i] ^ (offset[0] + i * r.step);
  }
  r.climbs = apart == 0;
  return r;
}
SharedRow shared_row(const u32* address, u32 displacement, u32* offset) {
  for (u32 i = 0; i < 32; ++i) offset[i] = address[i] + displacement;
  return row_of(offset);
}
SharedRow shared_row_wide(const u64* address, u64 displacement, u32* offset) {
  u64 high = 0;
  for (u32 i = 0; i < 32; ++i) {
    const u64 at = address[i] + displacement;
    high |= at >> 32;
    offset[i] = u32(at);
  }
  SharedRow r = row_of(offset);
  if (high) r.highest = ~0u;
  return r;
}
