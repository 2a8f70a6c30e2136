#include "base/text_table.h"

#include <gtest/gtest.h>

namespace roofgen::text_table_test {

TEST(TextTable, AWideOneComesInParts) {
  TextTable table({"name", "first", "second", "third"});
  table.left(0);
  table.row({"a", "11111", "22222", "33333"});
  EXPECT_EQ(table.str(),
            "name  first  second  third\n"
            "a     11111   22222  33333\n");
  EXPECT_EQ(table.str(26, 1), table.str());
  EXPECT_EQ(table.str(25, 1),
            "name  first  second\n"
            "a     11111   22222\n"
            "\n"
            "name  third\n"
            "a     33333\n");
  EXPECT_EQ(TextTable({"name", "first"}).str(3, 1), "name  first\n") << "never less than a column";
}

TEST(Wrapped, LinesBreakAtSpaces) {
  EXPECT_EQ(wrapped("label     one two three four\nshort\n", 10, 20),
            "label     one two\n          three four\nshort\n");
  EXPECT_EQ(wrapped("label     a-word-of-many-letters and\n", 10, 20),
            "label     a-word-of-many-letters\n          and\n");
  EXPECT_EQ(wrapped("", 10, 20), "");
}

TEST(TextTable, AColumnOfTextIsBrokenAtSpaces) {
  TextTable table({"name", "text", "value"});
  table.left(0).left(1);
  table.row({"a", "words that take more room than there is here", "1"});
  table.row({"b", "", "2"});
  EXPECT_EQ(table.str(40),
            "name  text                       value\n"
            "a     words that take more room      1\n"
            "      than there is here\n"
            "b                                    2\n");
  EXPECT_EQ(table.str(), TextTable(table).str(1 << 20)) << "where there is room, in one line";
}

}  // namespace roofgen::text_table_test
