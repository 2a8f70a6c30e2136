// The questions that rank 0 of a suite answers in a second: with the store alone, and asked by MPI.
//
//   build/cli/queue_bench
//   mpirun -n 2 build/cli/queue_bench     ranks 1, 2, ... ask; their rates add up
//
// One evaluation is two lookups, its row and its trial, of 420, 2300 and 440 bytes: means of bench/suite_ranks.sh.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <functional>

#include "base/json.h"
#include "tuner/session/suite/queue.h"

namespace {

using roofgen::Json;

constexpr int kEvaluations = 2000;

std::vector<std::string> questions(int number) {
  const std::string name = std::to_string(number);
  const Json key = {name + std::string(60, 'b'), std::string(230, 's'), std::string(70, 'e'), "sms=132"};
  Json trial = Json::array();
  for (int text = 0; text < 14; ++text) trial.push_back(std::string(25, 't'));
  trial[6] = name;  // its parameters
  trial.push_back(1e-5);
  trial.push_back(1e-6);
  const std::string lookup = roofgen::json_line(Json{{"lookup", key}});
  return {lookup, lookup, roofgen::json_line(Json{{"put", key}, {"payload", std::string(1880, 'p')}}),
          roofgen::json_line(Json{{"note", trial}})};
}

void measure(int rank, const std::function<std::string(const std::string&)>& ask) {
  const auto begun = std::chrono::steady_clock::now();
  size_t asked = 0, bytes = 0;
  for (int i = 0; i < kEvaluations; ++i)
    for (const std::string& question : questions(rank * kEvaluations + i)) {
      bytes += question.size() + ask(question).size();
      ++asked;
    }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  fmt::print("rank {}: {:.0f} questions/s, {:.0f} evaluations/s, {:.1f} kB an evaluation\n", rank,
             static_cast<double>(asked) / seconds, kEvaluations / seconds,
             static_cast<double>(bytes) / kEvaluations / 1000);
}

}  // namespace

int main() {
  auto ranks = roofgen::join_ranks();
  if (!ranks) {
    fmt::print(stderr, "{}\n", to_string(ranks.error()));
    return 1;
  }
  if (*ranks && (*ranks)->rank() != 0) {
    measure((*ranks)->rank(), [&](const std::string& question) { return (*ranks)->ask(question); });
    return 0;
  }
  const std::string folder = std::filesystem::temp_directory_path() / fmt::format("queue_bench-{}", getpid());
  {
    roofgen::LocalQueue queue(
        {},
        [&]() -> std::unique_ptr<roofgen::Evaluations> {
          return std::make_unique<roofgen::Store>(*roofgen::Store::open(folder + "/evaluations.sqlite"));
        },
        [] { return false; });
    const auto answer = [&](const std::string& question) { return queue.answer(question); };
    if (*ranks)
      (*ranks)->serve(answer, [] {});
    else
      measure(0, answer);
  }
  std::filesystem::remove_all(folder);
}
