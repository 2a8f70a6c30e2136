#include "profile/compiled.h"

#include <fmt/format.h>

#include "runtime/compile/log.h"

namespace roofgen::profile {

Result<std::unique_ptr<CompiledKernel>> CompiledKernel::make(check::Request r, const Device& device) {
  if (r.is_ptx())
    return Error{Exit::kUsage,
                 fmt::format("{} is PTX; profile reads machine code, which NVRTC makes of CUDA C++", r.file)};
  // From sm_100 on kernels may use all instructions of the device.
  r.arch = device.arch + (device.integer("arch") >= 100 ? "a" : "");
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
  s.launch.grid = chosen_.entry.ctas_of(request_.grid);
  s.launch.block = request_.block;
  s.launch.cluster = chosen_.entry.cluster;
  s.launch.dynamic_smem = request_.smem_bytes;
  s.launch.params = memory_.params();
  s.launch.read = [this](uint64_t address, std::span<std::byte> to) { return memory_.read(address, to); };
  if (request_.max_instructions) s.launch.max_steps = request_.max_instructions;
  s.address_of = [this](const sass::Variable& v) { return memory_.variable(v.name, v.bytes, v.initial); };
  s.buffer_bytes = memory_.bytes();
  s.place = [this](const std::string& file, int line) { return Where{chosen_.compiled.own_name(file), line, 0}; };
  return s;
}

Result<Report> run(const Request& request) {
  ROOFGEN_TRY(const std::unique_ptr<CompiledKernel> kernel, CompiledKernel::make(request.kernel, request.device));
  ROOFGEN_TRY(Report out, profile_launch(request.device, kernel->subject(), request.options));
  out.notes = kernel->notes();
  return out;
}

}  // namespace roofgen::profile
