// Searches in several threads: sessions of their own, one session, a cancelled one: threads_test FOLDER
#include <atomic>
#include <roofgen/roofgen.hpp>
#include <string>
#include <thread>

#include "check.h"

namespace {

using roofgen::Request;

struct Outcome {
  int status = -1;
  std::string text;
};

void tune(roofgen::Session& session, const Request& request, Outcome& out) {
  const auto tuned = roofgen::tune(session, request);
  out = tuned ? Outcome{tuned->status(), tuned->text()} : Outcome{tuned.error().status, tuned.error().message};
}

std::string own_folder(const std::string& folder, int i) {
  return options_below((folder + "/" + std::to_string(i)).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  started(argv[1]);
  const Request rmsnorm = Request("rmsnorm").set("rows", 64).set("cols", 256).set("executor", "sim").set("evals", 2);
  const Request softmax = Request("softmax").set("rows", 64).set("cols", 256).set("executor", "sim").set("evals", 2);
  auto first = roofgen::Session::open(own_folder(argv[1], 1)), second = roofgen::Session::open(own_folder(argv[1], 2));
  CHECK(first && second);
  if (!first || !second) return 1;
  Outcome alone, apart[2], shared[2];
  tune(*first, rmsnorm, alone);
  if (alone.status == ROOFGEN_UNAVAILABLE) return std::fprintf(stderr, "skipped: %s\n", alone.text.c_str()), kSkipped;

  // Sessions with and without the result, at once; then one session for two threads.
  std::thread of_first([&] { tune(*first, rmsnorm, apart[0]); });
  std::thread of_second([&] { tune(*second, rmsnorm, apart[1]); });
  of_first.join();
  of_second.join();
  CHECK(alone.status == ROOFGEN_OK && apart[0].status == ROOFGEN_OK && apart[1].status == ROOFGEN_OK);
  // Equal but for how much was remembered.
  CHECK(apart[1].text == alone.text && apart[0].text != alone.text);
  std::thread of_softmax([&] { tune(*second, softmax, shared[0]); });
  tune(*second, rmsnorm, shared[1]);
  of_softmax.join();
  CHECK(shared[0].status == ROOFGEN_OK && shared[1].text == apart[0].text);

  // A thread's error is its own.
  std::string other;
  CHECK(!roofgen::generate(*first, Request("nothing")) &&
        std::string(roofgen_error()).find("nothing") != std::string::npos);
  std::thread reader([&] { other = roofgen_error(); });
  reader.join();
  CHECK(other.empty());

  // Cancelled from another thread, once its search runs.
  std::atomic<bool> running = false, ended = false;
  first->on_progress([&](const char*, uint64_t, uint64_t) { running = true; });
  Outcome cancelled;
  std::thread search([&] {
    tune(*first, Request("attention").set("L", 512).set("d", 64).set("heads", 2).set("batch", 1).set("executor", "sim"),
         cancelled);
    ended = true;
  });
  while (!running && !ended) std::this_thread::yield();
  first->cancel();
  search.join();
  CHECK(cancelled.status == ROOFGEN_INTERRUPTED);
  // Later calls run.
  tune(*first, rmsnorm, alone);
  CHECK(alone.status == ROOFGEN_OK);
  CHECK(starts(argv[1]) == 1);
  return failures ? 1 : 0;
}
