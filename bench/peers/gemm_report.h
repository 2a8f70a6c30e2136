// The result of cublaslt_peer as JSON, schema roofgen.peers.1 (docs/peers.md), and as text.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/peers/gemm_case.h"
#include "bench/peers/stream_timer.h"

namespace roofgen::peers {

using Json = nlohmann::ordered_json;

/// One implementation of a case and its result.
struct Contender {
  std::string name, what;
  std::function<Result<void>(size_t set)> run = nullptr;
  std::string state = "timed", reason = "";  ///< or "wrong", "failed", "missing" with a reason
  double error = 0;                          ///< over the tolerance
  Json timings = Json::object();             ///< by mode and way
};

/// `base` holds the samples of the baseline in the same rounds; without it there is no ratio.
Json timing_json(const std::vector<double>& times, double flops, const std::vector<double>* base);
Json mode_json(const std::string& mode, const Turns& turns);
Json contender_json(const Contender& contender);
Json case_json(const GemmCase& c);
Json gpu_json(const Gpu& gpu);
std::string utc_now();

/// The tables of a document.
std::string table(const Json& document);

}  // namespace roofgen::peers
