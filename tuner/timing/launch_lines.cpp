#include "tuner/timing/launch_lines.h"

#include <bit>
#include <unordered_map>

namespace roofgen::timing {

using sass::Action;

bool writes_device(const sass::Code& code, const sass::WarpStream& w, const sass::Step& s) {
  const Action what = code.instructions[s.index].opcode->action;
  return what == Action::kStg || what == Action::kRed || what == Action::kAtomg ||
         (s.is_sync() && w.syncs[s.sync()].kind != sass::Sync::Kind::kLoad);
}

double distinct_writes(const sass::Code& code, const sass::CtaStream& cta) {
  std::unordered_map<uint64_t, uint8_t> sectors;
  double all = 0, distinct = 0;
  for (const sass::WarpStream& w : cta.warps)
    for (const sass::Step& s : w.steps) {
      const sass::Access* a = w.access_of(s);
      if (!a || !writes_device(code, w, s)) continue;
      for (uint32_t l = 0; l < a->lines; ++l) {
        const sass::LineRequest& line = w.lines[a->first_line + l];
        if (line.line < sass::kLocalLines) all += std::popcount(line.sectors), sectors[line.line] |= line.sectors;
      }
    }
  for (const auto& [line, mask] : sectors) distinct += std::popcount(mask);
  return all > 0 ? distinct / all : 1;
}

}  // namespace roofgen::timing
