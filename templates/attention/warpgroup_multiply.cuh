// The products of a tile of attention/warpgroup.cu.jinja, with the softmax between them.

/// O, not divided yet, and the state of its rows.
__device__ __forceinline__ void multiply_tile(Consumer& consumer, const LaneRows& at, float (&o)[D / 8][4],
                                              Rows& rows) {
  const Tile& tile = at.tile;
  const int lane = consumer.lane;
  const ModifiedRows modified(at);
  const Limits limits(
      tile.kv_len - 1, [&](int h) { return kCausal ? at.query(h) + tile.lead : tile.kv_len - 1; }, lane);
  // The tiles before this one need no comparison.
  const int group_row = tile.row0 + 64 * consumer.index / kGroup, visible = max(0, group_row + tile.lead + 1) / BN;
  const int unmasked = max(tile.first, min(kEvenKv ? tile.steps : tile.kv_len / BN, kCausal ? visible : tile.steps));
  const float scale_log2 = tile.scale_log2();
  clear(o);
  hold(o);  // one set of zeros, also for a tile without keys
  Fragments p;
  KeyTiles tiles(tile, lane);
  const Turns turns(consumer.index);
  /// The score expression and the mask, for tile j.
  const auto modify_scores = [&](float(&s)[1][BN / 8][4], int j, auto masked) {
    constexpr bool kMask = decltype(masked)::value;
    const int key = j * BN + lane % 4 * 2;  // of the first score of this lane
    modified.modify<kMask>(s, key, tile.scale);
    if constexpr (kMask && (kCausal || !kEvenKv || !kHasMask)) limits.mask(s[0], j * BN);
  };

  consumer.clear_empty_rows();
  if constexpr (kSeveral) consumer.wait_q();
  if (tiles.more()) {
    if constexpr (!kSeveral) consumer.wait_q();
    if constexpr (kOverlap) {
      {
        const int j = tiles.take();
        float s[1][BN / 8][4];
        Factors none;
        consumer.wait_k();
        consumer.start_scores(s);
        wgmma_wait<0>();
        hold(s[0]);
        consumer.release_k();
        modify_scores(s, j, Int<kMayMask>{});
        soften<kScored || kMayMask>(s[0], rows, none, scale_log2);
        pack(p, s[0]);
        if constexpr (kClearTail) consumer.clear_tail(tile.kv_len - j * BN);
      }
      if (tiles.more()) {
        turns.begin();
        consumer.wait_k();
      }
      tiles.each(unmasked, [&](int j, auto masked) {  // S of tile j, P V of the one before
        float s[1][BN / 8][4];
        Factors factors;
        turns.wait();
        consumer.start_scores(s);
        consumer.wait_v();
        consumer.start_values(o, p);
        turns.pass(!tiles.more());
        wgmma_wait<1>();
        hold(s[0]);
        consumer.release_k();
        modify_scores(s, j, masked);
        constexpr bool kMayHide = kScored || decltype(masked)::value;
        const bool rescale = soften<kMayHide>(s[0], rows, factors, scale_log2);
        hold(s[0]);
        // Of the next step, but here: ptxas moves the softmax after wgmma_wait, not after this.
        if (tiles.more()) consumer.wait_k();
        wgmma_wait<0>();
        hold(o);
        hold(p);
        consumer.release_v();
        if (rescale) factors.apply(o);
        pack(p, s[0]);
      });
      consumer.wait_v();
      consumer.start_values(o, p);
      wgmma_wait<0>();
      hold(o);
      if constexpr (kSeveral) consumer.release_v();
    } else {
      turns.begin();
      turns.wait();
      tiles.each(unmasked, [&](int j, auto masked) {
        constexpr bool kMask = decltype(masked)::value, kMayHide = kScored || kMask;
        float s[1][BN / 8][4];
        Factors factors;
        consumer.wait_k();
        consumer.start_scores(s);
        turns.pass(false);
        wgmma_wait<0>();
        hold(s[0]);
        consumer.release_k();
        modify_scores(s, j, masked);
        if (soften<kMayHide>(s[0], rows, factors, scale_log2)) factors.apply(o);
        pack(p, s[0]);
        consumer.wait_v();
        if constexpr (kClearTail && kMask) consumer.clear_tail(tile.kv_len - j * BN);
        turns.wait();
        consumer.start_values(o, p);
        wgmma_wait<0>();
        hold(o);
        hold(p);
        consumer.release_v();
      });
      turns.pass(true);
    }
  }
}
