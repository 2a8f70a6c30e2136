#include "runtime/sim/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "runtime/sim/code.h"

namespace roofgen::sim {

namespace {

/// A buffer of 8 MiB: the free slots are sorted when it goes.
constexpr size_t kLargeRelease = (size_t{8} << 20) / kLineBytes;

}  // namespace

Mapping::~Mapping() {
  if (data_) munmap(data_, bytes_);
}

bool Mapping::reserve(uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  data_ = p;
  bytes_ = bytes;
  return true;
}

Result<void> DeviceMemory::initialise(uint64_t max_bytes) {
  next_address_ = kGlobalBase + 256;
  // As large a pool as the system reserves; untouched pages cost nothing.
  constexpr uint64_t kLargest = uint64_t{32} << 30, kSmallest = uint64_t{256} << 20;
  for (uint64_t bytes = kLargest; bytes >= kSmallest; bytes /= 2) {
    uint64_t slots = bytes / kLineBytes;
    if (!memory_.reserve(bytes + slots * 20)) continue;
    data_ = static_cast<std::byte*>(memory_.data());
    valid_ = reinterpret_cast<uint64_t*>(data_ + bytes);
    written_words_ = reinterpret_cast<uint32_t*>(data_ + bytes + slots * 16);
    // Slot 0 stands for none.
    slots_ = static_cast<uint32_t>(max_bytes ? std::min(slots, max_bytes / kLineBytes + 1) : slots);
    return {};
  }
  return Error{Exit::kUnavailable,
               fmt::format("cannot reserve {} MiB of address space for simulated memory", 2 * (kSmallest >> 20)),
               {}};
}

Result<uint64_t> DeviceMemory::allocate(uint64_t bytes, std::string label, Fill fill, uint64_t at) {
  if (bytes == 0) return Error{Exit::kFailed, fmt::format("buffer '{}' has no bytes", label), {}};
  if (bytes > uint64_t{1} << 44)
    return Error{Exit::kFailed, fmt::format("buffer '{}' of {} bytes is over the limit of 16 TiB", label, bytes), {}};
  auto buffer = std::make_shared<Buffer>();
  buffer->bytes = bytes;
  buffer->label = std::move(label);
  buffer->fill = std::move(fill);
  uint64_t lines = (bytes + kLineBytes - 1) / kLineBytes;
  if (!buffer->table_memory.reserve(lines * sizeof(uint32_t)))
    return Error{Exit::kFailed,
                 fmt::format("cannot reserve address space for buffer '{}' of {} bytes", buffer->label, bytes),
                 {}};
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  buffer->table = static_cast<std::atomic<uint32_t>*>(buffer->table_memory.data());

  std::lock_guard lock(mutex_);
  buffer->base = at ? at : next_address_;
  // A gap at least as large as a small buffer, so that a run past the end finds nothing.
  if (!at) next_address_ = (next_address_ + bytes + kGuardBytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes + 256;
  auto list = std::make_shared<BufferList>(*list_);
  list->insert(std::upper_bound(list->begin(), list->end(), buffer->base,
                                [](uint64_t base, const auto& b) { return base < b->base; }),
               buffer);
  list_ = std::move(list);
  return buffer->base;
}

std::shared_ptr<const BufferList> DeviceMemory::buffers() const {
  std::lock_guard lock(mutex_);
  return list_;
}

Buffer* DeviceMemory::find(const BufferList& list, uint64_t address) {
  auto it = std::upper_bound(list.begin(), list.end(), address, [](uint64_t a, const auto& b) { return a < b->base; });
  if (it == list.begin()) return nullptr;
  Buffer* b = std::prev(it)->get();
  return address - b->base < b->bytes ? b : nullptr;
}

Result<std::shared_ptr<Buffer>> DeviceMemory::locate(uint64_t address, uint64_t bytes) {
  auto list = buffers();
  for (const auto& b : *list)
    if (address >= b->base && address - b->base <= b->bytes && bytes <= b->bytes - (address - b->base)) return b;
  return Error{Exit::kFailed, fmt::format("{} bytes at {:#x} are in no buffer", bytes, address), {}};
}

size_t DeviceMemory::drop_lines(Buffer& buffer, size_t first, double share) {
  std::lock_guard lines_lock(buffer.mutex);
  const size_t all = buffer.lines.size();
  if (all <= first) return 0;
  const auto count = static_cast<size_t>(std::ceil(static_cast<double>(all - first) * share));
  std::lock_guard lock(mutex_);
  for (size_t i = first; i < first + count; ++i) {
    const Buffer::Line& l = buffer.lines[i];
    buffer.table[l.line].store(0, std::memory_order_release);
    free_slots_.push_back(l.slot);
  }
  if (buffer.is_input()) filled_.fetch_sub(count, std::memory_order_relaxed);
  const auto begin = buffer.lines.begin() + static_cast<ptrdiff_t>(first);
  buffer.lines.erase(begin, begin + static_cast<ptrdiff_t>(count));
  return count;
}

std::vector<std::pair<std::shared_ptr<Buffer>, size_t>> DeviceMemory::filled_so_far() {
  std::vector<std::pair<std::shared_ptr<Buffer>, size_t>> marks;
  const auto list = buffers();  // a launch may replace the list meanwhile
  for (const auto& b : *list) {
    if (!b->evictable()) continue;
    std::lock_guard lock(b->mutex);
    marks.emplace_back(b, b->lines.size());
  }
  return marks;
}

void DeviceMemory::drop_filled_since(const std::vector<std::pair<std::shared_ptr<Buffer>, size_t>>& marks) {
  std::unique_lock alone(in_use_);
  for (const auto& [buffer, count] : marks)
    if (buffer->evictable()) drop_lines(*buffer, count, 1);
}

Result<void> DeviceMemory::allow_writes(uint64_t address) {
  ROOFGEN_TRY(auto buffer, locate(address, 1));
  buffer->updated = true;
  return {};
}

void DeviceMemory::release(uint64_t address) {
  std::shared_ptr<Buffer> gone;
  {
    std::lock_guard lock(mutex_);
    auto list = std::make_shared<BufferList>();
    for (const auto& b : *list_) {
      if (b->base == address)
        gone = b;
      else
        list->push_back(b);
    }
    list_ = std::move(list);
  }
  if (gone && drop_lines(*gone, 0, 1) >= kLargeRelease) give_pages_back();
}

void DeviceMemory::give_pages_back() {
  std::lock_guard lock(mutex_);
  // What was free before has no pages: each release would otherwise sort millions of slots again.
  const auto fresh = free_slots_.begin() + static_cast<ptrdiff_t>(without_pages_);
  std::sort(fresh, free_slots_.end(), std::greater<>());
  const auto give = [](void* memory, uint64_t begin, uint64_t end) {
    static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t from = (begin + page - 1) / page * page, to = end / page * page;
    if (from < to) madvise(static_cast<std::byte*>(memory) + from, to - from, MADV_DONTNEED);
  };
  for (size_t i = without_pages_; i < free_slots_.size();) {
    const uint64_t end = free_slots_[i] + uint64_t{1};
    uint64_t begin = end;
    for (; i < free_slots_.size() && free_slots_[i] + uint64_t{1} == begin; ++i) --begin;
    give(data_, begin * kLineBytes, end * kLineBytes);
    give(valid_, begin * 16, end * 16);
    give(written_words_, begin * 4, end * 4);
  }
  std::inplace_merge(free_slots_.begin(), fresh, free_slots_.end(), std::greater<>());
  without_pages_ = free_slots_.size();
}

Result<void> DeviceMemory::poison(uint64_t address) {
  ROOFGEN_TRY(auto buffer, locate(address, 1));
  drop_lines(*buffer, 0, 1);
  return {};
}

uint32_t DeviceMemory::take_slot_locked() {
  if (free_slots_.empty()) return next_slot_ < slots_ ? next_slot_++ : 0;
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  without_pages_ = std::min(without_pages_, free_slots_.size());
  return slot;
}

uint32_t DeviceMemory::take_slot() {
  std::lock_guard lock(mutex_);
  return take_slot_locked();
}

uint32_t DeviceMemory::fill_line(Buffer& buffer, uint64_t line) {
  std::lock_guard stripe(stripes_[(line ^ buffer.base >> 8) % stripes_.size()]);
  if (uint32_t slot = buffer.table[line].load(std::memory_order_acquire)) return slot;
  uint32_t slot = take_slot();
  if (!slot) return 0;
  uint64_t from = line * kLineBytes;
  if (buffer.fill) {
    uint64_t bytes = std::min<uint64_t>(kLineBytes, buffer.bytes - from);
    buffer.fill(from, std::span(data(slot), bytes));
    if (buffer.is_input()) filled_.fetch_add(1, std::memory_order_relaxed);
    valid(slot)[0] = valid(slot)[1] = ~uint64_t{0};
  } else {
    clear(slot);
  }
  place(buffer, line, slot);
  return slot;
}

void DeviceMemory::clear(uint32_t slot) {
  valid(slot)[0] = valid(slot)[1] = 0;
  std::memset(data(slot), 0xff, kLineBytes);  // NaN in every float format
}

void DeviceMemory::place(Buffer& buffer, uint64_t line, uint32_t slot) {
  {
    std::lock_guard lock(buffer.mutex);
    buffer.lines.push_back({line, slot});
  }
  buffer.table[line].store(slot, std::memory_order_release);
}

void DeviceMemory::take_slots(std::vector<uint32_t>& slots, size_t count) {
  std::lock_guard lock(mutex_);
  for (; count; --count) {
    const uint32_t slot = take_slot_locked();
    if (!slot) return;
    slots.push_back(slot);
  }
}

void DeviceMemory::give_slots(std::span<const uint32_t> slots) {
  std::lock_guard lock(mutex_);
  free_slots_.insert(free_slots_.end(), slots.begin(), slots.end());
}

void DeviceMemory::evict() {
  std::unique_lock alone(in_use_);
  if (!over_cap()) return;  // another thread was first
  const auto list = buffers();
  for (const auto& b : *list)
    if (b->evictable()) drop_lines(*b, 0, 0.5);
}

Result<void> DeviceMemory::write(uint64_t to, std::span<const std::byte> from) {
  ROOFGEN_TRY(auto buffer, locate(to, from.size()));
  if (buffer->fill) buffer->written.store(true);
  std::shared_lock lock(in_use_);
  uint64_t offset = to - buffer->base;
  while (!from.empty()) {
    uint32_t slot = slot_for_write(*buffer, offset / kLineBytes);
    if (!slot) return Error{Exit::kFailed, "simulated memory is exhausted", {}};
    uint64_t at = offset % kLineBytes, n = std::min<uint64_t>(kLineBytes - at, from.size());
    std::memcpy(data(slot) + at, from.data(), n);
    for (uint64_t i = at; i < at + n; ++i) valid(slot)[i >> 6] |= uint64_t{1} << (i & 63);
    from = from.subspan(n);
    offset += n;
  }
  return {};
}

Result<void> DeviceMemory::read(uint64_t from, std::span<std::byte> to, std::vector<bool>* written) {
  ROOFGEN_TRY(auto buffer, locate(from, to.size()));
  std::shared_lock lock(in_use_);
  if (written) written->assign(to.size(), true);
  uint64_t offset = from - buffer->base;
  for (size_t done = 0; done < to.size();) {
    uint64_t at = offset % kLineBytes, n = std::min<uint64_t>(kLineBytes - at, to.size() - done);
    uint32_t slot = slot_for_read(*buffer, offset / kLineBytes);
    if (slot)
      std::memcpy(to.data() + done, data(slot) + at, n);
    else
      std::memset(to.data() + done, 0xff, n);                                      // as clear() has it
    const bool whole = slot && (valid(slot)[0] & valid(slot)[1]) == ~uint64_t{0};  // as almost all lines are
    for (uint64_t i = 0; written && !whole && i < n; ++i)
      (*written)[done + i] = slot && (valid(slot)[(at + i) >> 6] >> ((at + i) & 63) & 1);
    done += n;
    offset += n;
  }
  return {};
}

}  // namespace roofgen::sim
