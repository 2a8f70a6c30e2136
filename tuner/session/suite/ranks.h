// The processes ("ranks") of one run under MPI. Rank 0 answers the questions of the others; there is no other traffic.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "roofgen/result.h"

namespace roofgen {

class Ranks {
 public:
  virtual ~Ranks() = default;  ///< waits for all other ranks
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// This rank among those of its machine, counted from 0.
  virtual int node_rank() const = 0;
  virtual int node_size() const = 0;  ///< ranks of its machine
  /// Sends to rank 0 and waits for the answer. Not for rank 0. Thread-safe.
  virtual std::string ask(const std::string& question) = 0;
  /// For the main thread of rank 0: answers until every other rank has left; an empty question says that one leaves.
  /// `tick` is called about every 100 ms.
  virtual void serve(const std::function<std::string(const std::string& question)>& answer,
                     const std::function<void()>& tick) = 0;
};

/// The ranks of this run; null if no MPI launcher has started it with others. MPI is in a library beside the program
/// (libroofgen_mpi.so), loaded here only: a program without a launcher neither needs MPI nor waits for its start-up.
/// Exit::kUnavailable if the launcher is there and the library is not.
Result<std::unique_ptr<Ranks>> join_ranks();

}  // namespace roofgen
