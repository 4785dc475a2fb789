// Names of the recipes.
#include "brisk/precision.h"

namespace brisk {

const char* name(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return "f32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
    case Precision::automatic:
      return "automatic";
  }
  return "unknown";
}

}  // namespace brisk
