// The twin of onednn/, compiled where the library was not found.
#include <array>

#include "backend/cpu/onednn.h"

namespace brisk::backend::cpu {
namespace {

std::string absent(const Call&) { return "built without oneDNN: libdnnl-dev was not found"; }

}  // namespace

std::span<const Implementation> onednn_implementations() {
  static const std::array<Implementation, 6> list = {{{"conv2d", "onednn", absent, nullptr},
                                                      {"conv2d_input_gradient", "onednn", absent, nullptr},
                                                      {"conv2d_weight_gradient", "onednn", absent, nullptr},
                                                      {"linear", "onednn", absent, nullptr},
                                                      {"linear_input_gradient", "onednn", absent, nullptr},
                                                      {"linear_weight_gradient", "onednn", absent, nullptr}}};
  return list;
}

}  // namespace brisk::backend::cpu
