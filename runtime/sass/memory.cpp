// Contents of memory: before the launch, what the CTA wrote, and what others did.
#include <bit>

#include "runtime/sass/interpreter_state.h"

namespace roofgen::sass {

/// Contents before the launch of a part of a line.
bool Interpreter::State::read_initial(uint64_t address, std::span<std::byte> out) {
  if (!launch.read) return false;
  const uint64_t line = address / 128;
  const auto [known, fresh] = line_known.try_emplace(line, false);
  if (fresh) known->second = launch.read(line * 128, lines[line]);
  // At the end of a buffer, a part of the line is unknown.
  if (!known->second) return launch.read(address, out);
  std::memcpy(out.data(), lines[line].data() + address % 128, out.size());
  return true;
}

bool Interpreter::State::read_global(uint64_t address, uint32_t bytes, std::byte* out) {
  // Neighbouring lanes read the same line.
  if (address / 128 == untouched_line && address % 128 + bytes <= 128) {
    std::memcpy(out, untouched + address % 128, bytes);
    return true;
  }
  for (uint32_t done = 0; done < bytes;) {
    const uint64_t at = address + done;
    const auto offset = static_cast<uint32_t>(at % 128);
    const uint32_t part = std::min(bytes - done, 128 - offset);
    const bool initial = read_initial(at, std::span(out + done, part));
    const auto own = written.find(at / 128);
    const auto others = written_by_others.find(at / 128);
    if (initial && own == written.end() && others == written_by_others.end()) {
      if (line_known[at / 128]) untouched_line = at / 128, untouched = lines[at / 128].data();
      done += part;
      continue;
    }
    for (uint32_t k = 0; k < part; ++k) {
      if (own != written.end() && own->second.is_written[offset + k]) {
        if (!own->second.is_known[offset + k]) {
          reads_back = true;
          return false;
        }
        out[done + k] = own->second.bytes[offset + k];
      } else if (!initial || (others != written_by_others.end() && others->second[offset + k])) {
        return false;
      }
    }
    done += part;
  }
  return true;
}

/// The bytes that a lane writes to device memory; null: unknown ones.
void Interpreter::State::write_global(uint64_t address, uint32_t bytes, const std::byte* from) {
  Written& line = written[address / 128];
  if (address / 128 == untouched_line) untouched_line = kNoLine;
  for (uint64_t at = address % 128, k = 0; k < bytes && at < 128; ++k, ++at) {  // accesses are aligned
    line.is_written[at] = true;
    line.is_known[at] = from != nullptr;
    if (from) line.bytes[at] = from[k];
  }
}

/// Makes the words of shared memory at the addresses unknown.
void Interpreter::State::forget_shared(const uint64_t at[32], uint32_t mask, uint32_t bytes) {
  for (uint32_t left = mask; left; left &= left - 1)
    if (const uint64_t a = at[std::countr_zero(left)]; a + bytes <= shared.size())
      std::memset(shared_known.data() + a, 0, bytes);
}

/// An asynchronous copy; the lanes that read nothing write zeros.
void Interpreter::State::copy(const uint64_t to[32], const uint64_t from[32], uint32_t mask, uint32_t reads,
                              uint32_t bytes) {
  for (uint32_t left = mask; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (to[lane] + bytes > shared.size()) continue;
    std::array<std::byte, 16> value{};
    const bool known = !(reads >> lane & 1) || read_global(from[lane], bytes, value.data());
    std::memcpy(shared.data() + to[lane], value.data(), bytes);
    std::memset(shared_known.data() + to[lane], known, bytes);
  }
}

}  // namespace roofgen::sass
