// Values that take long to make, each beside all that it is made from.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace roofgen {

/// A memo of the values that were used last. A key is what the value is made from, whole, and `make` reads nothing
/// else: a type with a defaulted ==, or the text of a problem that holds nothing but what `make` reads. Thread-safe.
template <class Key, class Value>
class Memo {
 public:
  using Weight = std::function<size_t(const Value&)>;
  /// `limit`: of all values' weight; the one used last stays whatever its weight.
  explicit Memo(
      size_t limit, Weight weight = [](const Value&) { return size_t{1}; })
      : limit_(limit), weight_(std::move(weight)) {}

  /// The value of a key. `make()` returns a pointer to a new one; null: there is none, which is not kept. Threads that
  /// miss at the same time all make it, and the first to end gives the value.
  template <class Make>
  std::shared_ptr<const Value> get(const Key& key, const Make& make) {
    if (auto known = find(key)) return known;
    std::shared_ptr<const Value> made = make();
    if (!made) return made;
    const std::lock_guard lock(mutex_);
    for (const Entry& e : entries_)
      if (e.key == key) return e.value;
    entries_.push_front({key, made, weight_(*made)});
    weight_of_all_ += entries_.front().weight;
    while (weight_of_all_ > limit_ && entries_.size() > 1) {
      weight_of_all_ -= entries_.back().weight;
      entries_.pop_back();
    }
    return made;
  }

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const Value> value;
    size_t weight;
  };
  std::shared_ptr<const Value> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    for (auto e = entries_.begin(); e != entries_.end(); ++e)
      if (e->key == key) {
        entries_.splice(entries_.begin(), entries_, e);
        return e->value;
      }
    return nullptr;
  }

  const size_t limit_;
  const Weight weight_;
  std::mutex mutex_;
  std::list<Entry> entries_;  ///< the one used last is the first
  size_t weight_of_all_ = 0;
};

}  // namespace roofgen
