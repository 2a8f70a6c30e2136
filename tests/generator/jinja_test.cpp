#include "generator/jinja/jinja.h"

#include <gtest/gtest.h>

namespace roofgen::jinja::jinja_test {
namespace {

using expr::List;
using expr::Map;
using Files = std::map<std::string, std::string>;

Result<Rendered> render_files(const Files& files, const Map& context = {}, const Limits& limits = {}) {
  const auto loader = [&](std::string_view name) -> std::optional<std::string> {
    auto it = files.find(std::string(name));
    return it == files.end() ? std::nullopt : std::optional(it->second);
  };
  return render(loader, "main", context, limits);
}

std::string text(const Files& files, const Map& context = {}, const Limits& limits = {}) {
  auto r = render_files(files, context, limits);
  return r ? r->text : "error: " + r.error().message;
}

std::string text(const std::string& main, const Map& context = {}) { return text(Files{{"main", main}}, context); }

/// "file:line" of each output line.
std::vector<std::string> lines(const Files& files, const Map& context = {}) {
  const auto rendered = render_files(files, context);
  std::vector<std::string> out;
  for (const Where& w : rendered->line_map.lines) out.push_back(w.file + ":" + std::to_string(w.line));
  return out;
}

const Map kTile{{"BM", 128}, {"BN", 64}};

// Constructs of kernel templates that existing C++ engines render incorrectly.

TEST(JinjaProbe, Arithmetic) { EXPECT_EQ(text("{{ BM-1 }} {{ BM/BN }}", kTile), "127 2"); }

TEST(JinjaProbe, DivisionIsExactOrAnError) {
  EXPECT_EQ(text("{{ 7/2 }}"), "error: 7 / 2 is not an integer; // rounds down, 1.0 * a / b is a float");
  EXPECT_EQ(text("{{ 7//2 }}"), "3");
}

TEST(JinjaProbe, MacroElifTernaryAndSingleQuotes) {
  EXPECT_EQ(text("{% macro f(a, b=1) %}<{{ a }},{{ b }}>{% endmacro %}{{ f(1) }}{{ f(1, b='x') }}{{ f(b=2, a=3) }}"),
            "<1,1><1,x><3,2>");
  EXPECT_EQ(text("{% if BM == 1 %}a{% elif BM == 128 %}b{% else %}c{% endif %}", kTile), "b");
  EXPECT_EQ(text("{{ 'big' if BM > 64 else 'small' }}", kTile), "big");
}

TEST(JinjaProbe, IncludeAndImport) {
  const Files files{{"main", "{% import 'lib' as m %}{% include 'part' %}{{ m.twice(BM) }}{{ m.unit }}"},
                    {"part", "<{{ BM }}>"},
                    {"lib", "ignored {% set unit = 'px' %}{% macro twice(x) %}{{ 2 * x }}{{ unit }}{% endmacro %}"}};
  EXPECT_EQ(text(files, kTile), "<128>256pxpx");
}

TEST(JinjaProbe, UndefinedNamesAreErrorsWithASuggestion) {
  EXPECT_EQ(text("{{ BMM }}", kTile), "error: undefined name \"BMM\"; did you mean \"BM\"?");
}

TEST(JinjaProbe, AnErrorInAnIncludedFileHasThePositionAndIncludeStack) {
  const Files files{{"main", "a\n{% include 'part' %}\n"}, {"part", "x\n\ny {{ BMM }}"}};
  EXPECT_EQ(to_string(render_files(files, kTile).error()),
            "part:3:6: error: undefined name \"BMM\"; did you mean \"BM\"?\n"
            "    3 | y {{ BMM }}\n"
            "      |      ^~~\n"
            "included from main:2:12");
}

TEST(JinjaProbe, HashesAndClosingBracesArePlainText) {
  EXPECT_EQ(text("## a\n#define X(a) a##b\nint x[1][1] = { {1}};\n# x %}\n"),
            "## a\n#define X(a) a##b\nint x[1][1] = { {1}};\n# x %}\n");
}

TEST(JinjaProbe, ListLiteralWithAVariable) {
  EXPECT_EQ(text("{% for x in [BM, BN, 'c'] %}{{ x }} {% endfor %}", kTile), "128 64 c ");
}

TEST(JinjaProbe, SmallFloatLiteral) { EXPECT_EQ(text("{{ 1e-6 }}"), "1e-06"); }

TEST(JinjaProbe, AStrayDoubleBraceSuggestsAnEscape) {
  for (const char* stray : {"int a[2][2] = {{1, 2}, {3, 4}};", "f({{1, 2}});", "x = {{ {1}, {2} }};", "x = {{"}) {
    const auto r = render_files({{"main", stray}});
    ASSERT_FALSE(r) << stray;
    EXPECT_NE(to_string(r.error()).find("nested braces of C++ are written \"{ {\""), std::string::npos)
        << to_string(r.error());
  }
}

TEST(Jinja, TagsTakeTheirLineWithThem) {
  EXPECT_EQ(text("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc\n");
  EXPECT_EQ(text("a {% if true %} b {% endif %}\nc"), "a  b c");
  EXPECT_EQ(text("a\n  {{ 1 }}\nb"), "a\n  1\nb");
  EXPECT_EQ(text("a \n {%- if true -%} \n b {{- 1 -}} \n c{% endif %}"), "ab1c");
  EXPECT_EQ(text("  {%+ if true +%}\nx{% endif %}"), "  \nx");
  EXPECT_EQ(text("a\n  {# gone #}\nb{# x\ny #}c"), "a\nbc");
}

TEST(Jinja, RawIsCopied) {
  EXPECT_EQ(text("{% raw %}{{ x }} {% if %} {# {% endraw %}!"), "{{ x }} {% if %} {# !");
  EXPECT_EQ(text("{%- raw -%}  {{ {%- endraw -%}  !"), "{{!");
}

TEST(Jinja, TheTrailingNewlineIsKeptAndNewlinesAreUnix) {
  EXPECT_EQ(text("a\n"), "a\n");
  EXPECT_EQ(text("a"), "a");
  EXPECT_EQ(text("a\r\nb\rc\n\n"), "a\nb\nc\n\n");
}

TEST(Jinja, Loops) {
  EXPECT_EQ(text("{% for x in range(3) %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ "
                 "loop.length }} {% endfor %}"),
            "10TrueFalse3 21FalseFalse3 32FalseTrue3 ");
  EXPECT_EQ(text("{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }} {% endfor %}"), "3 7 ");
  EXPECT_EQ(text("{% for k in m %}{{ k }}={{ m[k] }};{% endfor %}", {{"m", Map{{"b", 2}, {"a", 1}}}}), "a=1;b=2;");
  EXPECT_EQ(text("{% for i in [1, 2] %}{% for j in [3] %}{{ i * j }}{{ loop.length }}{% endfor %}{{ "
                 "loop.length }}{% endfor %}"),
            "312612");
  EXPECT_EQ(text("{% for x in 'abc' %}{% endfor %}"), "error: a loop runs over a list or a map, not string");
  EXPECT_EQ(text("{% for a, b in [1] %}{% endfor %}"), "error: each item must be a list of 2");
}

TEST(Jinja, LoopAndMacroVariablesStayInside) {
  EXPECT_EQ(text("{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}"), "231");
  EXPECT_EQ(text("{% set x = 1 %}{% macro f() %}{% set x = 5 %}{{ x }}{% endmacro %}{{ f() }}{{ x }}"), "51");
  EXPECT_EQ(text("{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}"), "2");
  EXPECT_EQ(text({{"main", "{% include 'a' %}{{ x|default('none') }}"}, {"a", "{% set x = 1 %}{{ x }}"}}), "1none");
  EXPECT_EQ(text("{% for i in [1] %}{% endfor %}{{ i }}"), "error: undefined name \"i\"");
}

TEST(Jinja, AMacroSeesItsTemplateNotItsCaller) {
  EXPECT_EQ(text("{% macro f() %}{{ index }}{% endmacro %}{% for index in [1] %}{{ f() }}{% endfor %}"),
            "error: undefined name \"index\"; known: f");
  EXPECT_EQ(text("{% macro f() %}{{ BM }}{% endmacro %}{{ f() }}", kTile), "128");
  EXPECT_EQ(text({{"main", "{% import 'a' as a %}{{ a.f() }}"}, {"a", "{% macro f() %}{{ BM }}{% endmacro %}"}}, kTile),
            "error: undefined name \"BM\"; known: f");
}

TEST(Jinja, MacroTextIsAValue) {
  EXPECT_EQ(text("{% macro f(x) %} {{ x }} {% endmacro %}{{ f(2)|trim|int + 1 }}{{ f(f(1)|trim) }}"), "3 1 ");
}

TEST(Jinja, MacroMisuse) {
  const std::string f = "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}";
  EXPECT_EQ(text(f + "{{ f(1) }}"), "11");
  EXPECT_EQ(text(f + "{{ f() }}"), "error: argument \"a\" of macro f is missing");
  EXPECT_EQ(text(f + "{{ f(1, 2, 3) }}"), "error: macro f takes 2 arguments, not 3");
  EXPECT_EQ(text(f + "{{ f(1, c=3) }}"), "error: macro f has no parameter \"c\"");
  EXPECT_EQ(text(f + "{{ f(1, a=3) }}"), "error: argument \"a\" of macro f is given twice");
  EXPECT_EQ(text(f + "{{ f }}"), "error: \"f\" is a macro or an imported template, not a value");
  EXPECT_EQ(text(f + "{{ g(1) }}"), "error: unknown function \"g\"; did you mean \"f\"?");
  EXPECT_EQ(text("{% macro len(a) %}{% endmacro %}"), "error: \"len\" is a function; give the macro another name");
  EXPECT_EQ(text("{% macro f(a=b, b=1) %}{% endmacro %}"), "error: a default can only use the parameters before it");
}

TEST(Jinja, ANameThatWasReadCannotBeSetLater) {
  EXPECT_EQ(text("{{ BM }}{% set BM = 1 %}", kTile),
            "error: \"BM\" is set after this scope has read it; set it before, or use another name");
  EXPECT_EQ(text("{% set BM = BM + 1 %}{{ BM }}", kTile), "129");
}

TEST(Jinja, AssertGivesMessageAndReason) {
  EXPECT_EQ(text("{% assert BM % 16 == 0, 'BM' %}ok", kTile), "ok");
  EXPECT_EQ(text("{% assert BM % 48 == 0, 'BM must be a multiple of ' + str(48) %}", kTile),
            "error: BM must be a multiple of 48: BM % 48 == 0 (32 != 0)");
}

TEST(Jinja, EachOutputLineKnowsItsTemplateLine) {
  const Files files{{"main",
                     "{% import 'lib' as m %}\n"
                     "first {{ 1 }}\n"
                     "{% for i in [1, 2] %}\n"
                     "  loop {{ i }}\n"
                     "{% endfor %}\n"
                     "{% include 'part' %}\n"
                     "    {{ m.f(1) }}\n"
                     "{{ text }} tail\n"
                     "\n"
                     "last"},
                    {"part", "{# comment #}\npart\n"},
                    {"lib", "\n{% macro f(x) %}\nmacro {{ x }}\n{% if x %}\nmore\n{% endif %}\n{% endmacro %}\n"}};
  const Map context{{"text", "two\nlines"}};
  EXPECT_EQ(text(files, context), "first 1\n  loop 1\n  loop 2\npart\n    macro 1\nmore\n\ntwo\nlines tail\n\nlast");
  EXPECT_EQ(lines(files, context), (std::vector<std::string>{"main:2", "main:4", "main:4", "part:2", "lib:3", "lib:5",
                                                             "main:7", "main:8", "main:8", "main:9", "main:10"}));
}

TEST(Jinja, TheLineMapHasOneEntryPerLine) {
  EXPECT_TRUE(lines({{"main", ""}}).empty());
  EXPECT_EQ(lines({{"main", "a\n"}}).size(), 1u);
  EXPECT_EQ(lines({{"main", "a\n\n"}}).size(), 2u);
  EXPECT_EQ(lines({{"main", "a\nb"}}).size(), 2u);
}

TEST(Jinja, HostileTemplatesEndInAnError) {
  EXPECT_EQ(text({{"main", "{% include 'main' %}"}}),
            "error: includes and macro calls nest too deeply; the limit is 50");
  EXPECT_EQ(text("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
            "error: includes and macro calls nest too deeply; the limit is 50");
  const Limits few{.steps = 10000, .output_bytes = 1000};
  const std::string loops = "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}";
  EXPECT_EQ(text(Files{{"main", loops}}, {}, few), "error: too many evaluation steps");
  EXPECT_EQ(text(Files{{"main", "{% for a in range(1000) %}ab{% endfor %}"}}, {}, few),
            "error: the output is longer than 1000 bytes");
  std::string doubling = "{% set x = 'aaaaaaaaaaaaaaaa' %}";
  for (int i = 0; i < 40; ++i) doubling += "{% set x = x + x %}";
  EXPECT_EQ(text(doubling), "error: a string of 2097152 bytes; the limit is 1048576");
  std::string sharing = "{% set x = [1, 1] %}";
  for (int i = 0; i < 30; ++i) sharing += "{% set x = [x, x] %}";
  EXPECT_EQ(text(Files{{"main", sharing}}, {}, few), "error: too many evaluation steps");
  std::string ifs;
  for (int i = 0; i < 1000; ++i) ifs += "{% if 1 %}";
  EXPECT_EQ(text(ifs), "error: tags nest too deeply; the limit is 50");
}

TEST(Jinja, DeepExpressionsInDeepCallsStayOnTheStack) {
  std::string deep = "f(n)|int";
  for (int i = 0; i < 90; ++i) deep = "(1 + " + deep + ")";
  EXPECT_EQ(text("{% macro f(n) %}{{ " + deep + " }}{% endmacro %}{{ f(1) }}"), "error: nested too deeply");
}

TEST(Jinja, AMissingTemplateIsNamed) {
  EXPECT_EQ(text(Files{}), "error: no template \"main\"");
  EXPECT_EQ(text("{% include 'x' + 'y' %}"), "error: no template \"xy\"");
}

}  // namespace
}  // namespace roofgen::jinja::jinja_test
