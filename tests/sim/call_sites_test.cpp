// Maps a location in a header to the line that called it.
#include "runtime/sim/call_sites.h"

#include <gtest/gtest.h>

namespace roofgen::sim::call_sites_test {
namespace {

const char* const kPtx = R"(.version 9.0
.visible .entry k()
{
	.loc	1 20 3
	mov.u32 %r1, 0;
	.loc	2 100 7, function_name $L__info_string0, inlined_at 1 20 3
	mov.u32 %r1, 1;
	.loc	3 5 1, function_name $L__info_string1+3, inlined_at 2 100 7
	mov.u32 %r1, 2;
	.loc	2 0 0, function_name $L__info_string0, inlined_at 1 30 5
	mov.u32 %r1, 3;
	.loc	4 7 1, function_name $L__info_string2, inlined_at 9 9 9
	mov.u32 %r1, 4;
}
	.file	1 "/k.cu"
	.file	2 "/mma.hpp"
	.file	3 "/deep.hpp"
	.file	4 "/own.h"
	.section	.debug_str
	{
$L__info_string2:
.b8 95,90
.b8 49, 103
.b8 118,0
$L__info_string3:
.b8 120
	}
)";

std::string place(int ptx_line) {
  const Where w = CallSites(kPtx, [](const std::string& file) { return file.ends_with(".hpp"); }).of(ptx_line);
  return w.line ? w.file + ":" + std::to_string(w.line) + ":" + std::to_string(w.col) : "";
}

TEST(CallSites, AreTheInnermostOfOwnFiles) {
  EXPECT_EQ(place(2), "");
  EXPECT_EQ(place(5), "/k.cu:20:3");
  EXPECT_EQ(place(7), "/k.cu:20:3");
  EXPECT_EQ(place(9), "/k.cu:20:3");   // two calls deep
  EXPECT_EQ(place(11), "/k.cu:30:5");  // its location has no line of its own
  EXPECT_EQ(place(13), "/own.h:7:1");  // a header of the user
}

TEST(CallSites, ChainOfCallers) {
  const auto chain = [](int ptx_line, const std::string& passed_over = "none") {
    const auto found = CallSites(kPtx, [&](const std::string& file) { return file == passed_over; }).inlined(ptx_line);
    std::string out = found.function;
    for (const Where& w : found.callers) out += " " + w.file + ":" + std::to_string(w.line);
    return out;
  };
  EXPECT_EQ(chain(2), "");
  EXPECT_EQ(chain(5), "");
  EXPECT_EQ(chain(9), " /mma.hpp:100 /k.cu:20");  // the name of its function is not in the text
  EXPECT_EQ(chain(9, "/deep.hpp"), " /k.cu:20");
  EXPECT_EQ(chain(13), "_Z1gv");  // called from an unknown file
  std::string with = kPtx;
  with.replace(with.find("9 9 9"), 5, "1 9 9");
  EXPECT_EQ(CallSites(with, [](const std::string&) { return false; }).inlined(13).callers.size(), 1u);
  for (const char* label : {"$L__info_string3", "$L__info_string9", "$L__info_string2+99", "+1", ""}) {
    with = kPtx;
    with.replace(with.find("$L__info_string2"), 16, label);
    EXPECT_EQ(CallSites(with, [](const std::string&) { return false; }).inlined(13).function, "") << label;
  }
}

TEST(CallSites, OfTextThatIsNone) {
  for (const char* text :
       {"", ".loc", ".loc 1", ".loc 1 2 3, inlined_at",
        ".loc 1 1 1, inlined_at 1 1 1\n.loc 1 1 1, inlined_at 1 1 1\n.file 1 \"a\"", ".file 1 \"", ".file x \"\""})
    CallSites(text, [](const std::string&) { return true; }).of(2);
  EXPECT_EQ(CallSites(".loc 1 99999999999999999999 3\n", [](const std::string&) { return false; }).of(1).line, 0);
}

TEST(CallSites, OfALongChain) {
  std::string ptx = ".loc 1 7 7\n";
  const int n = 20000;
  for (int i = 0; i < n; ++i)
    ptx += ".loc 2 " + std::to_string(i + 1) + " 1, function_name x, inlined_at " +
           (i ? "2 " + std::to_string(i) + " 1\n" : "1 7 7\n");
  const CallSites sites(ptx + ".file 1 \"/k.cu\"\n.file 2 \"/mma.hpp\"\n",
                        [](const std::string& file) { return file.ends_with(".hpp"); });
  for (int line = 1; line <= n + 1; ++line) ASSERT_EQ(sites.of(line).file, "/k.cu");
}

}  // namespace
}  // namespace roofgen::sim::call_sites_test
