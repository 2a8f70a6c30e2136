#include "base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json_scan.h"

namespace roofgen {
namespace {

constexpr int kMaxDepth = 64;

Error at_byte(const Source& source, size_t offset, std::string message) {
  const uint32_t at = static_cast<uint32_t>(offset);
  return located_error(source, {at, at}, std::move(message));
}

std::optional<Error> fault_of(const Source& source) {
  const auto fault = JsonScan(source.text).fault();
  if (!fault) return std::nullopt;
  return at_byte(source, fault->at, fmt::format("not valid JSON: {} was expected", fault->expected));
}

int nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

std::string twice_text(const std::string& name) { return fmt::format("an object has the member \"{}\" twice", name); }

/// Counts the characters that the parser has taken.
class Counted {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  Counted(const char* at, const char** last) : at_(at), last_(last) {}
  reference operator*() const { return *at_; }
  Counted& operator++() {
    *last_ = ++at_;
    return *this;
  }
  bool operator==(const Counted& other) const { return at_ == other.at_; }
  bool operator!=(const Counted& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** last_;
};

/// Builds each item, and hands it over when it is complete. Throws Error.
class ItemReader : public nlohmann::json_sax<Json> {
 public:
  ItemReader(const JsonStream& stream, const Source& source, const char* const& last,
             const std::function<void(const JsonStream::Item&)>& take)
      : stream_(stream), source_(source), last_(last), take_(take) {}
  const std::string& why() const { return why_; }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override {
    names_.emplace_back();
    return open(Json::object());
  }
  bool end_object() override {
    names_.pop_back();
    return close();
  }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    const size_t at = source_.text.rfind('"', offset() - 2) + 1;
    // An object of very many items may have one twice: what that means depends on the format.
    if (depth_ != 2 && !names_.back().insert(name).second) {
      Error error = at_byte(source_, at, twice_text(name));
      error.exit = Exit::kUsage;
      throw error;
    }
    if (depth_ > 2) {
      name_ = name;
      return true;
    }
    item_.at = at;
    (depth_ == 1 ? item_.member : item_.key) = name;
    if (depth_ == 1) item_.key.clear(), item_.in_list = false;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& e) override {
    why_ = e.what();
    return false;
  }

 private:
  size_t offset() const { return static_cast<size_t>(last_ - source_.text.data()); }

  /// Appends to the open container; without one the value becomes the item.
  Json* add(Json value) {
    if (open_.empty()) return &(item_.value = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_array()) return &parent.get_ref<Json::array_t&>().emplace_back(std::move(value));
    // The names are known to differ; the container's own insertion would compare them all.
    auto& members = static_cast<Json::object_t::Container&>(parent.get_ref<Json::object_t&>());
    members.emplace_back(std::move(name_), std::move(value));
    return &members.back().second;
  }
  bool put(Json value) {
    if (depth_ == 0) throw stream_.fault("expected an object");
    add(std::move(value));
    if (open_.empty()) take_(item_);
    return true;
  }
  bool open(Json value) {
    if (depth_ == 0 && value.is_array()) throw stream_.fault("expected an object");
    if (depth_ == 1) item_.in_list = value.is_array();
    if (depth_ == 2) item_.at = offset() - 1;
    if (depth_ >= 2) open_.push_back(add(std::move(value)));
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    if (open_.empty()) return true;
    open_.pop_back();
    if (open_.empty()) take_(item_);
    return true;
  }

  const JsonStream& stream_;
  const Source& source_;
  const char* const& last_;  ///< past the last character that the parser has taken
  const std::function<void(const JsonStream::Item&)>& take_;
  JsonStream::Item item_;
  int depth_ = 0;
  std::vector<Json*> open_;  ///< containers of the item; each is the last value of the one before
  std::vector<std::set<std::string>> names_;
  std::string name_, why_;
};

}  // namespace

std::string without_comments(std::string text) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' || text[i] == '\n') in_string = text[i] == '"' && !in_string;
    if (in_string && text[i] == '\\') ++i;
    if (in_string || text.compare(i, 2, "//") != 0) continue;
    const size_t end = std::min(text.find('\n', i), text.size());
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(i), text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    i = end;
  }
  return text;
}

Result<JsonFile> JsonFile::parse(std::string text, std::string file, size_t most) {
  if (text.size() > most)
    return Error{Exit::kFailed, fmt::format("file of {} bytes; the limit is {}", text.size(), most), {file}};
  if (nesting(text) > kMaxDepth)
    return Error{Exit::kFailed, fmt::format("nested deeper than {} levels", kMaxDepth), {file}};
  JsonFile out;
  out.source_ = {std::move(text), {file, 1, 1}};
  std::vector<std::set<std::string>> members;  // of the objects that are open
  std::string twice;
  const auto note = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start)
      members.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      members.pop_back();
    else if (event == Json::parse_event_t::key && !members.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  try {
    out.root_ = Json::parse(out.source_.text, note);
  } catch (const Json::exception& e) {
    return fault_of(out.source_).value_or(Error{Exit::kFailed, e.what(), {file}});
  }
  if (!twice.empty()) {
    Error e = fault_of(out.source_).value_or(Error{Exit::kFailed, "", {file}});
    e.message = twice_text(twice);
    return e;
  }
  return out;
}

Where JsonFile::find(std::string_view token) const {
  const size_t at = source_.text.find(json_line(Json(token)));
  return at == std::string::npos ? Where{file()} : locate(source_, static_cast<uint32_t>(at + 1));
}

/// In one pass over the text, which may be a list of very many items in one line.
std::vector<Where> JsonFile::places() const {
  std::vector<Where> out;
  Where at = source_.origin;
  size_t from = 0;
  for (const size_t item : JsonScan(source_.text).items_of_list()) {
    for (; from < item; ++from) {
      const char c = source_.text[from];
      if (c == '\n')
        at = {at.file, at.line + 1, 1};
      else if ((c & 0xC0) != 0x80)
        ++at.col;
    }
    out.push_back(at);
  }
  return out;
}

Where JsonFile::place(const Json& value, std::string_view member) const {
  JsonScan scan(source_.text);
  if (member.empty()) {
    if (places_.empty()) places_ = scan.places(root_);
    const auto known = places_.find(&value);
    return known == places_.end() ? Where{file()} : locate(source_, static_cast<uint32_t>(known->second));
  }
  std::optional<size_t> at = scan.find(root_, value, member);
  return at ? locate(source_, static_cast<uint32_t>(*at)) : place(value);
}

std::vector<std::string> JsonFile::excerpt(const Where& at) const {
  if (at.line <= 0) return {};
  size_t offset = 0;
  for (int line = 1; line < at.line; ++line) offset = source_.text.find('\n', offset) + 1;
  for (int column = 1; column < at.col; ++column) do
      ++offset;
    while (offset < source_.text.size() && (source_.text[offset] & 0xC0) == 0x80);
  return at_byte(source_, offset, "").notes;
}

Result<void> JsonStream::read(const std::function<void(const Item&)>& take) const {
  if (nesting(source_.text) > kMaxDepth)
    return Error{Exit::kUsage, fmt::format("nested deeper than {} levels", kMaxDepth), source_.origin};
  const char *begin = source_.text.data(), *last = begin;
  ItemReader reader(*this, source_, last, take);
  try {
    if (!Json::sax_parse(Counted(begin, &last), Counted(begin + source_.text.size(), &last), &reader)) {
      Error error = fault_of(source_).value_or(Error{Exit::kUsage, reader.why(), source_.origin});
      error.exit = Exit::kUsage;
      return error;
    }
  } catch (const Error& error) {
    return error;
  }
  return {};
}

Error JsonStream::fault(const Item& item, const Json& part, std::string message, std::string_view member) const {
  size_t at = item.at;
  if (item.value.is_structured()) {
    JsonScan scan(std::string_view(source_.text).substr(item.at));
    auto found = scan.find(item.value, part, member);
    if (!found) found = scan.find(item.value, part, "");
    at += found.value_or(0);
  }
  Error error = at_byte(source_, at, std::move(message));
  error.exit = Exit::kUsage;
  return error;
}

Error JsonStream::fault(std::string message) const {
  Error error =
      at_byte(source_, std::min(source_.text.find_first_not_of(" \t\r\n"), source_.text.size()), std::move(message));
  error.exit = Exit::kUsage;
  return error;
}

}  // namespace roofgen
