#include "base/json_scan.h"

#include <algorithm>
#include <set>

namespace roofgen {
namespace {

/// The offset of the document after an optional byte order mark.
size_t begin_of(std::string_view text) { return text.starts_with("\xef\xbb\xbf") ? 3 : 0; }

}  // namespace

std::optional<JsonScan::Fault> JsonScan::fault() {
  at_ = begin_of(text_);
  if (!value(nullptr)) return fault_;
  next();
  if (at_ < text_.size()) return Fault{at_, "the end of the file"};
  return std::nullopt;
}

std::optional<size_t> JsonScan::find(const Json& root, const Json& wanted, std::string_view member) {
  at_ = begin_of(text_);
  wanted_ = &wanted;
  member_ = member;
  found_.reset();
  value(&root);
  return found_;
}

std::unordered_map<const Json*, size_t> JsonScan::places(const Json& root) {
  std::unordered_map<const Json*, size_t> out;
  at_ = begin_of(text_);
  places_ = &out;
  value(&root);
  places_ = nullptr;
  return out;
}

std::vector<size_t> JsonScan::items_of_list() {
  std::vector<size_t> out;
  at_ = begin_of(text_);
  if (next() != '[') return out;
  do {
    ++at_;
    next();
    out.push_back(at_);
  } while (value(nullptr) && next() == ',');
  return out;
}

/// The next character after white space; 0 at the end.
char JsonScan::next() {
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonScan::expect(const char* what) {
  // For a document that ends too early, points after its last character, not at an empty line.
  const bool ends = at_ >= text_.size();
  fault_ = {ends ? text_.find_last_not_of(" \t\r\n") + 1 : at_, what};
  return false;
}

/// Returns false after an error or when the wanted value was found.
bool JsonScan::value(const Json* j) {
  const char c = next();
  if (places_) places_->emplace(j, at_);
  if (j && j == wanted_ && member_.empty()) {
    found_ = at_;
    return false;
  }
  if (c == '{') return items(j, '}');
  if (c == '[') return items(j, ']');
  if (c == '"') return string("a string with its closing quote, in one line and with the escapes that JSON has,");
  const size_t begin = at_, end = std::min(text_.find_first_of(" \t\r\n,:[]{}\"", begin), text_.size());
  const std::string_view word = text_.substr(begin, end - begin);
  // The parser would take a zero byte for the end of the text, and would skip a byte order mark.
  if (word.empty() || word.find('\0') != word.npos || begin_of(word) > 0 || !Json::accept(word))
    return expect(std::string_view("+-.0123456789").find(c) != std::string_view::npos
                      ? "a number as JSON writes it, of at most 1.8e308,"
                      : "a value (a number, a \"string\", true, false, null, a list or an object)");
  at_ = end;
  return true;
}

bool JsonScan::string(const char* expected) {
  const size_t begin = at_;
  size_t end = begin + 1;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
  if (end >= text_.size() || !Json::accept(text_.substr(begin, end + 1 - begin))) return expect(expected);
  at_ = end + 1;
  return true;
}

/// The items of an object or a list.
bool JsonScan::items(const Json* j, char close) {
  const bool object = close == '}';
  ++at_;
  if (next() == close) return ++at_, true;
  Json::const_iterator item;
  if (j) item = j->begin();
  std::set<std::string_view> names;
  for (;; ++at_) {
    if (object) {
      if (next() != '"') return expect("the name of a member in double quotes");
      const size_t name = at_ + 1;
      if (!string("the name of a member in double quotes")) return false;
      if (j && j == wanted_ && item.key() == member_) {
        found_ = name;
        return false;
      }
      if (!names.insert(text_.substr(name, at_ - name)).second) {
        at_ = name;
        return expect("a name that the object has not yet");
      }
      if (next() != ':') return expect("':'");
      ++at_;
    }
    if (!value(j ? &*item : nullptr)) return false;
    if (j) ++item;
    const char c = next();
    if (c == close) return ++at_, true;
    if (c != ',') return expect(object ? "',' or '}'" : "',' or ']'");
  }
}

}  // namespace roofgen
