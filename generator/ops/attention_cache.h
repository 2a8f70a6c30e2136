// The K/V cache of a decode: one length per sequence, and pools of pages (docs/kernels/decode.md). Private to this
// folder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen::attention {

/// Checks --kv-lengths, --page and --kv-layout, and sets what they imply: batch, kv_len, flag `ragged`. L is known.
/// Packed sequences have no cache.
Result<void> check_packed(const Problem& problem);
Result<void> complete_cache(Problem& problem);
/// The lengths of --kv-lengths, or kv_len of each sequence.
int64_t shortest_cache(const Problem& problem);

class KvCache {
 public:
  /// For a problem that complete() accepted; nullptr without --kv-lengths and --page. Equal
  /// caches are one object, while it is remembered.
  static std::shared_ptr<const KvCache> of(const Problem& problem);

  explicit KvCache(const Problem& problem);

  bool ragged() const { return ragged_; }
  int64_t page() const { return page_; }    ///< keys of a page; 0: no pages
  int64_t pages() const { return pages_; }  ///< of the pool, unused ones included
  int64_t pages_per_sequence() const { return pages_per_sequence_; }
  int64_t keys(int64_t b) const { return lengths_[static_cast<size_t>(b)]; }

  /// The sequence whose K and V a key has: the first page of an odd sequence is that of the sequence before it, if both
  /// fill a page with keys that are not appended.
  int64_t owner(int64_t b, int64_t key) const { return key < page_ && shares(b) ? b - 1 : b; }
  struct Place {
    int64_t sequence = -1, page = 0;
  };
  /// The place in the pool of a sequence's page; 2^31 - 1 after its last page.
  int32_t table(int64_t b, int64_t page) const;
  /// The contents of a page of the pool: a page of a sequence, its owner; sequence -1: unused.
  Place contents(int64_t page_of_pool) const;
  /// Distinct keys that some sequence sees, over all sequences.
  int64_t distinct_keys() const;
  /// Entries of the block table that belong to a page.
  int64_t table_entries() const;

  std::vector<Buffer> buffers() const;
  /// Fills kv_lengths or block_table; false for other buffers.
  bool fill(const std::string& buffer, uint64_t offset, std::span<std::byte> out) const;

 private:
  bool shares(int64_t b) const {
    return b % 2 == 1 && keys(b) - appended_ >= page_ && keys(b - 1) - appended_ >= page_;
  }

  bool ragged_;
  int64_t page_, pages_ = 0, pages_per_sequence_ = 0;
  int64_t appended_;  ///< keys at the end of each sequence that kernels write: their pages have one owner
  std::vector<int64_t> lengths_;
  std::vector<int64_t> first_;            ///< number of each sequence's first own page, and one past the last
  std::vector<int32_t> place_, inverse_;  ///< page number -> place in the pool, and back
};

}  // namespace roofgen::attention
