#include "tuner/session/suite/queue.h"

#include <algorithm>
#include <array>

#include "base/json.h"

namespace roofgen {
namespace {

// A question is one line of JSON whose first member names it; the answer is JSON, too.

Json words_of(const StoreKey& key) { return Json::array({key.binary, key.slice, key.simulator, key.device}); }

StoreKey key_of(const Json& words) {
  const auto word = [&](size_t i) { return words.at(i).get<std::string>(); };
  return {word(0), word(1), word(2), word(3)};
}

/// The members of a trial that are texts; the store itself sets release and creation.
constexpr std::array kTrialTexts = {&StoredTrial::source, &StoredTrial::op,         &StoredTrial::problem,
                                    &StoredTrial::device, &StoredTrial::variant,    &StoredTrial::stage,
                                    &StoredTrial::params, &StoredTrial::binary,     &StoredTrial::executor,
                                    &StoredTrial::origin, &StoredTrial::time_model, &StoredTrial::outcome,
                                    &StoredTrial::reason, &StoredTrial::compiler};

Json words_of(const StoredTrial& trial) {
  Json out = Json::array();
  for (const auto text : kTrialTexts) out.push_back(trial.*text);
  out.push_back(trial.seconds);
  out.push_back(trial.floor_seconds);
  return out;
}

StoredTrial trial_of(const Json& words) {
  StoredTrial out;
  size_t i = 0;
  for (const auto text : kTrialTexts) words.at(i++).get_to(out.*text);
  words.at(i++).get_to(out.seconds);
  words.at(i).get_to(out.floor_seconds);
  return out;
}

/// The members of a filter.
constexpr std::array kChoices = {&TrialFilter::source,  &TrialFilter::op,     &TrialFilter::device,
                                 &TrialFilter::variant, &TrialFilter::stage,  &TrialFilter::origin,
                                 &TrialFilter::outcome, &TrialFilter::problem};

Json words_of(const TrialFilter& filter) {
  Json out = Json::array();
  for (const auto text : kChoices) out.push_back(filter.*text);
  return out;
}

TrialFilter filter_of(const Json& words) {
  TrialFilter out;
  for (size_t i = 0; i < kChoices.size(); ++i) words.at(i).get_to(out.*kChoices[i]);
  return out;
}

class RemoteStore : public Evaluations {
 public:
  explicit RemoteStore(Ranks& ranks) : ranks_(ranks) {}
  std::optional<std::string> lookup(const StoreKey& key) override {
    const Json answer = parse_json(ranks_.ask(json_line(Json{{"lookup", words_of(key)}})));
    if (!answer.is_string()) return std::nullopt;
    return answer.get<std::string>();
  }
  void put(const StoreKey& key, const std::string& payload) override {
    ranks_.ask(json_line(Json{{"put", words_of(key)}, {"payload", payload}}));
  }
  void note(const StoredTrial& trial) override { ranks_.ask(json_line(Json{{"note", words_of(trial)}})); }
  Result<std::vector<StoredTrial>> trials(const TrialFilter& filter) override {
    const Json answer = parse_json(ranks_.ask(json_line(Json{{"trials", words_of(filter)}})));
    if (answer.is_string()) return Error{Exit::kFailed, answer.get<std::string>()};
    std::vector<StoredTrial> out;
    for (const Json& words : answer) out.push_back(trial_of(words));
    return out;
  }

 private:
  Ranks& ranks_;
};

class RemoteQueue : public SuiteQueue {
 public:
  explicit RemoteQueue(Ranks& ranks)
      : ranks_(ranks), stores_(parse_json(ranks.ask(json_line(Json{{"stores", true}}))) == true) {}
  std::optional<size_t> next() override {
    const Json answer = parse_json(ranks_.ask(json_line(Json{{"next", true}})));
    if (!answer.is_number()) return std::nullopt;
    return answer.get<size_t>();
  }
  void finish(size_t problem, std::string result) override {
    ranks_.ask(json_line(Json{{"finish", problem}, {"result", std::move(result)}}));
  }
  std::unique_ptr<Evaluations> store() override { return stores_ ? std::make_unique<RemoteStore>(ranks_) : nullptr; }

 private:
  Ranks& ranks_;
  const bool stores_;
};

}  // namespace

LocalQueue::LocalQueue(std::vector<size_t> problems, std::function<std::unique_ptr<Evaluations>()> open,
                       std::function<bool()> stopped)
    : problems_(std::move(problems)), open_(std::move(open)), stopped_(std::move(stopped)), store_(open_()) {}

std::optional<size_t> LocalQueue::next() {
  const std::lock_guard lock(mutex_);
  if (given_ == problems_.size() || stopped_()) return std::nullopt;
  return problems_[given_++];
}

void LocalQueue::finish(size_t problem, std::string result) {
  const std::lock_guard lock(mutex_);
  results_[problem] = std::move(result);
}

std::map<size_t, std::string> LocalQueue::results() const {
  const std::lock_guard lock(mutex_);
  return results_;
}

std::string LocalQueue::answer(const std::string& question) {
  const Json asked = parse_json(question);
  Json out;
  if (asked.contains("next")) {
    if (const auto problem = next()) out = *problem;
  } else if (asked.contains("stores")) {
    out = store_ != nullptr;
  } else if (asked.contains("lookup")) {
    if (auto payload = store_->lookup(key_of(asked["lookup"]))) out = std::move(*payload);
  } else if (asked.contains("put")) {
    store_->put(key_of(asked["put"]), asked["payload"].get<std::string>());
  } else if (asked.contains("note")) {
    store_->note(trial_of(asked["note"]));
  } else if (asked.contains("trials")) {
    const auto trials = store_->trials(filter_of(asked["trials"]));
    out = trials ? Json::array() : Json(trials.error().message);
    if (trials)
      for (const StoredTrial& t : *trials) out.push_back(words_of(t));
  } else {
    finish(asked.at("finish").get<size_t>(), asked.at("result").get<std::string>());
  }
  return json_line(out);
}

std::unique_ptr<SuiteQueue> remote_queue(Ranks& ranks) { return std::make_unique<RemoteQueue>(ranks); }

}  // namespace roofgen
