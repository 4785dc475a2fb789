// brisk/field.h: a named value of one sample: an input, a target, a column of a data set.
#pragma once

#include <string>

#include "brisk/tensor.h"

namespace brisk {

/// Name, shape of one sample (never with the batch dimension; {} is a scalar) and element type.
struct Field {
  std::string name{};
  Shape shape{};
  DType dtype = DType::f32;
};

}  // namespace brisk
