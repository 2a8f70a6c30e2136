#include "runtime/sass/line_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/sass/cubin.h"

namespace roofgen::sass {
namespace {

// Opcodes of DWARF 2, section 6.2.5. Those above the last standard one of a program's header are special.
constexpr uint8_t kExtended = 0, kCopyRow = 1, kAdvancePc = 2, kAdvanceLine = 3, kSetFile = 4, kConstAddPc = 8,
                  kFixedAdvancePc = 9;
constexpr uint8_t kEndSequence = 1, kSetAddress = 2;  // extended

/// Bytes of a line program, in their order. Behind the end all are zero.
class Bytes {
 public:
  Bytes(std::string_view bytes, size_t at) : bytes_(bytes), at_(at) {}
  size_t at() const { return at_; }
  bool more() const { return at_ < bytes_.size(); }
  void go_to(size_t at) { at_ = at; }
  uint8_t byte() { return more() ? static_cast<uint8_t>(bytes_[at_++]) : (++at_, 0); }
  uint64_t number(int bytes) {
    uint64_t out = 0;
    for (int i = 0; i < bytes; ++i) out |= uint64_t{byte()} << 8 * i;
    return out;
  }
  /// LEB128.
  uint64_t number() { return leb(false); }
  int64_t difference() { return static_cast<int64_t>(leb(true)); }
  std::string text() {
    std::string out;
    while (const uint8_t c = byte()) out += static_cast<char>(c);
    return out;
  }

 private:
  uint64_t leb(bool with_sign) {
    uint64_t out = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t b = byte();
      if (shift < 64) out |= uint64_t{b & 0x7fu} << shift;
      if (b & 0x80) continue;
      if (with_sign && b & 0x40 && shift + 7 < 64) out |= ~uint64_t{0} << (shift + 7);
      return out;
    }
  }

  std::string_view bytes_;
  size_t at_;
};

/// Runs the line program of one compilation unit.
class LineProgram {
 public:
  LineProgram(const Cubin& cubin, const std::string& kernel, std::vector<TextLine>& out)
      : cubin_(cubin), kernel_(kernel), out_(out) {}

  /// The place of the next program; 0: this one is broken.
  size_t run(size_t begin) {
    Bytes head(cubin_.line_programs, begin);
    const size_t size = head.number(4), end = begin + 4 + size;
    const auto version = head.number(2);
    if (end > cubin_.line_programs.size() || version < 2 || version > 4) return 0;
    const size_t header = head.number(4), first = head.at() + header;
    least_instruction_ = head.byte();
    if (version == 4) head.byte();  // operations of an instruction
    head.byte();                    // is_stmt
    line_base_ = static_cast<int8_t>(head.byte());
    line_range_ = head.byte();
    opcode_base_ = head.byte();
    if (first > end || line_range_ == 0) return 0;
    std::vector<uint8_t> operands(std::max<size_t>(opcode_base_, 1));
    for (size_t i = 1; i < operands.size(); ++i) operands[i] = head.byte();
    while (!head.text().empty()) continue;  // folders
    files_.assign(1, "");
    for (std::string file = head.text(); !file.empty(); file = head.text()) {
      files_.push_back(std::move(file));
      for (int i = 0; i < 3; ++i) head.number();  // folder, time, size
    }
    Bytes code(cubin_.line_programs.substr(0, end), first);
    restart();
    while (code.more()) step(code, operands);
    return end;
  }

 private:
  void restart() { address_ = 0, file_ = 1, line_ = 1, of_kernel_ = false; }

  void step(Bytes& code, const std::vector<uint8_t>& operands) {
    const uint8_t opcode = code.byte();
    if (opcode >= opcode_base_) {
      const int special = opcode - opcode_base_;
      address_ += uint64_t{least_instruction_} * (special / line_range_);
      line_ += line_base_ + special % line_range_;
      return add_row();
    }
    switch (opcode) {
      case kExtended: return extended(code);
      case kCopyRow: return add_row();
      case kAdvancePc: address_ += least_instruction_ * code.number(); return;
      case kAdvanceLine: line_ += code.difference(); return;
      case kSetFile: file_ = code.number(); return;
      case kConstAddPc: address_ += uint64_t{least_instruction_} * ((255 - opcode_base_) / line_range_); return;
      case kFixedAdvancePc: address_ += code.number(2); return;
      default:
        for (uint8_t i = 0; i < operands[opcode]; ++i) code.number();
    }
  }

  void extended(Bytes& code) {
    const size_t size = code.number(), begin = code.at();
    switch (size > 0 ? code.byte() : 0) {
      case kEndSequence: restart(); break;
      case kSetAddress: {
        const auto& all = cubin_.line_addresses;
        const auto to =
            std::find_if(all.begin(), all.end(), [&](const AddressSlot& a) { return a.offset == code.at(); });
        of_kernel_ = to == all.end() ? cubin_.kernels.size() == 1 : to->variable == kernel_;
        address_ = code.number(8) + (to == all.end() ? 0 : to->addend);
        break;
      }
      default: break;  // as NVIDIA's, for functions that were inlined
    }
    code.go_to(begin + size);
  }

  /// The last row of an address counts: of inlined calls, the innermost.
  void add_row() {
    const uint64_t at = address_ / kInstructionBytes;
    if (of_kernel_ && at < out_.size())
      out_[at] = {file_ < files_.size() ? files_[file_] : "", static_cast<int>(line_)};
  }

  const Cubin& cubin_;
  const std::string& kernel_;
  std::vector<TextLine>& out_;
  uint8_t least_instruction_ = 1, line_range_ = 1, opcode_base_ = 1;
  int line_base_ = 0;
  std::vector<std::string> files_;  ///< from 1 on
  uint64_t address_ = 0, file_ = 1;
  int64_t line_ = 1;
  bool of_kernel_ = false;
};

}  // namespace

Result<std::vector<TextLine>> line_table(std::string_view bytes, const std::string& kernel) {
  ROOFGEN_TRY(const Cubin cubin, read_cubin(bytes));
  std::vector<TextLine> out;
  for (const CubinKernel& k : cubin.kernels)
    if (k.name == kernel) out.resize(k.code.size() / kInstructionBytes);
  if (cubin.line_programs.empty()) return std::vector<TextLine>();
  for (size_t at = 0; at < cubin.line_programs.size();) {
    at = LineProgram(cubin, kernel, out).run(at);
    if (at == 0) return Error{Exit::kFailed, "the CUBIN is broken: its line program"};
  }
  // An instruction without a row has that of the one before.
  for (size_t i = 1; i < out.size(); ++i)
    if (out[i].line == 0) out[i] = out[i - 1];
  return out;
}

}  // namespace roofgen::sass
