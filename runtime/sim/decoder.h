// The decoder's working state, shared by the files that decode one family of instructions each.
#pragma once

#include <deque>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "runtime/sim/dataflow.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/shared_variables.h"

namespace roofgen::sim {

/// Thrown while decoding; decode_kernel turns it into an Error.
struct DecodeError {
  int line;
  std::string message;
  std::vector<std::string> notes = {};
  Where source = {};      ///< of the source line, where the PTX knows it
  bool is_valid = false;  ///< the PTX ISA has the instruction; the simulator does not
};

/// The modifiers of an opcode, consumed front to back. What is left at the end is an error.
class Modifiers {
 public:
  explicit Modifiers(std::vector<std::string_view> parts) : parts_(std::move(parts)) {}
  bool take(std::string_view word);
  /// Removes and returns the next part; "" at the end.
  std::string_view next();
  std::string_view peek() const { return at_ < parts_.size() ? parts_[at_] : std::string_view(); }
  bool done() const { return at_ == parts_.size(); }

 private:
  std::vector<std::string_view> parts_;
  size_t at_ = 0;
};

class Decoder {
 public:
  Decoder(const PtxModule& module, const PtxFunction& function, const OpcodeTable& opcodes,
          const GlobalAddress& global_address, Kernel& kernel, NotModelled not_modelled)
      : module_(module),
        function_(function),
        opcodes_(opcodes),
        global_address_(global_address),
        kernel_(kernel),
        not_modelled_(not_modelled) {
    for (const PtxFunction& f : module.functions)
      if (f.defined && !f.is_entry) functions_by_name_.emplace(f.name, &f);
    for (const PtxVar& v : module.globals) globals_by_name_.emplace(v.name, &v);
  }
  void run();

 private:
  /// A function being decoded in the place of a call.
  struct Call {
    const PtxFunction* function;
    uint32_t return_label;
  };
  struct Symbol {
    enum class Kind : uint8_t { kRegister, kPredicate, kAddress } kind;
    uint32_t id = 0;  ///< virtual register or predicate
    Slot slot = Slot::kB32;
    uint64_t address = 0;  ///< generic address of a variable
    Space space = Space::kGeneric;
    bool is_double = false;  ///< of 128 bits
    uint32_t variable = 0;   ///< of a shared variable: 1 + its index in Kernel::shared_variables
  };
  struct Range {  ///< `.reg .b32 %r<N>`
    std::string_view prefix;
    uint64_t count;
    PtxType type;
  };
  struct Scope {
    std::unordered_map<std::string_view, Symbol> symbols;
    std::vector<Range> ranges;
    std::unordered_map<std::string_view, uint32_t> labels;
    std::unordered_map<std::string_view, const PtxStmt*> targets;
  };

  [[noreturn]] void fail(std::string message) const { throw DecodeError{line_, std::move(message), {}, source()}; }
  /// The instruction is valid, and the simulator does not model it.
  [[noreturn]] void not_modelled(std::string message) const {
    throw DecodeError{line_, std::move(message), {}, source(), true};
  }
  [[noreturn]] void unknown_opcode() const;
  Where source() const;  ///< of the statement that is being decoded

  // decode.cpp: scopes, symbols, operands, lane-wise instructions
  void body(const PtxFunction& function);
  void lay_out_parameters();
  void lay_out_shared();
  void place_shared(const PtxVar& var, uint64_t begin, uint64_t end);
  std::vector<const PtxFunction*> called_functions() const;
  std::vector<const PtxFunction*> functions_with_address() const;
  uint64_t address_of(const PtxFunction& f) const;
  void open_scope(size_t stmt);
  void declare_register(const PtxStmt& stmt);
  void declare_variable(const PtxVar& var);
  uint64_t local_address(const PtxVar& var);
  uint64_t global_address(const PtxVar& var);
  const Symbol& resolve(std::string_view name);
  const Symbol* find_special(std::string_view name);
  Symbol new_register(PtxType type, std::string_view name);
  uint32_t label(std::string_view name) const;
  void statement(const PtxStmt& stmt);
  void instruction(const PtxStmt& stmt);
  void modelled_instruction(const PtxStmt& stmt);
  std::optional<uint32_t> low_half(const PtxOperand& o, Slot slot);
  bool lane_instruction(const PtxStmt& stmt);
  void setp(const PtxStmt& stmt);
  void move(const PtxStmt& stmt);
  bool wide_move(const PtxStmt& stmt);
  std::optional<PtxOperand> half_of(const PtxOperand& o, uint32_t part);
  void resolve_branches();
  void mark_copies();
  void first_reads_of_cas();

  Inst& emit(Kind kind, Class cls);
  void operands_are(const PtxStmt& stmt, size_t low, size_t high) const;
  /// `variable`: the value is an address of it, or 0 as the base of one.
  uint32_t constant(uint64_t value, bool wide, uint32_t variable = 0);
  uint32_t special(Special which);
  uint32_t scratch(Slot slot);
  uint64_t immediate_bits(const PtxOperand& o, Slot slot) const;
  /// Registers the operand as a use (or definition) in a field of the last emitted instruction.
  void use(uint32_t Inst::*field, const PtxOperand& o, Slot slot);
  void def(uint32_t Inst::*field, std::string_view name, Slot slot);
  void use_list(const PtxOperand& o, Slot slot);
  void def_list(const PtxOperand& o, Slot slot);
  void reference(uint32_t Inst::*field, uint32_t reg, bool is_def, bool is_pred);
  uint32_t list_entry(uint32_t reg, bool is_def);
  uint32_t predicate(const PtxOperand& o);
  bool is_register(const PtxOperand& o, Slot slot);

  // decode_carry.cpp: addition and subtraction of more than one word
  bool carry_instruction(const PtxStmt& stmt, std::string_view base);
  Inst& emit_lane(const LaneEntry& entry, std::string_view opcode);
  uint32_t step(const char* spelling, Slot slot, std::initializer_list<uint32_t> sources);
  uint32_t operand_register(const PtxOperand& o, Slot slot);

  // decode_memory.cpp
  bool memory_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m);
  void load_store(const PtxStmt& stmt, Modifiers& m, bool is_load);
  bool halved_load_store(const PtxStmt& stmt);
  void atomic(const PtxStmt& stmt, Modifiers& m, bool returns);
  void cp_async(const PtxStmt& stmt, Modifiers& m);
  void matrix_move(const PtxStmt& stmt, Modifiers& m, bool is_load);
  void address(const PtxOperand& o, uint32_t Inst::*base_field, int64_t Inst::*displacement);
  Slot register_slot(const PtxOperand& o, uint32_t bytes);

  // decode_call.cpp: functions take the place of their calls
  void call(const PtxStmt& stmt, Modifiers& m);
  void call_defined(const PtxFunction& f, const PtxOperand* results, const PtxOperand* arguments);
  void call_through(const PtxOperand& callee, const PtxOperand* results, const PtxOperand* arguments);
  bool call_built_in(std::string_view name, const PtxOperand* results, const PtxOperand* arguments);
  Symbol passed(const PtxOperand& o);
  uint32_t load_passed(const PtxOperand* list, size_t index, uint8_t bytes);
  uint32_t new_label();
  const PtxFunction* find_function(std::string_view name) const;

  // decode_wmma.cpp
  void wmma(const PtxStmt& stmt, Modifiers& m);

  // decode_wgmma.cpp
  bool warpgroup_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m);
  void need_target(const PtxStmt& stmt, bool has, const char* what) const;
  void wgmma(const PtxStmt& stmt, Modifiers& m);
  void watch_registers(const std::vector<bool>& watched);
  void watch_products();

  // decode_tcgen05.cpp
  void need_tensor_memory(const PtxStmt& stmt);
  uint32_t tensor_place(const PtxOperand& operand, uint32_t Inst::*field);
  uint32_t tensor_entry(const PtxOperand& operand);
  bool tensor_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m);
  void tensor_move(const PtxStmt& stmt, Modifiers& m, bool loads);
  void tensor_mma(const PtxStmt& stmt, Modifiers& m);
  void watch_loads();

  // decode_image.cpp
  bool image_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m);
  void texture(const PtxStmt& stmt, Modifiers& m, bool gathers);
  void surface(const PtxStmt& stmt, Modifiers& m, bool loads);
  void image_size(const PtxStmt& stmt, Modifiers& m);
  void image_place(const PtxOperand& place, Inst::Geometry geometry);
  Inst::Geometry image_geometry(Modifiers& m);

  // decode_bulk.cpp
  void bulk_copy(const PtxStmt& stmt, Modifiers& m, bool reduces);
  void store_async(const PtxStmt& stmt, Modifiers& m);
  bool tensor_map_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m);
  uint32_t shared_place(const PtxOperand& operand, uint32_t Inst::*field);

  // decode_cluster.cpp
  bool cluster_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m);

  // decode_launch.cpp
  bool launch_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m);
  bool is_masked_to_even(const PtxOperand& o);

  // decode_mbarrier.cpp
  void mbarrier(const PtxStmt& stmt, Modifiers& m);
  void mbarrier_copies(const PtxStmt& stmt, Modifiers& m);
  void elect(const PtxStmt& stmt, Modifiers& m);

  // decode_control.cpp
  bool control_instruction(const PtxStmt& stmt, std::string_view base, Modifiers& m);
  void branch(const PtxStmt& stmt, Modifiers& m);
  void branch_indexed(const PtxStmt& stmt, Modifiers& m);
  void barrier(const PtxStmt& stmt, Modifiers& m, bool aligned);
  void shuffle(const PtxStmt& stmt, Modifiers& m);
  void vote(const PtxStmt& stmt, Modifiers& m);
  void redux(const PtxStmt& stmt, Modifiers& m);
  void match(const PtxStmt& stmt, Modifiers& m);
  void mma(const PtxStmt& stmt, const LaneEntry& entry);
  bool any_mma(const PtxStmt& stmt);

  const PtxModule& module_;
  const PtxFunction& function_;           ///< the kernel
  const PtxFunction* current_ = nullptr;  ///< whose body is being decoded
  const OpcodeTable& opcodes_;
  const GlobalAddress& global_address_;
  Kernel& kernel_;
  const NotModelled not_modelled_;

  std::unordered_map<std::string_view, const PtxFunction*> functions_by_name_;
  std::unordered_map<std::string_view, const PtxVar*> globals_by_name_;
  std::vector<Scope> scopes_;
  std::vector<Call> calls_;  ///< the calls being decoded, outermost first
  size_t calls_made_ = 0;
  int pointer_depth_ = 0;
  std::vector<VirtualRegister> registers_;
  std::vector<std::string> predicate_names_{"true"};
  std::vector<RegisterRef> refs_;
  std::map<std::tuple<uint64_t, bool, uint32_t>, uint32_t> constants_;
  std::unordered_map<uint32_t, uint32_t> variable_of_constant_;
  std::vector<Derives> derives_;
  std::unordered_map<std::string_view, Symbol> specials_;
  std::unordered_map<std::string_view, Symbol> shared_;
  std::unordered_map<std::string_view, uint64_t> globals_;  ///< those that have a place; 0: about to have one
  std::vector<uint32_t> label_at_;                          ///< label id -> instruction
  const PtxStmt* guarded_ = nullptr;                        ///< statement whose guard emitted instructions inherit
  std::deque<std::string> aliases_;                         ///< names of upper halves
  int line_ = 0;
  uint32_t loc_ = 0;
  std::optional<uint32_t> carry_;  ///< the predicate that holds the condition code's carry
};

}  // namespace roofgen::sim
