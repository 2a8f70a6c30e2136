#include "tests/generator/random_template.h"

namespace roofgen::test {

nlohmann::json random_context() {
  return {{"a", 1},          {"b", 7},
          {"c", -12},        {"d", 64},
          {"f", 0.5},        {"g", -1e-7},
          {"s", "bf16"},     {"t", " It's\n"},
          {"p", true},       {"q", false},
          {"xs", {3, 1, 2}}, {"ws", {"x", "Y\"", "'z'"}},
          {"none", nullptr}, {"m", {{"i", 5}, {"s", "k"}, {"xs", {4, 5}}}}};
}

std::string RandomTemplate::expression(Type type, int depth) {
  // Occasionally another type: both engines must agree, or roofgen's must reject the expression.
  if (chance(2)) return any_expression(depth);
  switch (type) {
    case Type::kInt: return int_expression(depth);
    case Type::kFloat: return float_expression(depth);
    case Type::kString: return string_expression(depth);
    case Type::kBool: return bool_expression(depth);
    case Type::kList: return list_expression(depth);
  }
  return "";
}

std::string RandomTemplate::any_expression(int depth) {
  switch (below(5)) {
    case 0: return int_expression(depth);
    case 1: return float_expression(depth);
    case 2: return string_expression(depth);
    case 3: return bool_expression(depth);
    default: return list_expression(depth);
  }
}

std::string RandomTemplate::int_expression(int depth) {
  const auto sub = [&] { return expression(Type::kInt, depth - 1); };
  if (depth <= 0 || chance(15)) {
    if (loops_ && chance(25)) return pick({"loop.index", "loop.index0", "loop.length"});
    if (!context_ || chance(40)) return pick({"0", "1", "2", "3", "10", "255", "0x20", "1000000007"});
    return pick({"a", "b", "c", "d", "m.i", "m['i']", "xs[1]", "xs[-1]", "(d)", "m.xs[0]"});
  }
  switch (below(12)) {
    case 0:
    case 1: return sub() + space() + pick({"+", "-", "*"}) + space() + sub();
    case 2: return "(" + sub() + pick({"+", "-", "*", " // ", "//", "%", " % "}) + sub() + ")";
    case 3: return "(" + sub() + ")" + pick({" // ", "%", " / "}) + pick({"2", "3", "-4", "5", "1"});
    case 4: return "(" + sub() + ") ** " + pick({"0", "1", "2", "3"});
    case 5: return pick({"min", "max"}) + "(" + sub() + ", " + sub() + ")";
    case 6: return "-" + space() + "(" + sub() + ")";
    case 7: return "(" + sub() + " if " + expression(Type::kBool, depth - 1) + " else " + sub() + ")";
    case 8: return "len(" + expression(chance(50) ? Type::kList : Type::kString, depth - 1) + ")";
    case 9: return "(" + expression(Type::kList, depth - 1) + ")|" + pick({"length", "first", "last", "max", "min"});
    case 10: return pick({"ceil_div", "align_up"}) + "(" + sub() + "," + space() + pick({"1", "3", "16"}) + ")";
    default: return "(" + sub() + ")|abs|int";
  }
}

std::string RandomTemplate::float_expression(int depth) {
  const auto sub = [&] { return expression(Type::kFloat, depth - 1); };
  if (depth <= 0 || chance(15)) {
    if (!context_ || chance(50)) return pick({"1e-6", "0.1", "2.5", "1.0", "1e16", "123456.789", "3.0e2"});
    return pick({"f", "g"});
  }
  switch (below(7)) {
    case 0: return sub() + space() + pick({"+", "-", "*"}) + space() + sub();
    case 1: return "(" + sub() + ")" + pick({" / ", " // ", " % "}) + pick({"2", "-3", "0.7", "1e3"});
    case 2: return "(" + expression(Type::kInt, depth - 1) + pick({" * ", " + ", " - "}) + sub() + ")";
    case 3: return "(" + sub() + ")|round(" + pick({"", "1", "2", "4"}) + ")";
    case 4: return "float(" + expression(Type::kInt, depth - 1) + ")";
    case 5: return "(" + sub() + ")|abs";
    default: return "(" + sub() + ") ** " + pick({"2", "0.5", "-1"});
  }
}

std::string RandomTemplate::string_expression(int depth) {
  const auto sub = [&] { return expression(Type::kString, depth - 1); };
  if (depth <= 0 || chance(15)) {
    if (!context_ || chance(50))
      return pick({"'x'", "\"it's\"", "''", "'a\\tb\\n'", "'\\\\'", "\"}}\"", "'%}'", "'{{'", "'\xC3\xA9'"});
    return pick({"s", "t", "m.s", "ws[0]"});
  }
  switch (below(9)) {
    case 0: return "(" + sub() + " + " + sub() + ")";
    case 1: return "str(" + any_expression(depth - 1) + ")";
    case 2: return "(" + any_expression(depth - 1) + ")|string";
    case 3: return "(" + expression(Type::kList, depth - 1) + ")|join" + pick({"", "(', ')", "('')"});
    case 4: return "(" + sub() + ")|" + pick({"upper", "lower", "trim"});
    case 5: return "(" + sub() + ")|replace('x'," + space() + "'yy')";
    case 6: return "(" + sub() + " if " + expression(Type::kBool, depth - 1) + " else " + sub() + ")";
    case 7: return pick({"missing", "s"}) + "|default(" + sub() + ")";
    default:
      if (calls_) return pick({"one", "lib.one"}) + "(" + sub() + (chance(50) ? ", k=" + sub() : "") + ")";
      return "join(" + expression(Type::kList, depth - 1) + ", '-')";
  }
}

std::string RandomTemplate::bool_expression(int depth) {
  const auto sub = [&] { return expression(Type::kBool, depth - 1); };
  if (depth <= 0 || chance(15)) {
    if (loops_ && chance(25)) return pick({"loop.first", "loop.last"});
    if (!context_ || chance(40)) return pick({"true", "False", "True", "false"});
    return pick({"p", "q"});
  }
  const Type type = chance(50) ? Type::kInt : chance(50) ? Type::kFloat : Type::kString;
  const auto compare = [&] {
    return space() + pick({"<", "<=", ">", ">=", "==", "!="}) + space() + expression(type, depth - 1);
  };
  switch (below(7)) {
    case 0:
    case 1: return "(" + expression(type, depth - 1) + compare() + (chance(25) ? compare() : "") + ")";
    case 2: return sub() + pick({" and ", " or "}) + sub();
    case 3: return "(not " + sub() + ")";
    case 4:
      return "(" + expression(Type::kInt, depth - 1) + pick({" in ", " not in "}) + expression(Type::kList, depth - 1) +
             ")";
    case 5: return "(" + expression(Type::kString, depth - 1) + " in " + expression(Type::kString, depth - 1) + ")";
    default: return "is_pow2(" + expression(Type::kInt, depth - 1) + ")";
  }
}

std::string RandomTemplate::list_expression(int depth) {
  if (depth <= 0 || chance(15))
    return context_ ? pick({"xs", "ws", "m.xs", "[]", "[a]"}) : pick({"[]", "[1, 2]", "['u', 0.5]"});
  switch (below(5)) {
    case 0: return "[" + any_expression(depth - 1) + ", " + any_expression(depth - 1) + pick({"", ","}) + "]";
    case 1: return "range(" + pick({"3", "2, 5", "5, 0, -2", "0"}) + ")";
    case 2: return "(" + expression(Type::kList, depth - 1) + " + " + expression(Type::kList, depth - 1) + ")";
    case 3: return "[" + expression(Type::kInt, depth - 1) + "," + expression(Type::kInt, depth - 1) + "]";
    default:
      return "(" + expression(Type::kList, depth - 1) + " if " + expression(Type::kBool, depth - 1) + " else [0])";
  }
}

std::string RandomTemplate::text() {
  return pick({"\n", "\n\n", "  ", " ", "x", "int y = 1;", "a ## b", "{ {1}}", "\t", "\n    ", "};\n", "%}", "# 1\n",
               "\r\n", "\xC3\xA9", "{ ", "}", "-"});
}

std::string RandomTemplate::tag(const std::string& inside) {
  const std::string open = pick({"", "", "", "-", "+"}), close = pick({"", "", "", "-", "+"});
  return "{%" + open + pick({" ", "  ", "\n"}) + inside + " " + close + "%}";
}

std::string RandomTemplate::output(const std::string& inside) {
  return "{{" + pick({"", "", "-"}) + " " + inside + pick({" ", "\n "}) + pick({"", "", "-"}) + "}}";
}

std::string RandomTemplate::statements(int depth) {
  std::string out;
  for (uint64_t i = 0, n = 1 + below(4); i < n; ++i) out += text() + statement(depth);
  return out + text();
}

std::string RandomTemplate::statement(int depth) {
  const uint64_t kind = depth <= 0 ? below(5) : below(10);
  switch (kind) {
    case 0:
    case 1: return output(any_expression(2));
    case 2: return tag("set " + pick({"v", "w", "a", "s"}) + " = " + any_expression(2));
    case 3: return output(pick({"v", "w", "a", "s"}) + "|default('-')");
    case 4:
      return pick({"{# x #}", "{#- y\n -#}", "{% raw %}\n{{ {% {# \n {% endraw %}", "{%- raw -%} r {%- endraw +%}\n",
                   "{#+ z +#}\n"});
    case 5:
    case 6: {
      std::string out = tag("if " + bool_expression(2)) + statements(depth - 1);
      if (chance(40)) out += tag("elif " + bool_expression(1)) + statements(depth - 1);
      if (chance(50)) out += tag("else") + statements(depth - 1);
      return out + tag("endif");
    }
    case 7:
    case 8: {
      const std::string head =
          chance(80) ? "for v in " + list_expression(2) : "for v, w in [[1, 'x'], [2, " + any_expression(1) + "]]";
      ++loops_;
      const std::string body = statements(depth - 1);
      --loops_;
      return tag(head) + body + tag("endfor");
    }
    default:
      if (!calls_) return tag("assert " + bool_expression(1) + " or true, 'never'");
      return chance(50) ? output(pick({"one", "lib.one"}) + "(" + any_expression(1) + ")") : tag("include 'part'");
  }
}

std::string RandomTemplate::macro(const std::string& name) {
  const int loops = std::exchange(loops_, 0);
  const bool calls = std::exchange(calls_, false);
  std::string out = tag("macro " + name + "(v, k=" + any_expression(1) + ", w=k)") + output("v") + statements(1) +
                    output("w") + tag("endmacro");
  loops_ = loops;
  calls_ = calls;
  return out;
}

ReferenceCase RandomTemplate::make() {
  ReferenceCase out{{}, "main", random_context()};
  out.templates["part"] = statements(1);
  context_ = false;
  out.templates["lib"] = text() + macro("one") + text();
  context_ = true;
  calls_ = true;
  std::string main = tag("import 'lib' as lib") + text() + macro("one");
  main += statements(2);
  calls_ = false;
  out.templates["main"] = main;
  return out;
}

}  // namespace roofgen::test
