// Classification losses, one lane a row: loss = sum over classes of t_c (-log p_c), where the target
// t_c = w_c ((1 - smoothing) [c = label] + smoothing / classes) weighs the classes.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

struct Classification {
  int64_t samples = 0;
  int64_t rows = 1;
  int64_t classes = 1;
  int64_t ignored = -100;            ///< label of rows that count nothing
  int64_t per_unit = 1;              ///< vectors of rows of a unit
  std::vector<float> class_weights;  ///< one a class
  bool weighted = false;             ///< they are not all 1
  float chosen = 1;                  ///< 1 - smoothing
  float spread = 0;                  ///< smoothing / classes
  float weight_sum = 0;              ///< of class_weights
  bool checks = false;               ///< this phase also looks for labels that no class has
};

BRISK_DECLARE_PHASE(check_labels)            // one unit: the first bad row is the one that is reported
BRISK_DECLARE_PHASE(nll)                     // log p, labels -> loss, weight
BRISK_DECLARE_PHASE(nll_gradient)            // dloss, labels -> d log p
BRISK_DECLARE_PHASE(cross_entropy)           // logits, labels -> loss, weight, p
BRISK_DECLARE_PHASE(cross_entropy_gradient)  // dloss, labels, p -> dlogits
BRISK_DECLARE_PHASE(accuracy)                // logits, labels -> correct, weight

}  // namespace brisk::backend::cpu
