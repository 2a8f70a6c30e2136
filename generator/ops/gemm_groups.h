// The experts of a grouped GEMM: rows of A are sorted by expert, and each expert has its own B.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen::gemm {

/// One row tile of a launch covers rows of one expert; `tiles` of them cover all experts.
class Groups {
 public:
  /// Of a problem that complete_groups() has accepted.
  explicit Groups(const Problem& problem);

  int64_t count() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  /// The first row of each expert, and the number of all rows after them.
  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t begin(int64_t expert) const { return offsets_[static_cast<size_t>(expert)]; }
  int64_t end(int64_t expert) const { return offsets_[static_cast<size_t>(expert) + 1]; }
  int64_t used() const;                     ///< experts with at least one row
  int64_t row_tiles(int64_t height) const;  ///< tiles of `height` rows, none with rows of two experts

 private:
  std::vector<int64_t> offsets_;
};

/// Which token each routed row is of. Every token has `topk` rows, and rows in a row are of other tokens.
class Routing {
 public:
  explicit Routing(int64_t tokens);
  int64_t tokens() const { return tokens_; }
  int64_t token_of(int64_t row) const { return row % tokens_ * step_ % tokens_; }
  /// The row of the token's expert number `expert`, the inverse.
  int64_t row_of(int64_t token, int64_t expert) const { return token * back_ % tokens_ + expert * tokens_; }

 private:
  int64_t tokens_, step_, back_;  ///< step is prime to tokens, and back times step is 1 modulo tokens
};

/// Sets the dims M and experts and the text sizes, "700,0,1300", each from the others; M also from tokens and topk.
/// Without sizes they are uneven and the same on every machine. Exit::kUsage where they do not agree.
Result<void> complete_groups(Problem& problem);

/// Whether the rows of each token's experts are added up: --scatter weighted.
bool is_scattered(const Problem& problem);

/// Whether an input holds row numbers: offsets, row_tokens, token_rows.
bool is_index(const std::string& buffer);
/// Bytes of such an input. False: not one of them.
bool fill_index(const Problem& problem, const std::string& buffer, uint64_t offset, std::span<std::byte> out);

/// A problem with few rows that still has empty experts, one with a single row, and the largest of `problem`. It has
/// more experts than a warp has lanes, unless all their B would be large.
Problem with_few_rows(Problem problem);

}  // namespace roofgen::gemm
