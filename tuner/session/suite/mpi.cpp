// The ranks by MPI: libroofgen_mpi.so, which ranks.cpp loads.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "tuner/session/suite/ranks.h"

namespace roofgen {
namespace {

constexpr int kQuestion = 1, kAnswer = 2;

/// MPI's own waits spin, and would take a core from the simulator. Sleeps that grow to 1 ms add less to an evaluation
/// than a thousandth.
template <class Ready>
void wait_until(const Ready& ready) {
  std::chrono::microseconds pause{10};
  while (!ready()) {
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds{1000});
  }
}

std::string receive(int from, int tag, MPI_Status& status) {
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  std::string out(static_cast<size_t>(bytes), '\0');
  MPI_Recv(out.data(), bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return out;
}

void send(const std::string& text, int to, int tag) {
  MPI_Request request;
  MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
  wait_until([&] {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

class MpiRanks : public Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank_);
    MPI_Comm_size(node, &node_size_);
    MPI_Comm_free(&node);
  }
  ~MpiRanks() override {
    if (rank_ != 0) send("", 0, kQuestion);
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int node_rank() const override { return node_rank_; }
  int node_size() const override { return node_size_; }

  std::string ask(const std::string& question) override {
    const std::lock_guard lock(mutex_);
    send(question, 0, kQuestion);
    MPI_Status status;
    wait_until([&] {
      int there = 0;
      MPI_Iprobe(0, kAnswer, MPI_COMM_WORLD, &there, &status);
      return there != 0;
    });
    return receive(0, kAnswer, status);
  }

  void serve(const std::function<std::string(const std::string&)>& answer, const std::function<void()>& tick) override {
    auto ticked = std::chrono::steady_clock::now();
    for (int others = size_ - 1; others > 0;) {
      MPI_Status status;
      wait_until([&] {
        if (const auto now = std::chrono::steady_clock::now(); now - ticked > std::chrono::milliseconds{100}) {
          ticked = now;
          tick();
        }
        int there = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, kQuestion, MPI_COMM_WORLD, &there, &status);
        return there != 0;
      });
      const std::string question = receive(status.MPI_SOURCE, kQuestion, status);
      if (question.empty())
        --others;
      else
        send(answer(question), status.MPI_SOURCE, kAnswer);
    }
  }

 private:
  int rank_ = 0, size_ = 1, node_rank_ = 0, node_size_ = 1;
  std::mutex mutex_;  ///< one question at a time
};

}  // namespace
}  // namespace roofgen

extern "C" roofgen::Ranks* roofgen_make_ranks() { return new roofgen::MpiRanks(); }
