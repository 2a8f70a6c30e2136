#include "roofline/lint/shape.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <set>
#include <vector>

namespace roofgen {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : text + " ") {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (letter)
      word += c;
    else if (c >= 'A' && c <= 'Z')
      word += static_cast<char>(c - 'A' + 'a');
    else if (!word.empty())
      out.push_back(std::exchange(word, ""));
  }
  return out;
}

/// Words of kernels without matrix work that no formula has.
constexpr std::array kElementwise{"gelu", "elementwise", "dropout"};

bool matches(std::string_view pattern, const std::vector<std::string>& words) {
  const bool prefix = pattern.ends_with('*');
  if (prefix) pattern.remove_suffix(1);
  return std::ranges::any_of(words,
                             [&](const std::string& w) { return prefix ? w.starts_with(pattern) : w == pattern; });
}

struct Brackets {
  std::vector<std::string> items;
  size_t begin = 0, end = 0;
};

/// Groups "[a, b]" and "[a, b, c]".
std::vector<Brackets> groups(const std::string& text) {
  std::vector<Brackets> out;
  for (size_t open = text.find('['); open != std::string::npos; open = text.find('[', open + 1)) {
    const size_t close = text.find(']', open);
    if (close == std::string::npos) break;
    Brackets g{{""}, open, close + 1};
    for (size_t i = open + 1; i < close; ++i) {
      if (text[i] == ',')
        g.items.emplace_back();
      else if (text[i] != ' ')
        g.items.back() += text[i];
    }
    const bool named = std::all_of(g.items.begin(), g.items.end(), [](const std::string& s) { return !s.empty(); });
    if (named && (g.items.size() == 2 || g.items.size() == 3)) out.push_back(std::move(g));
  }
  return out;
}

std::string between(const std::string& text, const Brackets& a, const Brackets& b) {
  std::string out;
  for (size_t i = a.end; i < b.begin; ++i)
    if (text[i] != ' ') out += text[i];
  return out;
}

/// Stores `item` in `shape` as a number or as an open letter; false for anything else ("B/2").
bool bind(Shape& shape, const char* dim, const std::string& item) {
  int64_t value = 0;
  const auto [end, status] = std::from_chars(item.data(), item.data() + item.size(), value);
  if (status == std::errc() && end == item.data() + item.size()) {
    if (value < 1) return false;
    shape.dims[dim] = value;
    return true;
  }
  const bool word = std::all_of(item.begin(), item.end(),
                                [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; });
  if (word) shape.open[dim] = item;
  return word;
}

}  // namespace

std::optional<InferredOp> infer_op(const std::string& kernel_name, const std::map<std::string, WorkFormula>& formulas) {
  const std::vector<std::string> all = words(kernel_name);
  const WorkFormula* found = nullptr;
  for (const auto& [op, f] : formulas)
    if (!found || f.tables().order < found->tables().order)
      if (std::ranges::any_of(f.tables().names, [&](const auto& name) { return matches(name, all); })) found = &f;
  if (found) return InferredOp{found->op(), found->uses_matrix_units()};
  if (std::ranges::any_of(kElementwise, [&](const char* name) { return matches(name, all); })) return InferredOp{};
  return {};
}

std::string infer_dtype(const std::string& text) {
  std::string found;
  for (const std::string& w : words(text)) {
    const auto& formats = number_formats();
    if (std::none_of(formats.begin(), formats.end(), [&](const NumberFormat& f) { return w == f.name; })) continue;
    if (!found.empty() && found != w) return "";
    found = w;
  }
  return found;
}

std::optional<Shape> find_shape(const std::string& text) {
  const std::vector<Brackets> all = groups(text);
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const auto &a = all[i].items, &b = all[i + 1].items;
    if (a.size() != b.size()) continue;
    const std::string sign = between(text, all[i], all[i + 1]);
    const bool arrow = sign == "->" || sign == "=>" || sign == "\xE2\x86\x92";
    const bool times = sign == "x" || sign == "X" || sign == "*" || sign == "@" || sign == "\xC3\x97";
    Shape shape;
    const size_t first = a.size() - 2;
    bool good = false;
    if (arrow)
      good = a[first] == b[first] && bind(shape, "M", a[first]) && bind(shape, "K", a[first + 1]) &&
             bind(shape, "N", b[first + 1]);
    else if (times)
      good = a[first + 1] == b[first] && bind(shape, "M", a[first]) && bind(shape, "K", a[first + 1]) &&
             bind(shape, "N", b[first + 1]);
    if (good && first == 1) good = a[0] == b[0] && bind(shape, "batch", a[0]);
    // Only M may be open: with an open N, K or batch no intensity limit exists.
    if (good && !shape.open.count("N") && !shape.open.count("K") && !shape.open.count("batch")) return shape;
  }
  return {};
}

namespace {

std::set<std::string> word_set(const std::string& name) {
  static const std::set<std::string> empty_words = {"nvidia", "geforce", "tensor", "core", "gpu", "hgx", "dgx"};
  std::set<std::string> out;
  std::string word;
  for (const char c : name + " ") {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (word.size() == 4 && word.starts_with("sxm")) word.pop_back();
    const bool size = word.size() > 2 && word.ends_with("gb") &&
                      std::all_of(word.begin(), word.end() - 2, [](unsigned char d) { return std::isdigit(d) != 0; });
    if (size) word.resize(word.size() - 2);
    if (!word.empty() && word != "gb" && !empty_words.count(word)) out.insert(word);
    word.clear();
  }
  return out;
}

/// Letters and digits only: "rtx4090".
std::string squeezed(const std::string& name) {
  std::string out;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::vector<const Device*> devices_named(const std::vector<Device>& catalogue, const std::string& name) {
  for (const Device& d : catalogue)
    if (squeezed(d.name) == squeezed(name)) return {&d};
  const std::set<std::string> wanted = word_set(name);
  if (wanted.empty()) return {};
  std::vector<const Device*> out;
  for (const Device& d : catalogue) {
    std::set<std::string> has = word_set(d.name);
    // The memory size, for products whose name does not need it.
    const std::set<std::string> title = word_set(d.title);
    has.insert(title.begin(), title.end());
    if (std::includes(has.begin(), has.end(), wanted.begin(), wanted.end())) out.push_back(&d);
  }
  return out;
}

}  // namespace roofgen
