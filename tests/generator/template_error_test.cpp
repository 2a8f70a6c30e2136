// Every file in errors/ contains a mistake and its exact message.
#include <gtest/gtest.h>

#include "tests/generator/json_value.h"
#include "tests/generator/sections.h"

namespace roofgen::test::template_error_test {
namespace {

/// The error of a case's template, or of its expression (section "expression").
std::string error_of(const Case& c) {
  auto text = c.sections.find("expression");
  if (text == c.sections.end()) {
    const auto r = render_case(c);
    return r ? "no error; the output is:\n" + r->text : to_string(r.error());
  }
  const std::string one_line = text->second.substr(0, text->second.size() - 1);
  auto e = expr::Expr::parse(one_line, {"space.json", 3, 10});
  if (!e) return to_string(e.error());
  auto context = c.sections.find("context");
  auto v = e->eval(context == c.sections.end() ? expr::Map{} : parse_context(context->second));
  return v ? "no error; the value is " + v->str() : to_string(v.error());
}

TEST(TemplateErrors, AreExactlyAsRecorded) {
  const std::vector<Case> cases = read_cases("errors");
  ASSERT_GE(cases.size(), 10u);
  for (const Case& c : cases) {
    const std::string error = error_of(c) + "\n";
    EXPECT_NE(error.rfind("no error", 0), 0u) << c.name;
    if (update_section(c, "error", error)) continue;
    EXPECT_EQ(c.sections.count("error") ? c.sections.at("error") : "", error) << c.name;
  }
}

}  // namespace
}  // namespace roofgen::test::template_error_test
