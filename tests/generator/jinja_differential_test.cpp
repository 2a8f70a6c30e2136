// For every template that the engine accepts, python3-jinja2 must render the same text.
#include <gtest/gtest.h>

#include "tests/generator/json_value.h"
#include "tests/generator/random_template.h"
#include "tests/generator/reference.h"
#include "tests/generator/sections.h"

namespace roofgen::test::jinja_differential_test {
namespace {

Result<jinja::Rendered> render_ours(const ReferenceCase& c) {
  const auto loader = [&](std::string_view name) -> std::optional<std::string> {
    auto it = c.templates.find(std::string(name));
    return it == c.templates.end() ? std::nullopt : std::optional(it->second);
  };
  return jinja::render(loader, c.main, *to_value(c.context).map());
}

std::string show(const ReferenceCase& c) {
  std::string out;
  for (const auto& [name, text] : c.templates) out += "--- " + name + "\n" + text + "\n";
  return out;
}

/// Renders all templates with both engines and compares those that roofgen accepts; returns their number.
size_t compare(const std::vector<ReferenceCase>& cases) {
  const std::vector<ReferenceResult> reference = reference_render(cases);
  size_t accepted = 0;
  int shown = 0;
  for (size_t i = 0; i < cases.size() && shown < 10; ++i) {
    const auto ours = render_ours(cases[i]);
    if (!ours) continue;
    ++accepted;
    if (reference[i].ok && reference[i].text == ours->text) continue;
    ++shown;
    ADD_FAILURE() << "case " << i << "\n"
                  << show(cases[i]) << "--- ours\n"
                  << ours->text << "\n--- " << (reference[i].ok ? "jinja2\n" : "jinja2 fails\n") << reference[i].text;
  }
  return accepted;
}

#define SKIP_WITHOUT_REFERENCE() \
  if (!reference_available()) GTEST_SKIP() << "python3-jinja2 is not installed; nothing was compared"

TEST(JinjaDifferential, Cases) {
  SKIP_WITHOUT_REFERENCE();
  std::vector<ReferenceCase> cases;
  for (const Case& c : read_cases("cases")) {
    auto context = c.sections.find("context");
    cases.push_back({c.templates, c.main,
                     context == c.sections.end() ? nlohmann::json::object() : nlohmann::json::parse(context->second)});
  }
  ASSERT_GE(cases.size(), 10u);
  EXPECT_EQ(compare(cases), cases.size());
}

TEST(JinjaDifferential, RandomExpressions) {
  SKIP_WITHOUT_REFERENCE();
  RandomTemplate random(1);
  std::vector<ReferenceCase> cases;
  for (int i = 0; i < 2000; ++i)
    cases.push_back({{{"main", "{{ " + random.any_expression(4) + " }}"}}, "main", random_context()});
  // The others have overflows, inexact divisions or the few deliberate mixtures of types.
  EXPECT_GE(compare(cases), cases.size() / 2);
}

void compare_random_templates(int count) {
  SKIP_WITHOUT_REFERENCE();
  RandomTemplate random(2);
  std::vector<ReferenceCase> cases;
  for (int i = 0; i < count; ++i) cases.push_back(random.make());
  EXPECT_GE(compare(cases), cases.size() / 4);
}

TEST(JinjaDifferential, RandomTemplates) { compare_random_templates(150); }
TEST(SlowJinjaDifferential, RandomTemplates) { compare_random_templates(600); }

/// Comparison with recorded outputs, without a reference engine.
TEST(JinjaCases, RenderAsRecorded) {
  for (const Case& c : read_cases("cases")) {
    const auto r = render_case(c);
    ASSERT_TRUE(r) << c.name << "\n" << to_string(r.error());
    if (update_section(c, "output", r->text)) continue;
    EXPECT_EQ(c.sections.count("output") ? c.sections.at("output") : "", r->text) << c.name;
  }
}

}  // namespace
}  // namespace roofgen::test::jinja_differential_test
