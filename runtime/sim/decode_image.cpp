// Decoding of instructions on textures and surfaces (image.h), in the unified mode: `[object, {coordinates}]`.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "runtime/sim/decoder.h"

namespace roofgen::sim {
namespace {

constexpr const char* kGeometries[] = {"1d", "2d", "3d", "a1d", "a2d"};
constexpr const char* kChannels[] = {"r", "g", "b", "a"};
constexpr const char* kOutside[] = {"trap", "clamp", "zero"};                 // by ImageOutside
constexpr const char* kSizes[] = {"width", "height", "depth", "array_size"};  // by ImageSize

/// The number of the next modifier in a list; the length of the list: it is not there.
template <size_t n>
uint32_t take_one(Modifiers& m, const char* const (&list)[n]) {
  const auto at = std::find(std::begin(list), std::end(list), m.peek());
  if (at != std::end(list)) m.next();
  return static_cast<uint32_t>(at - std::begin(list));
}

}  // namespace

/// The object's address in `a`; the coordinates follow the list's results or values.
void Decoder::image_place(const PtxOperand& place, Inst::Geometry geometry) {
  PtxOperand object = place;
  object.items.clear();
  address(object, &Inst::a, &Inst::imm);
  if (place.items.size() != 1) fail(fmt::format("'{}' takes [object, {{coordinates}}]", guarded_->name));
  const PtxOperand& given = place.items[0];
  const bool alone = given.kind != PtxOperand::Kind::kVector;
  const uint32_t needed = geometry.rank + geometry.layered;
  if (alone ? needed != 1 : given.items.size() < needed)
    fail(fmt::format("'{}' needs {} coordinates", guarded_->name, needed));
  for (uint32_t i = 0; i < needed; ++i) use_list(alone ? given : given.items[i], Slot::kB32);
  kernel_.code.back().target = geometry.packed();
}

/// tex and tld4: the list has four results, then the coordinates.
void Decoder::texture(const PtxStmt& stmt, Modifiers& m, bool gathers) {
  const auto refused = [&](const char* what) {
    not_modelled(fmt::format("'{}': {} are not supported", stmt.name.substr(0, 120), what));
  };
  const uint32_t channel = gathers ? take_one(m, kChannels) : 0;
  if (channel == std::size(kChannels)) unknown_opcode();
  // All images have one level: its choice changes nothing.
  const bool level = !gathers && m.take("level"), gradients = !gathers && !level && m.take("grad");
  if (!gathers && !level) m.take("base");
  const Inst::Geometry geometry = image_geometry(m);
  if (gathers && geometry.rank != 2) unknown_opcode();
  if (!m.take("v4")) refused("results that are not vectors of four");
  const std::string_view type = m.next();
  if (type == "f16" || type == "f16x2") refused("results of 16 bits");
  if (type != "f32" && type != "u32" && type != "s32") unknown_opcode();
  const bool integers = !gathers && m.take("s32");
  if ((!integers && !m.take("f32")) || !m.done()) unknown_opcode();
  const size_t n = 2 + (level ? 1u : gradients ? 2u : 0u);
  if (stmt.operands.size() > n) refused("offsets and comparisons of depth");
  operands_are(stmt, n, n);
  const PtxOperand& results = stmt.operands[0];
  if (results.kind != PtxOperand::Kind::kVector || results.items.size() != 4)
    fail(fmt::format("'{}' needs a vector of four results", stmt.name));
  if (!results.second.empty()) refused("predicates of residency");
  Inst& in = emit(Kind::kTexture, Class::kGlobalLoad);
  in.sub = static_cast<uint8_t>(gathers ? ImageOp::kGather : integers ? ImageOp::kFetchInteger : ImageOp::kFetch);
  in.type = static_cast<uint8_t>(channel);
  for (const PtxOperand& result : results.items) def_list(result, Slot::kB32);
  image_place(stmt.operands[1], geometry);
  for (size_t i = 2; i < n; ++i) {
    const PtxOperand& o = stmt.operands[i];
    for (const PtxOperand& part : o.kind == PtxOperand::Kind::kVector ? o.items : std::vector{o})
      use_list(part, Slot::kB32);
  }
}

/// suld and sust of bytes as they are: the list has the elements, then the coordinates.
void Decoder::surface(const PtxStmt& stmt, Modifiers& m, bool loads) {
  if (!m.take("b")) not_modelled(fmt::format("'{}': formatted stores are not supported", stmt.name.substr(0, 120)));
  const Inst::Geometry geometry = image_geometry(m);
  for (const char* cache : {"ca", "cg", "cs", "cv", "wb", "wt"}) m.take(cache);
  const uint8_t count = m.take("v2") ? 2 : m.take("v4") ? 4 : 1;
  const std::string_view type = m.next();
  const uint8_t bytes = type == "b8" ? 1 : type == "b16" ? 2 : type == "b32" ? 4 : type == "b64" ? 8 : 0;
  const uint32_t outside = take_one(m, kOutside);
  if (!bytes || bytes * count > 16 || outside == std::size(kOutside) || !m.done()) unknown_opcode();
  operands_are(stmt, 2, 2);
  const PtxOperand& place = stmt.operands[loads ? 1 : 0];
  const PtxOperand& data = stmt.operands[loads ? 0 : 1];
  const bool alone = data.kind != PtxOperand::Kind::kVector;
  if (alone ? count != 1 : data.items.size() != count) fail(fmt::format("'{}' needs {} elements", stmt.name, count));
  Inst& in = emit(loads ? Kind::kTexture : Kind::kSurfaceStore, loads ? Class::kGlobalLoad : Class::kGlobalStore);
  in.sub = static_cast<uint8_t>(ImageOp::kSurface);
  in.type = static_cast<uint8_t>(outside);
  in.count = count;
  in.size = bytes;
  for (uint8_t i = 0; i < count; ++i) {
    const PtxOperand& element = alone ? data : data.items[i];
    const Slot slot = register_slot(element, bytes);
    if (slot == Slot::kB64) kernel_.code.back().flags |= kFlagWide;
    loads ? def_list(element, slot) : use_list(element, slot);
  }
  image_place(place, geometry);
}

/// txq and suq.
void Decoder::image_size(const PtxStmt& stmt, Modifiers& m) {
  const uint32_t which = take_one(m, kSizes);
  if (which == std::size(kSizes))
    not_modelled(fmt::format("'{}': only queries of sizes are supported", stmt.name.substr(0, 120)));
  if (!m.take("b32") || !m.done()) unknown_opcode();
  operands_are(stmt, 2, 2);
  Inst& in = emit(Kind::kTexture, Class::kMove);
  in.sub = static_cast<uint8_t>(ImageOp::kSize);
  in.type = static_cast<uint8_t>(which);
  def_list(stmt.operands[0], Slot::kB32);
  address(stmt.operands[1], &Inst::a, &Inst::imm);
}

bool Decoder::image_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m) {
  if (base == "tex")
    texture(stmt, m, false);
  else if (base == "tld4")
    texture(stmt, m, true);
  else if (base == "suld" || base == "sust")
    surface(stmt, m, base == "suld");
  else if (base == "txq" || base == "suq")
    image_size(stmt, m);
  else
    return false;
  return true;
}

Inst::Geometry Decoder::image_geometry(Modifiers& m) {
  for (const char* other : {"cube", "acube", "2dms", "a2dms"})
    if (m.peek() == other)
      not_modelled(fmt::format("'{}': images of kind {} are not supported", guarded_->name.substr(0, 120), other));
  const uint32_t at = take_one(m, kGeometries);
  if (at == std::size(kGeometries)) unknown_opcode();
  return {static_cast<uint8_t>(at < 3 ? at + 1 : at - 2), at >= 3};
}

}  // namespace roofgen::sim
