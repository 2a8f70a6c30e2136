#include "tuner/search/kernel_timer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/pool.h"
#include "runtime/sass/disassembler.h"
#include "runtime/sass/line_table.h"
#include "runtime/sass/taken_shares.h"
#include "tuner/code_time_json.h"
#include "tuner/verify/result_json.h"

namespace roofgen {

// Each struct is taken apart whole: with one more member the line does not compile.
std::string launch_text(const Launch& launch) {
  const auto size = [](const Dim3& d) { return fmt::format("{}x{}x{}", d.x, d.y, d.z); };
  const auto& [grid, block, smem, args, axes, cluster, overlap] = launch;
  std::string out = fmt::format(" grid={} block={} cluster={} smem={} overlap={}", size(grid), size(block),
                                size(cluster), smem, overlap);
  for (const auto& [name, dim, extent, step, reverse, by_group, tile] : axes)
    out += fmt::format(" {}.{}={}/{}/{}{}{}", name, dim, extent, step, tile, reverse ? "r" : "", by_group ? "g" : "");
  for (const auto& [name, is_buffer, bits, bytes, map, data] : args) {
    out += fmt::format(" {}{}:{}.{}", is_buffer ? "*" : "", name, bits, bytes);
    for (const std::byte b : data) out += fmt::format("{:02x}", static_cast<int>(b));
    if (!map) continue;
    const auto& [dtype, dims, stride_bytes, box, swizzle_bytes, nan_fill, l2_promotion_bytes] = *map;
    out += fmt::format("map({} {} {} {} {} {} {})", to_string(dtype), fmt::join(dims, ","),
                       fmt::join(stride_bytes, ","), fmt::join(box, ","), swizzle_bytes, nan_fill, l2_promotion_bytes);
  }
  return out;
}

timing::ReadBuffer initial_contents(const Op& op, const Problem& problem, const std::vector<Buffer>& temporaries) {
  struct Contents {
    std::map<std::string, Buffer> buffers;
    std::map<std::string, std::function<void(uint64_t, std::span<std::byte>)>> fillers;
  };
  auto known = std::make_shared<Contents>();
  for (const Buffer& b : op.buffers(problem)) known->buffers[b.name] = b;
  for (const Buffer& b : temporaries) known->buffers[b.name] = b;
  return [known, &op, &problem](const std::string& name, uint64_t offset, std::span<std::byte> out) {
    const auto b = known->buffers.find(name);
    if (b == known->buffers.end() || offset > b->second.bytes || out.size() > b->second.bytes - offset) return false;
    if (b->second.zeroed) {
      std::fill(out.begin(), out.end(), std::byte{0});
      return true;
    }
    if (!b->second.has_contents()) return false;
    auto& filler = known->fillers[name];
    if (!filler) filler = op.filler(problem, InputPattern::kNormal, name);
    filler(offset, out);
    return true;
  };
}

KernelTimer::KernelTimer(const Device& device, Evaluations* store)
    : device_(device), store_(store), device_key_(cells_text(device)) {
  Result<timing::Machine> machine = timing::machine_of(device);
  if (!machine)
    unavailable_ = machine.error().message;
  else if (sass::nvdisasm_path().empty())
    unavailable_ = sass::kNoNvdisasm;
  else
    machine_ = std::move(*machine);
}

StoreKey KernelTimer::key_of(const KernelLaunch& k, TimeModel model) const {
  return {k.binary->digest,
          fmt::format("{} {} dram={} registers={} smem={}", k.contents, launch_text(*k.launch),
                      k.dram_bytes.value_or(-1), k.binary->registers, k.binary->static_smem_bytes),
          fmt::format("{} {}", to_string(model), timing::model_version()), device_key_};
}

std::optional<CodeTime> KernelTimer::recall(const KernelLaunch& kernel, TimeModel model) {
  const auto payload = store_ ? store_->lookup(key_of(kernel, model)) : std::nullopt;
  if (!payload) return std::nullopt;
  try {
    return parse_json(*payload).get<CodeTime>();
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::unique_ptr<EvaluationClaim> KernelTimer::claim(const KernelLaunch& kernel, TimeModel model) {
  return store_ ? store_->claim(key_of(kernel, model)) : std::make_unique<EvaluationClaim>();
}

void KernelTimer::read(const std::vector<const Binary*>& binaries) {
  if (!unavailable_.empty()) return;
  {
    const std::lock_guard lock(wanted_mutex_);
    wanted_.insert(wanted_.end(), binaries.begin(), binaries.end());
  }
  // What others ask for meanwhile is read by the first of them.
  const std::lock_guard lock(mutex_);
  std::vector<const Binary*> all;
  {
    const std::lock_guard wanted_lock(wanted_mutex_);
    all.swap(wanted_);
  }
  read_unlocked(all);
}

void KernelTimer::read_unlocked(const std::vector<const Binary*>& binaries) {
  std::vector<sass::CodeRequest> requests;
  std::vector<const Binary*> asked;
  for (const Binary* b : binaries) {
    if (codes_.count(b->digest) || std::ranges::count(asked, b->digest, &Binary::digest)) continue;
    requests.push_back({b->cubin, b->entry, b->arch});
    asked.push_back(b);
  }
  // One run of nvdisasm, which takes as long for no kernel as for a dozen.
  std::vector<Result<sass::Code>> codes = sass::read_code(requests);
  for (size_t i = 0; i < asked.size(); ++i)
    codes_[asked[i]->digest] = std::make_shared<const Result<sass::Code>>(std::move(codes[i]));
}

void KernelTimer::forget(const std::vector<const Binary*>& binaries) {
  const std::lock_guard lock(mutex_);
  for (const Binary* b : binaries) codes_.erase(b->digest);
}

KernelTimer::Code KernelTimer::code_of(const Binary& binary) {
  const std::lock_guard lock(mutex_);
  read_unlocked({&binary});
  return codes_.at(binary.digest);
}

Result<sass::TakenShare> KernelTimer::shares_of(const KernelLaunch& k, const sass::Code& code) {
  ROOFGEN_TRY(const std::vector<sass::TextLine> table, sass::line_table(k.binary->cubin, k.binary->entry));
  return sass::taken_shares(code, table, site_counts(*k.lines));
}

Result<CodeTime> KernelTimer::time(const KernelLaunch& k, TimeModel model) {
  if (!unavailable_.empty()) return Error{Exit::kUnavailable, unavailable_};
  if (auto known = recall(k, model)) return std::move(*known);
  const Code code = code_of(*k.binary);
  if (!*code) return code->error();
  if (!(*code)->unknown.empty()) return Error{Exit::kUnavailable, "the opcode table lacks " + (*code)->unknown.front()};
  timing::LaunchRequest request;
  request.code = &**code;
  request.launch = timing::stream_launch(*k.launch, k.read);
  request.registers = k.binary->registers;
  request.smem_bytes = k.binary->static_smem_bytes + k.launch->smem_bytes;
  request.dram_bytes = k.dram_bytes;
  request.event = model == TimeModel::kEvent;
  if (k.lines) {
    ROOFGEN_TRY(request.launch.taken_share, shares_of(k, **code));
  }
  ROOFGEN_TRY(const timing::LaunchTime t, timing::launch_time(device_, machine_, std::move(request)));
  CodeTime out{model, request.event ? t.event_s : t.interval_s, t.interval_s, t.counts};
  for (const bool branch : {true, false})
    if (std::any_of(t.doubts.begin(), t.doubts.end(),
                    [&](const sass::Doubt& d) { return d.is_branch == branch && !d.share; }))
      out.doubts.push_back(branch ? "a branch on an unknown value" : "an access to an unknown address");
  if (t.sm.broken_waits > 0) out.doubts.push_back("the end of some waits at mbarriers");
  for (const sass::Doubt& d : t.doubts) out.guessed_by_ptx |= d.share.has_value();
  if (store_) store_->put(key_of(k, model), json_line(out));
  return out;
}

}  // namespace roofgen
