// The makers of all strategies, for the table in strategy.cpp.
#pragma once

#include "tuner/strategy/strategy.h"

namespace roofgen {

std::unique_ptr<Strategy> by_learnt_prior(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Strategy> by_prior(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Strategy> shuffled(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Strategy> local_search(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Strategy> simulated_annealing(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Strategy> genetic(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Strategy> differential_evolution(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Strategy> surrogate(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Strategy> portfolio(const SearchSpace& space, uint64_t seed);

}  // namespace roofgen
