// The artifacts of docs/evidence/errata.md that a formula can check. One test, because every check loads devices and
// formulas.
#include <gtest/gtest.h>

#include "tests/roofline/errata/checks.h"

namespace roofgen::errata {

TEST(Errata, HaveTheRecomputedValues) {
  Checks all;
  bandwidth_article(all);
  gpu_lesson(all);
  kernel_table(all);
  intensity_notebook(all);
  transformer_notes(all);
  EXPECT_FALSE(all.list().empty());
  for (const Check& c : all.list()) EXPECT_EQ(c.got, c.expected) << "artifact " << c.artifact << ": " << c.what;
}

}  // namespace roofgen::errata
