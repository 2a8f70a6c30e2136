// wmma: fragments are loaded and stored as whole tiles; a product is two of mma.sync.
#include <fmt/format.h>

#include "runtime/sim/decoder.h"
#include "runtime/sim/wmma.h"

namespace roofgen::sim {
namespace {

struct Type {
  std::string_view name;
  uint32_t bytes;
  bool accumulates;
};
constexpr Type kTypes[] = {{"f16", 2, true}, {"bf16", 2, false}, {"tf32", 4, false}, {"s8", 1, false},
                           {"u8", 1, false}, {"f32", 4, true},   {"s32", 4, true}};

const Type* find_type(std::string_view name) {
  for (const Type& t : kTypes)
    if (t.name == name) return &t;
  return nullptr;
}

constexpr struct {
  std::string_view name;
  WmmaShape shape;
} kShapes[] = {
    {"m16n16k16", {16, 16, 16}}, {"m32n8k16", {32, 8, 16}}, {"m8n32k16", {8, 32, 16}}, {"m16n16k8", {16, 16, 8}}};

const std::vector<PtxOperand> items_of(const PtxOperand& o) {
  return o.kind == PtxOperand::Kind::kVector ? o.items : std::vector<PtxOperand>{o};
}

}  // namespace

void Decoder::wmma(const PtxStmt& stmt, Modifiers& m) {
  const auto refused = [&](std::string_view what) {
    not_modelled(fmt::format("'{}': wmma with {} is not supported", stmt.name, what));
  };
  const auto shape_of = [&](std::string_view name) -> WmmaShape {
    for (const auto& s : kShapes)
      if (s.name == name) return s.shape;
    refused(fmt::format("the shape {}", name));
    return {};
  };
  const auto type_of = [&](std::string_view name, const WmmaShape& shape, bool accumulator) {
    const Type* type = find_type(name);
    const bool fits = type && (accumulator ? type->accumulates : name != "f32" && name != "s32");
    if (!fits || (!accumulator && (name == "tf32") != (shape.k == 8))) refused(fmt::format("elements of {}", name));
    return type;
  };
  const auto registers_of = [](const WmmaFragment& f, std::string_view type) {
    return type == "f16" && f.matrix != WmmaFragment::Matrix::kAccumulator ? 8u : f.distinct_registers();
  };
  const auto need = [&](const PtxOperand& o, uint32_t registers) {
    if (items_of(o).size() != registers)
      fail(fmt::format("'{}' needs {} registers in its vector, found {}", stmt.name, registers, items_of(o).size()));
  };
  using Matrix = WmmaFragment::Matrix;

  if (m.take("mma")) {
    if (m.peek() == "xor" || m.peek() == "and") refused("bits");
    if (!m.take("sync")) unknown_opcode();
    m.take("aligned");
    if (!(m.take("row") || m.take("col")) || !(m.take("row") || m.take("col"))) unknown_opcode();
    const WmmaShape shape = shape_of(m.next());
    const std::string_view d = m.next();
    std::string_view ab = "f16", c = m.next();
    if (!m.done() && m.peek() != "satfinite") {  // D, A, B, C; of halves only D and C are said
      ab = c;
      if (m.next() != ab) refused("two types of multiplicands");
      c = m.next();
    }
    if (m.peek() == "satfinite") refused("satfinite");
    if (!m.done()) unknown_opcode();
    const Type* type = type_of(ab, shape, false);
    const Type* sum = type_of(c, shape, true);
    if (c != d) refused(fmt::format("accumulators of {} and results of {}", c, d));
    const WmmaFragment fragments[] = {{shape, Matrix::kAccumulator, sum->bytes},
                                      {shape, Matrix::kA, type->bytes},
                                      {shape, Matrix::kB, type->bytes},
                                      {shape, Matrix::kAccumulator, sum->bytes}};
    operands_are(stmt, 4, 4);
    std::vector<PtxOperand> o[4];
    for (size_t i = 0; i < 4; ++i) {
      need(stmt.operands[i], registers_of(fragments[i], i % 3 == 0 ? std::string_view() : ab));
      o[i] = items_of(stmt.operands[i]);
    }
    const LaneEntry* entry =
        opcodes_.find(fmt::format("mma.sync.aligned.m16n8k{}.row.col.{}.{}.{}.{}", shape.k, d, ab, ab, c));
    if (!entry) refused(fmt::format("{} elements and {} accumulators", ab, c));
    const size_t left = shape.transposed() ? 2 : 1, right = 3 - left;
    const bool rows = shape.row_blocks() == 2;  // of which there are two blocks; else of columns
    for (uint32_t block = 0; block < 2; ++block) {
      Inst& in = emit(Kind::kMma, Class::kMma);
      in.lane = entry->fn;
      in.sub = static_cast<uint8_t>(2 * shape.k);  // of both, for the first alone is counted
      in.flags |= kFlagAligned | (block ? kFlagPart : 0);
      const auto part = [&](size_t operand, bool only_block) {
        const uint32_t n = fragments[operand].registers_of_block(), begin = only_block ? block * n : 0;
        for (uint32_t i = begin; i < begin + n; ++i)
          operand == 0 ? def_list(o[operand][i], Slot::kB32) : use_list(o[operand][i], Slot::kB32);
      };
      part(0, true);
      part(left, rows);
      part(right, !rows);
      part(3, true);
    }
    return;
  }

  const bool is_load = m.take("load");
  if (!is_load && !m.take("store")) unknown_opcode();
  const std::string_view which = m.next();
  if (is_load ? which != "a" && which != "b" && which != "c" : which != "d") unknown_opcode();
  if (!m.take("sync")) unknown_opcode();
  m.take("aligned");
  const bool by_columns = m.take("col");
  if (!by_columns && !m.take("row")) unknown_opcode();
  WmmaFragment f{shape_of(m.next()), which == "a" ? Matrix::kA : which == "b" ? Matrix::kB : Matrix::kAccumulator, 0};
  const bool shared = m.take("shared") || m.take("shared::cta"), global = !shared && m.take("global");
  const std::string_view name = m.next();
  if (!m.done()) unknown_opcode();
  f.bytes = type_of(name, f.shape, f.matrix == Matrix::kAccumulator)->bytes;
  operands_are(stmt, 2, 3);
  const PtxOperand& registers = stmt.operands[is_load ? 0 : 1];
  need(registers, registers_of(f, name));
  emit(is_load ? Kind::kWmmaLoad : Kind::kWmmaStore, is_load ? (shared ? Class::kSharedLoad : Class::kGlobalLoad)
                                                             : (shared ? Class::kSharedStore : Class::kGlobalStore));
  address(stmt.operands[is_load ? 1 : 0], &Inst::a, &Inst::imm);
  if (stmt.operands.size() == 3) {
    use(&Inst::b, stmt.operands[2], Slot::kB32);
  } else {
    kernel_.code.back().b = constant(by_columns ? f.rows() : f.columns(), false);
    reference(&Inst::b, kernel_.code.back().b, false, false);
  }
  for (const PtxOperand& r : items_of(registers)) is_load ? def_list(r, Slot::kB32) : use_list(r, Slot::kB32);
  Inst& in = kernel_.code.back();
  in.target = f.packed();
  in.count = static_cast<uint8_t>(registers_of(f, name));
  in.sub = by_columns;
  in.size = static_cast<uint8_t>(f.bytes);
  in.space = static_cast<uint8_t>(shared ? Space::kShared : global ? Space::kGlobal : Space::kGeneric);
  in.flags |= kFlagAligned;
}

}  // namespace roofgen::sim
