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

// ---- word_log.h: the records of 32 elements of `words` words, one lane's after the other's -------------

/// All bits set: of a lane other than this one, or of several, since all lanes synchronised; or of bytes.
FN u32 of_others(u32 record, u32 lane, u32 low, u32 span) {
  return ((record - low < span) & (((record ^ lane) & (31 | kLogMany)) != 0)) | (record == ~0u);
}

template <u32 words>
FN bool log_read_of(u32* __restrict wrote, u32* __restrict read, u32* __restrict read_at, u32 pc, LaneOrder o) {
  u32 raced = 0;
  for (u32 i = 0; i < 32 * words; ++i) raced |= of_others(wrote[i], i / words, o.low, o.span) | (read[i] == ~0u);
  if (raced) return false;
  for (u32 i = 0; i < 32 * words; ++i) {
    const u32 many = (read[i] - o.merge_low < o.merge_span) & (((read[i] ^ i / words) & (31 | kLogMany)) != 0);
    read[i] = o.tag | i / words | many * kLogMany;
    read_at[i] = pc;
  }
  return true;
}
template <u32 words>
FN bool log_write_of(u32* __restrict wrote, const u32* __restrict read, u32* __restrict wrote_at, u32 pc, LaneOrder o) {
  u32 raced = 0;
  for (u32 i = 0; i < 32 * words; ++i)
    raced |= of_others(wrote[i], i / words, o.low, o.span) | of_others(read[i], i / words, o.low, o.span);
  if (raced) return false;
  for (u32 i = 0; i < 32 * words; ++i) {
    wrote[i] = o.tag | i / words;
    wrote_at[i] = pc;
  }
  return true;
}

bool log_read(u32* wrote, u32* read, u32* read_at, u32 words, u32 pc, const LaneOrder& o) {
  return words == 1   ? log_read_of<1>(wrote, read, read_at, pc, o)
         : words == 2 ? log_read_of<2>(wrote, read, read_at, pc, o)
                      : log_read_of<4>(wrote, read, read_at, pc, o);
}
bool log_write(u32* wrote, const u32* read, u32* wrote_at, u32 words, u32 pc, const LaneOrder& o) {
  return words == 1   ? log_write_of<1>(wrote, read, wrote_at, pc, o)
         : words == 2 ? log_write_of<2>(wrote, read, wrote_at, pc, o)
                      : log_write_of<4>(wrote, read, wrote_at, pc, o);
}
