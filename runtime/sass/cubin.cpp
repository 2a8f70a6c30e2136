#include "runtime/sass/cubin.h"

#include <fmt/format.h>
#include <llvm/Object/ELF.h>

#include <cstring>
#include <optional>

namespace roofgen::sass {
namespace {

using Elf = llvm::object::ELF64LE;
using ElfFile = llvm::object::ELFFile<Elf>;

constexpr uint16_t kMachineCuda = 190;  // EM_CUDA

// Attributes of .nv.info.<kernel>: a format byte, a kind byte, 16 bits of value or of size (binary utilities of the
// CUDA toolkit name them EIFMT_* and EIATTR_*; nvdisasm prints both).
constexpr uint8_t kFormatSized = 0x04;
constexpr uint8_t kParameter = 0x17;  // index in 32 bits, ordinal and offset in 16 bits each, flags
constexpr uint8_t kParamBank = 0x0a;  // symbol, then offset and size in 16 bits each

constexpr size_t kMostParameters = 4096;

std::string_view view(llvm::StringRef text) { return {text.data(), text.size()}; }

/// The value of an llvm::Expected, or nullopt with its text in `why`.
template <class T>
std::optional<T> take(llvm::Expected<T> value, std::string& why) {
  if (value) return std::move(*value);
  why = llvm::toString(value.takeError());
  return std::nullopt;
}

void read_param_bank(std::string_view info, CubinKernel& kernel) {
  for (size_t at = 0; at + 4 <= info.size();) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(info[i]); };
    const auto half = [&](size_t i) { return static_cast<uint32_t>(byte(i) | byte(i + 1) << 8); };
    const size_t size = byte(at) == kFormatSized ? half(at + 2) : 0;
    if (at + 4 + size > info.size()) return;
    if (byte(at) == kFormatSized && byte(at + 1) == kParamBank && size >= 8) {
      kernel.first_param = half(at + 8);
      kernel.param_bytes = half(at + 10);
    }
    if (byte(at) == kFormatSized && byte(at + 1) == kParameter && size >= 12) {
      const size_t ordinal = half(at + 8);
      if (ordinal >= kMostParameters) return;
      if (kernel.param_offsets.size() <= ordinal) kernel.param_offsets.resize(ordinal + 1);
      kernel.param_offsets[ordinal] = half(at + 10);
    }
    at += 4 + size;
  }
}

class Reader {
 public:
  explicit Reader(const ElfFile& file) : file_(file) {}

  Result<Cubin> read() {
    std::string why;
    const auto sections = take(file_.sections(), why);
    if (!sections) return broken(why);
    sections_ = *sections;
    // The number of the architecture moved within the flags with a later version of the ABI.
    const uint32_t flags = file_.getHeader().e_flags;
    const uint32_t low = flags & 0xff, next = flags >> 8 & 0xff;
    out_.sm = static_cast<int>(low >= 50 && low <= 121 ? low : next);
    for (const auto& s : sections_) {
      const auto name = take(file_.getSectionName(s), why);
      if (!name) return broken(why);
      names_.emplace_back(view(*name));
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto bytes = contents(i);
      if (!bytes) return broken(fmt::format("section {} lies outside of the file", names_[i]));
      add_section(names_[i], *bytes);
    }
    for (size_t i = 0; i < names_.size(); ++i)
      if (names_[i].starts_with(".nv.info.")) {
        if (CubinKernel* k = kernel(names_[i].substr(9))) read_param_bank(*contents(i), *k);
      } else if (names_[i].starts_with(".nv.constant")) {
        add_bank(names_[i], *contents(i));
      } else if (sections_[i].sh_type == llvm::ELF::SHT_SYMTAB) {
        if (!add_variables(sections_[i], why)) return broken(why);
      }
    for (size_t i = 0; i < names_.size(); ++i)
      if ((names_[i].ends_with(".nv.constant4") && !add_addresses(sections_[i], out_.addresses, why)) ||
          (names_[i].ends_with(".debug_line") && !add_addresses(sections_[i], out_.line_addresses, why)))
        return broken(why);
    return std::move(out_);
  }

 private:
  static Error broken(const std::string& why) { return {Exit::kFailed, fmt::format("the CUBIN is broken: {}", why)}; }

  std::optional<std::string_view> contents(size_t i) const {
    if (sections_[i].sh_type == llvm::ELF::SHT_NOBITS) return std::string_view();
    std::string ignored;
    const auto bytes = take(file_.getSectionContents(sections_[i]), ignored);
    if (!bytes) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }

  CubinKernel* kernel(std::string_view name) {
    for (CubinKernel& k : out_.kernels)
      if (k.name == name) return &k;
    return nullptr;
  }

  void add_section(std::string_view name, std::string_view bytes) {
    if (name == ".debug_line") out_.line_programs = bytes;
    if (!name.starts_with(".text.")) return;
    CubinKernel& k = out_.kernels.emplace_back();
    k.name = name.substr(6);
    k.code = bytes;
  }

  /// ".nv.constant2.k" or ".nv.constant3"
  void add_bank(std::string_view name, std::string_view bytes) {
    name.remove_prefix(12);
    int bank = 0;
    while (!name.empty() && name[0] >= '0' && name[0] <= '9') bank = bank * 10 + (name[0] - '0'), name.remove_prefix(1);
    if (bank > 31) return;
    if (name.empty())
      out_.banks[bank] = bytes;
    else if (CubinKernel* k = kernel(name.substr(1)))
      k->banks[bank] = bytes;
  }

  bool add_variables(const Elf::Shdr& table, std::string& why) {
    const auto symbols = take(file_.symbols(&table), why);
    const auto strings = symbols ? take(file_.getStringTableForSymtab(table), why) : std::nullopt;
    if (!symbols || !strings) return false;
    for (const auto& symbol : *symbols) {
      const auto name = take(symbol.getName(*strings), why);
      if (!name) return false;
      symbols_.emplace_back(view(*name));
      if (symbol.getType() != llvm::ELF::STT_OBJECT || symbol.st_shndx >= names_.size()) continue;
      const std::string_view section = names_[symbol.st_shndx];
      Variable v{std::string(view(*name)), symbol.st_size, {}, section == ".nv.constant3", 0};
      const auto bytes = contents(symbol.st_shndx);
      if (bytes && symbol.st_value <= bytes->size() && symbol.st_size <= bytes->size() - symbol.st_value)
        v.initial = bytes->substr(symbol.st_value, symbol.st_size);
      v.offset = static_cast<uint32_t>(symbol.st_value);
      if (v.constant || section.starts_with(".nv.global")) out_.variables.push_back(std::move(v));
    }
    return true;
  }

  bool add_addresses(const Elf::Shdr& section, std::vector<AddressSlot>& to, std::string& why) {
    const auto add = [&](uint64_t offset, uint32_t symbol, uint64_t addend) {
      if (symbol < symbols_.size()) to.push_back({static_cast<uint32_t>(offset), symbols_[symbol], addend});
    };
    if (section.sh_type == llvm::ELF::SHT_RELA) {
      const auto all = take(file_.relas(section), why);
      if (!all) return false;
      for (const auto& r : *all) add(r.r_offset, r.getSymbol(false), static_cast<uint64_t>(int64_t{r.r_addend}));
    } else if (section.sh_type == llvm::ELF::SHT_REL) {
      const auto all = take(file_.rels(section), why);
      if (!all) return false;
      for (const auto& r : *all) add(r.r_offset, r.getSymbol(false), 0);
    }
    return true;
  }

  const ElfFile& file_;
  ElfFile::Elf_Shdr_Range sections_;
  std::vector<std::string_view> names_;  // of the sections
  std::vector<std::string> symbols_;
  Cubin out_;
};

}  // namespace

Result<Cubin> read_cubin(std::string_view bytes) {
  std::string why;
  const auto file = take(ElfFile::create({bytes.data(), bytes.size()}), why);
  if (!file) return Error{Exit::kFailed, fmt::format("the CUBIN is broken: {}", why)};
  if (file->getHeader().e_machine != kMachineCuda)
    return Error{Exit::kFailed, fmt::format("the CUBIN is broken: an ELF file of machine {}, not of CUDA ({})",
                                            uint16_t{file->getHeader().e_machine}, kMachineCuda)};
  return Reader(*file).read();
}

}  // namespace roofgen::sass
