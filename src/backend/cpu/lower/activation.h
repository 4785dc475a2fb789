// The activation attribute of a node.
#pragma once

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/lowering.h"

namespace brisk::backend::cpu {

/// Inference has checked the name.
inline Activation activation_of(const Call& call) {
  const std::string& text = call.node.attributes.text("activation");
  if (text == "relu") return Activation::relu;
  if (text == "tanh") return Activation::tanh;
  if (text == "sigmoid") return Activation::sigmoid;
  if (text == "silu") return Activation::silu;
  return Activation::none;
}

}  // namespace brisk::backend::cpu
