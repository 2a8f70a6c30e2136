#include "runtime/sim/opcode_table.h"

#include <llvm/ADT/StringRef.h>

#include <span>
#include <unordered_set>

namespace roofgen::sim {

extern const LaneTable kLanes_base;
extern const LaneEntry* const kRareLanes;
extern const uint32_t kRareLaneCount;
extern const LaneTable kLanes_avx2;
extern const LaneTable kLanes_avx512;

std::vector<const LaneTable*> all_host_lanes() {
  std::vector<const LaneTable*> tables{&kLanes_base};
#ifdef ROOFGEN_SIM_avx2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) tables.push_back(&kLanes_avx2);
#endif
#ifdef ROOFGEN_SIM_avx512
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    tables.push_back(&kLanes_avx512);
#endif
  return tables;
}

const LaneTable& host_lanes() {
  static const LaneTable& best = *all_host_lanes().back();
  return best;
}

bool is_ptx_instruction(std::string_view opcode) {
  static const std::unordered_set<std::string_view> kAll = {
      // clang-format off
      "abs", "activemask", "add", "addc", "alloca", "and", "applypriority", "atom", "bar", "barrier", "bfe", "bfi",
      "bfind", "bmsk", "bra", "brev", "brkpt", "brx", "call", "clusterlaunchcontrol", "clz", "cnot", "copysign", "cos",
      "cp", "createpolicy", "cvt", "cvta", "discard", "div", "dp2a", "dp4a", "elect", "ex2", "exit", "fence", "fma",
      "fns", "getctarank", "griddepcontrol", "isspacep", "istypep", "ld", "ldmatrix", "ldu", "lg2", "lop3", "mad",
      "mad24", "madc", "mapa", "match", "max", "mbarrier", "membar", "min", "mma", "mov", "movmatrix", "mul", "mul24",
      "multimem", "nanosleep", "neg", "not", "or", "pmevent", "popc", "prefetch", "prefetchu", "prmt", "rcp", "red",
      "redux", "rem", "ret", "rsqrt", "sad", "selp", "set", "setmaxnreg", "setp", "shf", "shfl", "shl", "shr", "sin",
      "slct", "sqrt", "st", "stackrestore", "stacksave", "stmatrix", "sub", "subc", "suld", "suq", "sured", "sust",
      "szext", "tanh", "tcgen05", "tensormap", "testp", "tex", "tld4", "trap", "txq", "vabsdiff", "vabsdiff2",
      "vabsdiff4", "vadd", "vadd2", "vadd4", "vavrg2", "vavrg4", "vmad", "vmax", "vmax2", "vmax4", "vmin", "vmin2",
      "vmin4", "vote", "vset", "vset2", "vset4", "vshl", "vshr", "vsub", "vsub2", "vsub4", "wgmma", "wmma", "xor",
      // clang-format on
  };
  return kAll.contains(opcode.substr(0, opcode.find('.')));
}

std::vector<std::string_view> split_opcode(std::string_view opcode) {
  std::vector<std::string_view> parts;
  for (size_t from = 0;;) {
    size_t dot = opcode.find('.', from);
    parts.push_back(opcode.substr(from, dot - from));
    if (dot == std::string_view::npos) return parts;
    from = dot + 1;
  }
}

namespace {

/// Expands `[x]` (with and without) and `(a|b)` (each) of a spelling pattern.
void expand(std::string done, std::string_view rest, const LaneEntry* entry,
            std::unordered_map<std::string, const LaneEntry*>& out) {
  size_t at = rest.find_first_of("[(");
  if (at == std::string_view::npos) {
    out.emplace(done.append(rest), entry);
    return;
  }
  done.append(rest.substr(0, at));
  size_t close = rest.find(rest[at] == '[' ? ']' : ')', at);
  std::string_view inside = rest.substr(at + 1, close - at - 1), after = rest.substr(close + 1);
  if (rest[at] == '[') {
    expand(done, after, entry, out);
    expand(done + std::string(inside), after, entry, out);
    return;
  }
  for (size_t from = 0; from <= inside.size();) {
    size_t bar = std::min(inside.find('|', from), inside.size());
    expand(done + std::string(inside.substr(from, bar - from)), after, entry, out);
    from = bar + 1;
  }
}

/// Instructions with their own decoder, for suggestions.
constexpr const char* kMachineOpcodes[] = {"ld.global.u32",
                                           "ld.shared.u32",
                                           "ld.param.u32",
                                           "st.global.u32",
                                           "st.shared.u32",
                                           "cp.async.cg.shared.global",
                                           "cp.async.ca.shared.global",
                                           "cp.async.commit_group",
                                           "cp.async.wait_group",
                                           "cp.async.wait_all",
                                           "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                                           "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
                                           "bar.sync",
                                           "barrier.sync",
                                           "bar.warp.sync",
                                           "shfl.sync.bfly.b32",
                                           "vote.sync.ballot.b32",
                                           "activemask.b32",
                                           "redux.sync.add.s32",
                                           "bra",
                                           "bra.uni",
                                           "brx.idx",
                                           "call",
                                           "ret",
                                           "exit",
                                           "trap",
                                           "membar.gl",
                                           "fence.sc.gpu",
                                           "nanosleep.u32",
                                           "isspacep.shared",
                                           "setp.lt.and.s32"};

/// The atomics of the PTX ISA, for suggestions, too.
std::vector<std::string> atomics() {
  const std::string whole = "u32 s32 u64 s64", bits = "b32 b64";
  const std::pair<const char*, std::string> types[] = {{"add", "u32 s32 u64 f32 f64"},
                                                       {"min", whole},
                                                       {"max", whole},
                                                       {"and", bits},
                                                       {"or", bits},
                                                       {"xor", bits},
                                                       {"exch", bits},
                                                       {"cas", bits},
                                                       {"inc", "u32"},
                                                       {"dec", "u32"}};
  std::vector<std::string> out;
  for (const std::string base : {"atom", "red"})
    for (const char* space : {"", ".global", ".shared"})
      for (const auto& [op, list] : types)
        for (size_t at = 0; at < list.size(); at += 4)
          if (base == "atom" || (op != std::string_view("exch") && op != std::string_view("cas")))
            out.push_back(base + space + "." + op + "." + list.substr(at, 3));
  return out;
}

}  // namespace

OpcodeTable::OpcodeTable(const LaneTable& lanes) : lanes_(lanes) {
  spellings_.reserve(4096);
  const auto add = [&](std::span<const LaneEntry> entries) {
    for (const LaneEntry& e : entries) expand("", e.pattern, &e, spellings_);
  };
  add({lanes.entries, lanes.count});
  add({kRareLanes, kRareLaneCount});
}

const OpcodeTable& OpcodeTable::host() {
  static const OpcodeTable table(host_lanes());
  return table;
}

const LaneEntry* OpcodeTable::find(std::string_view spelling) const {
  auto it = spellings_.find(std::string(spelling));
  return it == spellings_.end() ? nullptr : it->second;
}

std::string OpcodeTable::nearest(std::string_view opcode) const {
  llvm::StringRef wanted(opcode.data(), std::min<size_t>(opcode.size(), 100));
  unsigned best = static_cast<unsigned>(wanted.size() / 3 + 1);
  std::string found;
  auto consider = [&](const std::string& name) {
    unsigned distance = wanted.edit_distance(name, true, best);
    if (distance < best || (distance == best && !found.empty() && name < found)) best = distance, found = name;
  };
  for (const auto& [name, entry] : spellings_) consider(name);
  for (const char* name : kMachineOpcodes) consider(name);
  for (const std::string& name : atomics()) consider(name);
  return found;
}

}  // namespace roofgen::sim
