#include "base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace roofgen::csv_test {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

std::vector<std::string> texts(const TableRow& row) {
  std::vector<std::string> out;
  for (const TableCell& c : row) out.push_back(c.text);
  return out;
}

CellTable one(std::string_view text) {
  auto tables = read_tables(text, "t.csv");
  EXPECT_TRUE(tables) << (tables ? "" : to_string(tables.error()));
  if (!tables || tables->size() != 1) return {};
  return tables->front();
}

std::string error_of(std::string_view text, const TableLimits& limits = {}) {
  const auto tables = read_tables(text, "t.csv", limits);
  if (!tables) return to_string(tables.error());
  return tables->front().errors.empty() ? "" : to_string(tables->front().errors.front());
}

}  // namespace

TEST(Csv, QuotesLineEndsAndPlaces) {
  const CellTable t =
      one("\xEF\xBB\xBF"
          "name,\"a \"\"b\"\"\",c\r\n\"x,\ny\", 1 ,\"\"\r\n\r\nlast,2,3");
  EXPECT_THAT(texts(t.header), ElementsAre("name", "a \"b\"", "c"));
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_THAT(texts(t.rows[0]), ElementsAre("x,\ny", "1", ""));
  EXPECT_EQ(t.rows[0][1].line, 3);
  EXPECT_EQ(t.rows[0][1].col, 5);
  EXPECT_EQ(t.rows[1][0].line, 5);
  EXPECT_EQ(t.header[2].col, 16);
}

TEST(Csv, SeparatorIsTheHeaders) {
  EXPECT_THAT(texts(one("a;b,c;d\n1;2,5;3\n").rows[0]), ElementsAre("1", "2,5", "3"));
  EXPECT_THAT(texts(one("a\tb\n\t2\n").rows[0]), ElementsAre("", "2"));
  EXPECT_THAT(texts(one("\"a;b;c\",d\n1,2\n").rows[0]), ElementsAre("1", "2"));
}

TEST(Csv, ColumnsCountCharacters) { EXPECT_EQ(one("\xE2\x86\x92,b\n1,2\n").header[1].col, 3); }

TEST(Csv, MarkdownTablesOfADocument) {
  const auto tables = read_tables(
      "# Title\n\ntext | no table\n\n| a | `b` |\n|---|:-:|\n| 1 \\| 2 | **x** |\n| only |\n\n| c |\n| - |\n", "t.md");
  ASSERT_TRUE(tables);
  ASSERT_EQ(tables->size(), 2u);
  EXPECT_THAT(texts((*tables)[0].header), ElementsAre("a", "b"));
  EXPECT_THAT(texts((*tables)[0].rows.at(0)), ElementsAre("1 | 2", "x"));
  EXPECT_EQ((*tables)[0].rows[0][1].col, 12);
  ASSERT_EQ((*tables)[0].errors.size(), 1u);
  EXPECT_EQ((*tables)[0].errors[0].where.line, 8);
  EXPECT_THAT(texts((*tables)[1].header), ElementsAre("c"));
}

TEST(Csv, RowsThatAreNoneLeaveTheOthers) {
  const CellTable t = one("a,b\n1\n2,3,4\n\"x\"y,5\n6,7\n");
  ASSERT_EQ(t.errors.size(), 3u);
  EXPECT_EQ(t.errors[0].where.line, 2);
  EXPECT_THAT(t.errors[1].message, HasSubstr("3 cells; 2 were expected"));
  EXPECT_THAT(to_string(t.errors[2]), HasSubstr("t.csv:4:4: error: text after a closing quote"));
  ASSERT_EQ(t.rows.size(), 1u);
  EXPECT_THAT(texts(t.rows[0]), ElementsAre("6", "7"));
}

TEST(Csv, TextWithoutATable) {
  EXPECT_THAT(error_of(""), HasSubstr("no table"));
  EXPECT_THAT(error_of("\n \n"), HasSubstr("no table"));
  EXPECT_THAT(error_of("a,b\n1,\"2\n3"), HasSubstr("t.csv:2:3: error: this quote is never closed"));
  EXPECT_THAT(error_of("a,b\n1,\xFF\n"), HasSubstr("t.csv:2:3: error: byte 0xff"));
  EXPECT_THAT(error_of("a,\xC0\x80\n"), HasSubstr("UTF-8 was expected"));
  EXPECT_THAT(error_of("a,\xED\xA0\x80\n"), HasSubstr("UTF-8 was expected"));
  EXPECT_THAT(error_of(std::string_view("a,\0\n", 4)), HasSubstr("UTF-8 was expected"));
}

TEST(Csv, Limits) {
  TableLimits limits{64, 2, 3, 8};
  EXPECT_THAT(error_of(std::string(65, 'a'), limits), HasSubstr("65 bytes"));
  EXPECT_THAT(error_of("a\n1\n2\n3\n", limits), HasSubstr("more than 2 rows"));
  EXPECT_THAT(error_of("a,b,c,d\n", limits), HasSubstr("4 columns; at most 3"));
  EXPECT_THAT(error_of("a\n123456789\n", limits), HasSubstr("t.csv:2:1: error: a cell of 9 bytes"));
  EXPECT_EQ(error_of("a,b,c\n12345678,2,3\n", limits), "");
}

TEST(Csv, RowsOfAllTablesCount) {
  TableLimits limits;
  limits.rows = 3;
  const std::string table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n";
  EXPECT_EQ(error_of(table + table + table, limits), "");
  EXPECT_THAT(error_of(table + table + table + table, limits), HasSubstr("t.csv:15: error: more than 3 rows"));
  // Malformed rows count, too.
  EXPECT_THAT(error_of(table + table + "| a | b |\n|---|---|\n| 1 |\n| 2 |\n", limits), HasSubstr("more than 3 rows"));
  EXPECT_THAT(error_of("a\n\"1\"x\n\"2\"x\n\"3\"x\n\"4\"x\n", limits), HasSubstr("more than 3 rows"));
}

}  // namespace roofgen::csv_test
