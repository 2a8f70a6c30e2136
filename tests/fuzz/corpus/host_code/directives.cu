#pragma once
#define A \
  1 \

#include <a