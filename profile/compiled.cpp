#include "profile/compiled.h"

#include <fmt/format.h>

#include "runtime/compile/log.h"

namespace roofgen::profile {

Result<std::unique_ptr<CompiledKernel>> CompiledKernel::make(check::Request r, const Device& device) {
  if (r.is_ptx())
    return Error{Exit::kUsage,
                 fmt::format("{} is PTX; profile reads machine code, which NVRTC makes of CUDA C++", r.file)};
  r.arch = device.arch;
  ROOFGEN_TRY(check::Chosen chosen, check::choose_kernel(r));
  std::vector<std::string> notes;
  ROOFGEN_CHECK(check::check_arguments(chosen.entry, r.args, notes));
  Binary& binary = chosen.compiled.binary;
  const PtxasReport ptxas = parse_ptxas_log(binary.log, chosen.entry.mangled);
  binary.entry = chosen.entry.mangled;
  binary.arch = r.arch;
  binary.registers = ptxas.registers;
  binary.spill_bytes = ptxas.spill_bytes;
  binary.static_smem_bytes = ptxas.static_smem_bytes;
  return std::unique_ptr<CompiledKernel>(new CompiledKernel(std::move(r), std::move(chosen), std::move(notes)));
}

CompiledKernel::CompiledKernel(check::Request request, check::Chosen chosen, std::vector<std::string> notes)
    : request_(std::move(request)), chosen_(std::move(chosen)), notes_(std::move(notes)), memory_(request_.args) {}

Subject CompiledKernel::subject() {
  Subject s;
  s.file = request_.file;
  s.kernel = chosen_.entry.name;
  s.compiler = chosen_.compiled.compiler;
  s.binary = &chosen_.compiled.binary;
  s.launch.grid = request_.grid;
  s.launch.block = request_.block;
  s.launch.dynamic_smem = request_.smem_bytes;
  s.launch.params = memory_.params();
  s.launch.read = [this](uint64_t address, std::span<std::byte> to) { return memory_.read(address, to); };
  if (request_.max_instructions) s.launch.max_steps = request_.max_instructions;
  s.address_of = [this](const sass::Variable& v) { return memory_.variable(v.name, v.bytes, v.initial); };
  s.buffer_bytes = memory_.bytes();
  s.place = [this](const std::string& file, int line) { return Where{chosen_.compiled.own_name(file), line, 0}; };
  return s;
}

timing::LaunchRequest launch_request(const sass::Code& code, Subject subject) {
  timing::LaunchRequest out;
  out.code = &code;
  out.launch = std::move(subject.launch);
  out.launch.variable = [&code, address_of = std::move(subject.address_of)](const std::string& name) -> uint64_t {
    for (const sass::Variable& v : code.cubin.variables)
      if (v.name == name && address_of) return address_of(v);
    return 0;
  };
  out.registers = subject.binary->registers;
  out.smem_bytes = subject.binary->static_smem_bytes + subject.launch.dynamic_smem;
  out.buffer_bytes = subject.buffer_bytes;
  out.dram_bytes = subject.dram_bytes;
  return out;
}

}  // namespace roofgen::profile
