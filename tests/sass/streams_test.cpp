// The interpreter of machine code against the simulator of PTX: two programs that have only the compiler in common must
// count the same traffic in the same launch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "../check/kernel_files.h"
#include "check/check.h"
#include "check/kernel.h"
#include "profile/arguments.h"
#include "runtime/compiler.h"
#include "runtime/sass/code.h"
#include "runtime/sass/disassembler.h"
#include "runtime/sass/stream.h"

namespace roofgen::sass::streams_test {
namespace {

using check::Kernel;

/// What both count.
struct Traffic {
  uint64_t wavefronts = 0, read_sectors = 0, written_sectors = 0, barriers = 0, matrix_flops = 0;
  bool operator==(const Traffic&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Traffic& t) {
  return out << fmt::format("{} wavefronts, {} and {} sectors, {} barriers, {} FLOP of tensor units", t.wavefronts,
                            t.read_sectors, t.written_sectors, t.barriers, t.matrix_flops);
}

Traffic counted(const Counts& c) {
  return {c.smem_wavefronts, c.l2_read_sectors, c.l2_write_sectors, c.barriers, c.mma_flops};
}

void add(Traffic& sum, const Code& code, const CtaStream& cta) {
  for (const WarpStream& w : cta.warps)
    for (const Step& s : w.steps) {
      const Instruction& i = code.instructions[s.index];
      if (i.opcode->action == Action::kBar) ++sum.barriers;
      if (i.opcode->pipe == Pipe::kTensor) sum.matrix_flops += i.matrix_flops;
      if (s.access == Step::kNoAccess) continue;
      const Access& a = w.accesses[s.access];
      sum.wavefronts += a.wavefronts;
      uint64_t sectors = 0;
      for (size_t k = a.first_line; k < size_t{a.first_line} + a.lines; ++k)
        if (w.lines[k].line < kLocalLines) sectors += static_cast<uint64_t>(std::popcount(w.lines[k].sectors));
      (i.opcode->action == Action::kLdg || i.opcode->action == Action::kLdgsts ? sum.read_sectors
                                                                               : sum.written_sectors) += sectors;
    }
}

TEST(Streams, Dev) {
  const std::string arch = getenv("ARCH") ? getenv("ARCH") : "sm_80";
  for (const char* folder : {"/kernels", "/right"})
    for (const Kernel& k : check::kernels_in(ROOFGEN_CHECK_FOLDER + std::string(folder))) {
      auto says = k.says;
      if (says["finds"] != "nothing" || !k.file.ends_with(".cu")) continue;
      if (getenv("ONLY") && k.name != getenv("ONLY")) continue;
      auto r = check::request_of(k);
      if (!r) continue;
      r->arch = arch;
      r->cache_dir = "/tmp/roofgen-streams-cache";
      if (getenv("O0")) r->compiler_flags.push_back("--ptxas-options=-O0");
      auto simulated = check::run(*r);
      if (!simulated) {
        fmt::print("{}: {}\n", k.name, to_string(simulated.error()));
        continue;
      }
      auto chosen = check::choose_kernel(*r);
      ASSERT_TRUE(chosen);
      auto code = read_code({{chosen->compiled.binary.cubin, chosen->entry.mangled, arch}});
      if (!code[0]) {
        fmt::print("{}: {}\n", k.name, to_string(code[0].error()));
        continue;
      }
      profile::Memory memory(r->args);
      StreamLaunch launch;
      launch.grid = r->grid, launch.block = r->block, launch.dynamic_smem = r->smem_bytes;
      launch.params = memory.params();
      launch.variable = [&](const std::string& name) -> uint64_t {
        for (const Variable& v : code[0]->cubin.variables)
          if (v.name == name) return memory.variable(name, v.bytes, v.initial);
        return 0;
      };
      launch.max_steps = 1000000;
      launch.read = [&](uint64_t address, std::span<std::byte> to) { return memory.read(address, to); };
      Interpreter interpreter(*code[0], std::move(launch));
      Traffic sum;
      std::string error;
      std::vector<std::array<uint64_t, 4>> per;
      for (uint64_t cta = 0; cta < r->grid.count(); ++cta) {
        auto one = interpreter.run(cta);
        if (!one) {
          error = to_string(one.error());
          break;
        }
        add(sum, *code[0], *one);
        per.resize(code[0]->instructions.size());
        for (auto& w : one->warps)
          for (auto& st : w.steps) {
            ++per[st.index][0];
            if (st.access == Step::kNoAccess) continue;
            per[st.index][3] = 1;
            per[st.index][1] += w.accesses[st.access].wavefronts;
            for (size_t k = 0; k < w.accesses[st.access].lines; ++k)
              per[st.index][2] += std::popcount(w.lines[w.accesses[st.access].first_line + k].sectors);
          }
      }
      const Traffic wanted = counted(simulated->counts);
      const auto doubts = interpreter.doubts();
      std::string unknown;
      for (auto& u : code[0]->unknown) unknown += " " + u;
      if (sum == wanted && error.empty() && doubts.empty() && unknown.empty()) {
        fmt::print("{}: equal\n", k.name);
        continue;
      }
      std::string all;
      auto one = [&](const char* n, uint64_t a, uint64_t b) { if (a != b) all += fmt::format(" {} {} (sim {})", n, a, b); };
      one("wavefronts", sum.wavefronts, wanted.wavefronts), one("read", sum.read_sectors, wanted.read_sectors);
      one("written", sum.written_sectors, wanted.written_sectors), one("barriers", sum.barriers, wanted.barriers);
      one("flops", sum.matrix_flops, wanted.matrix_flops);
      std::string at;
      auto lines = line_table(chosen->compiled.binary.cubin, chosen->entry.mangled);
      if (getenv("ONLY")) {
        auto texts = disassemble(arch, {chosen->compiled.binary.cubin.empty() ? std::string_view() : read_cubin(chosen->compiled.binary.cubin)->kernels[0].code});
        for (size_t n = 0; texts && n < code[0]->instructions.size(); ++n)
          fmt::print("{:4} L{:3} {:6} n{:5} w{:5} s{:5} {:5} {} {}\n", n, lines ? (*lines)[n].line : 0, per[n][3] ? "ACTIVE" : "", per[n][0], per[n][1], per[n][2],
                     (*texts)[0][n].predicate, (*texts)[0][n].opcode, (*texts)[0][n].operands);
        for (auto& l : simulated->lines)
          if (l.sum.wavefronts || l.sum.sectors)
            fmt::print("sim line {}:{} wavefronts {} sectors {}\n", l.source.file, l.source.line, l.sum.wavefronts, l.sum.sectors);
      }
      for (auto& d : doubts)
        at += fmt::format(" {}{}x{}@{}", code[0]->instructions[d.index].spelling, d.is_branch ? "(br)" : "", d.count,
                          lines && d.index < lines->size() ? (*lines)[d.index].line : 0);
      fmt::print("{}: DIFF{} doubts:{} unknown:{} {}\n", k.name, all, at, unknown, error);
    }
}

}  // namespace
}  // namespace roofgen::sass::streams_test
