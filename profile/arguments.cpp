#include "profile/arguments.h"

#include <algorithm>
#include <cstring>

#include "base/demangle.h"
#include "runtime/sim/tensor_map.h"

namespace roofgen::profile {

namespace {
constexpr uint64_t kAlignment = 256;
}

Memory::Memory(const std::vector<check::Argument>& arguments) : arguments_(arguments) {
  for (const check::Argument* a : check::buffers_of(arguments)) addresses_[a] = place({a->bytes(), a, {}, false});
}

uint64_t Memory::place(Range range) {
  const uint64_t at = next_;
  next_ += (std::max<uint64_t>(range.bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  ranges_[at] = std::move(range);
  return at;
}

std::vector<std::byte> Memory::pass(const check::Argument& a) const {
  if (!a.is_pointer() && a.fields.empty()) return a.value;
  std::vector<std::byte> bytes = a.value;
  if (a.fields.empty()) {
    uint64_t address = 0;
    if (a.size) {
      address = addresses_.at(&a);
    } else if (!a.buffer.empty()) {
      for (const auto& [other, at] : addresses_)
        if (other->symbol.empty() && other->name == a.buffer) address = at + a.begin;
    }
    bytes.resize(a.map ? sim::kTensorMapBytes : sizeof address);
    if (a.map)
      sim::view_of(*a.map, address).encode(bytes.data());
    else
      std::memcpy(bytes.data(), &address, sizeof address);
  }
  for (const check::Argument& f : a.fields) {
    const std::vector<std::byte> field = pass(f);
    std::copy(field.begin(), field.end(), bytes.begin() + static_cast<ptrdiff_t>(f.offset));
  }
  return bytes;
}

std::vector<std::byte> Memory::params() const {
  std::vector<std::byte> out;
  for (const check::Argument& a : arguments_) {
    if (!a.symbol.empty()) continue;
    const std::vector<std::byte> bytes = pass(a);
    const uint64_t align = a.map ? 64 : a.is_pointer() ? 8 : std::max<uint64_t>(1, a.align);
    out.resize((out.size() + align - 1) / align * align);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

uint64_t Memory::variable(const std::string& mangled, uint64_t bytes, const std::string& initial) {
  if (const auto it = variables_.find(mangled); it != variables_.end()) return it->second;
  const std::string full = demangled(mangled);
  for (const auto& [argument, address] : addresses_)
    if (!argument->symbol.empty() &&
        (argument->symbol == mangled || argument->symbol == full || full.ends_with("::" + argument->symbol)))
      return variables_[mangled] = address;
  return variables_[mangled] = place({bytes, nullptr, initial, true});
}

bool Memory::read(uint64_t address, std::span<std::byte> out) const {
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return false;
  --it;
  const Range& r = it->second;
  const uint64_t offset = address - it->first;
  if (offset + out.size() > r.bytes) return false;
  if (r.argument) {
    if (std::holds_alternative<check::Nothing>(r.argument->fill)) return false;
    check::fill(r.argument->fill, r.argument->type, offset, out);
    return true;
  }
  std::fill(out.begin(), out.end(), std::byte{0});
  if (offset < r.initial.size())
    std::memcpy(out.data(), r.initial.data() + offset, std::min<uint64_t>(out.size(), r.initial.size() - offset));
  return true;
}

double Memory::bytes() const {
  double sum = 0;
  for (const auto& [at, range] : ranges_) sum += static_cast<double>(range.bytes);
  return sum;
}

}  // namespace roofgen::profile
