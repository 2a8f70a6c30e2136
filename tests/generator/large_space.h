// A space of 10^8 combinations, of which about 10^5 are legal: a tiled kernel's rules on eight parameters.
#pragma once

#include "generator/combinations.h"

namespace roofgen {

inline Result<LegalCombinations> large_space() {
  std::vector<Combinations::Param> params;
  const std::vector<expr::Value> powers = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512},
                                 counts = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  for (const char* name : {"block_x", "block_y", "vector"}) params.push_back({name, powers});
  for (const char* name : {"tile_x", "tile_y", "stages", "unroll", "group"}) params.push_back({name, counts});
  const auto parsed = [](const char* text) { return *expr::Expr::parse(text); };
  Combinations space(std::move(params));
  const expr::Map device = {{"smem", 232448}, {"registers", 65536}};
  space.add(device,
            {{"threads", parsed("block_x * block_y")},
             {"width", parsed("block_x * tile_x * vector")},
             {"smem_bytes", parsed("4 * stages * (width + block_y * tile_y) * unroll")}},
            {parsed("threads % 32 == 0 and 128 <= threads <= 1024"), parsed("vector <= 4"), parsed("width % 64 == 0"),
             parsed("smem_bytes <= smem"), parsed("threads * (24 + 4 * tile_x * tile_y * vector) <= registers"),
             parsed("tile_y % unroll == 0"), parsed("group == 1 or stages % group == 0 and tile_x >= group")});
  return space.find();
}

}  // namespace roofgen
