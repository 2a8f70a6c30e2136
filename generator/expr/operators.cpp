#include "generator/expr/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "generator/expr/value_text.h"

namespace roofgen::expr {
namespace {

constexpr int kMaxValueDepth = 32;  // lists in lists; printing, comparing and freeing them recurse

[[noreturn]] void mismatch(Op op, const Value& a, const Value& b, const Site& site) {
  site.fail(fmt::format("\"{}\" does not work on {} and {}", to_string(op), a.type_name(), b.type_name()));
}

[[noreturn]] void overflow(Op op, int64_t a, int64_t b, const Site& site) {
  site.fail(fmt::format("integer overflow: {} {} {} does not fit 64 bits", a, to_string(op), b));
}

int64_t power(int64_t base, int64_t exponent, const Site& site) {
  int64_t result = 1;
  for (int64_t b = base, e = exponent; e > 0;) {
    if ((e & 1) && __builtin_mul_overflow(result, b, &result)) overflow(Op::kPow, base, exponent, site);
    e >>= 1;
    if (e > 0 && __builtin_mul_overflow(b, b, &b)) overflow(Op::kPow, base, exponent, site);
  }
  return result;
}

void check_divisor(bool zero, const Site& site) {
  if (zero) site.fail("division by zero");
}

double float_power(double a, double b, const Site& site) {
  if (a == 0 && b < 0) site.fail("zero to a negative power");
  if (a < 0 && std::isfinite(b) && b != std::floor(b)) site.fail("a negative number to a fractional power");
  return std::pow(a, b);
}

Value binary_int(Op op, int64_t a, int64_t b, const Site& site) {
  int64_t r = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &r)) overflow(op, a, b, site);
      return r;
    case Op::kSub:
      if (__builtin_sub_overflow(a, b, &r)) overflow(op, a, b, site);
      return r;
    case Op::kMul:
      if (__builtin_mul_overflow(a, b, &r)) overflow(op, a, b, site);
      return r;
    case Op::kPow:
      if (b < 0) return make_float(float_power(static_cast<double>(a), static_cast<double>(b), site), site);
      return power(a, b, site);
    default: break;
  }
  check_divisor(b == 0, site);
  if (b == -1) {  // a special case, because INT64_MIN / -1 and INT64_MIN % -1 are undefined in C++
    if (op == Op::kMod) return int64_t{0};
    if (__builtin_sub_overflow(int64_t{0}, a, &r)) overflow(op, a, b, site);
    return r;
  }
  const int64_t quotient = a / b, rest = a % b;
  const bool round_down = rest != 0 && (rest < 0) != (b < 0);
  if (op == Op::kFloorDiv) return quotient - round_down;
  if (op == Op::kMod) return round_down ? rest + b : rest;
  if (rest != 0) site.fail(fmt::format("{} / {} is not an integer; // rounds down, 1.0 * a / b is a float", a, b));
  return quotient;
}

/// Python's floor division and remainder: the remainder has the sign of the divisor.
double float_mod(double a, double b) {
  double mod = std::fmod(a, b);
  if (mod == 0) return std::copysign(0.0, b);
  return (b < 0) != (mod < 0) ? mod + b : mod;
}

double float_floor_div(double a, double b) {
  double mod = std::fmod(a, b);
  double div = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) div -= 1.0;
  if (div == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(div);
  return div - floor > 0.5 ? floor + 1.0 : floor;
}

Value binary_float(Op op, double a, double b, const Site& site) {
  switch (op) {
    case Op::kAdd: return make_float(a + b, site);
    case Op::kSub: return make_float(a - b, site);
    case Op::kMul: return make_float(a * b, site);
    case Op::kPow: return make_float(float_power(a, b, site), site);
    default: break;
  }
  check_divisor(b == 0, site);
  if (op == Op::kDiv) return make_float(a / b, site);
  return make_float(op == Op::kMod ? float_mod(a, b) : float_floor_div(a, b), site);
}

/// Exact: converting the integer to double could round.
std::partial_ordering order_mixed(int64_t i, double d) {
  if (std::isnan(d)) return std::partial_ordering::unordered;
  if (d >= 0x1p63) return std::partial_ordering::less;
  if (d < -0x1p63) return std::partial_ordering::greater;
  const auto whole = static_cast<int64_t>(d);
  if (i != whole) return i <=> whole;
  return 0.0 <=> d - static_cast<double>(whole);
}

std::optional<std::partial_ordering> order_numbers(const Value& a, const Value& b) {
  const auto ai = as_int(a), bi = as_int(b);
  if (ai && bi) return *ai <=> *bi;
  const auto *ad = a.as<double>(), *bd = b.as<double>();
  if (ad && bd) return *ad <=> *bd;
  if (ai && bd) return order_mixed(*ai, *bd);
  if (ad && bi) return 0 <=> order_mixed(*bi, *ad);
  return std::nullopt;
}

int depth_of(const Value& v, int limit, const Site& site) {
  const List* list = v.list();
  if (!list) return 0;
  site.charge(list->size());
  int depth = 0;
  for (const Value& item : *list) {
    if (limit == 0) site.fail(fmt::format("lists nest too deeply; the limit is {}", kMaxValueDepth));
    if (item.list()) depth = std::max(depth, depth_of(item, limit - 1, site));
  }
  return depth + 1;
}

}  // namespace

const char* to_string(Op op) {
  static constexpr const char* kNames[] = {"+",   "-",  "*",  "/", "//", "%", "**", "-",  "+",
                                           "not", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kNames[static_cast<size_t>(op)];
}

std::optional<int64_t> as_int(const Value& v) {
  if (auto i = v.as<int64_t>()) return *i;
  if (auto b = v.as<bool>()) return *b;
  return std::nullopt;
}

std::optional<double> as_number(const Value& v) {
  if (auto d = v.as<double>()) return *d;
  if (auto i = as_int(v)) return static_cast<double>(*i);
  return std::nullopt;
}

Value make_list(List list, const Site& site) {
  if (list.size() > kMaxListLength)
    site.fail(fmt::format("a list of {} items; the limit is {}", list.size(), kMaxListLength));
  Value v(std::move(list));
  depth_of(v, kMaxValueDepth, site);
  return v;
}

Value make_string(std::string text, const Site& site) {
  if (text.size() > kMaxStringBytes)
    site.fail(fmt::format("a string of {} bytes; the limit is {}", text.size(), kMaxStringBytes));
  site.charge(text.size() / 16);
  return text;
}

Value make_float(double v, const Site& site) {
  if (!std::isfinite(v)) site.fail("the result does not fit a float");
  return v;
}

std::string make_text(const Value& v, const Site& site) {
  std::string out;
  if (!append_text(v, out, kMaxStringBytes)) site.fail(fmt::format("a text of more than {} bytes", kMaxStringBytes));
  site.charge(out.size() / 16);
  return out;
}

Value unary(Op op, const Value& a, const Site& site) {
  if (op == Op::kNot) return !a.truthy();
  if (auto i = as_int(a)) return op == Op::kNeg ? binary_int(Op::kSub, 0, *i, site) : Value(*i);
  if (auto d = a.as<double>()) return op == Op::kNeg ? -*d : *d;
  site.fail(fmt::format("\"{}\" does not work on {}", to_string(op), a.type_name()));
}

Value binary(Op op, const Value& a, const Value& b, const Site& site) {
  const auto ai = as_int(a), bi = as_int(b);
  if (ai && bi) return binary_int(op, *ai, *bi, site);
  const auto ad = as_number(a), bd = as_number(b);
  if (ad && bd) return binary_float(op, *ad, *bd, site);
  if (op == Op::kAdd) {
    auto as = a.as<std::string>(), bs = b.as<std::string>();
    if (as && bs) return make_string(*as + *bs, site);
    const List *al = a.list(), *bl = b.list();
    if (al && bl) {
      List out(*al);
      out.insert(out.end(), bl->begin(), bl->end());
      return make_list(std::move(out), site);
    }
  }
  mismatch(op, a, b, site);
}

bool equal(const Value& a, const Value& b, const Site& site) {
  if (auto o = order_numbers(a, b)) return *o == 0;
  const auto *as = a.as<std::string>(), *bs = b.as<std::string>();
  if (as && bs) return *as == *bs;
  const List *al = a.list(), *bl = b.list();
  if (al && bl) {
    if (al->size() != bl->size()) return false;
    const Depth depth(site);
    site.charge(al->size());
    return std::equal(al->begin(), al->end(), bl->begin(), [&](auto& x, auto& y) { return equal(x, y, site); });
  }
  const Map *am = a.map(), *bm = b.map();
  if (am && bm) {
    if (am->size() != bm->size()) return false;
    const Depth depth(site);
    site.charge(am->size());
    return std::equal(am->begin(), am->end(), bm->begin(),
                      [&](auto& x, auto& y) { return x.first == y.first && equal(x.second, y.second, site); });
  }
  return a.is_none() && b.is_none();
}

std::partial_ordering order(const Value& a, const Value& b, const Site& site) {
  if (auto o = order_numbers(a, b)) return *o;
  const auto *as = a.as<std::string>(), *bs = b.as<std::string>();
  if (as && bs) return as->compare(*bs) <=> 0;
  const List *al = a.list(), *bl = b.list();
  if (!al || !bl) mismatch(Op::kLt, a, b, site);
  const Depth depth(site);
  for (size_t i = 0; i < al->size() && i < bl->size(); ++i) {
    site.charge(1);
    if (!equal((*al)[i], (*bl)[i], site)) return order((*al)[i], (*bl)[i], site);
  }
  return al->size() <=> bl->size();
}

bool contains(const Value& container, const Value& item, const Site& site) {
  if (const List* list = container.list()) {
    site.charge(list->size());
    return std::any_of(list->begin(), list->end(), [&](const Value& v) { return equal(v, item, site); });
  }
  const auto* key = item.as<std::string>();
  if (auto text = container.as<std::string>(); text && key) {
    site.charge(text->size() / 16);
    return text->find(*key) != text->npos;
  }
  if (const Map* map = container.map(); map && key) return map->count(*key) > 0;
  mismatch(Op::kIn, item, container, site);
}

}  // namespace roofgen::expr
