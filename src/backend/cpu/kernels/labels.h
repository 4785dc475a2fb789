// Labels and indices that nobody may be trusted with: the first bad one is reported.
#pragma once

#include "backend/cpu/kernel.h"
#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {

/// Looks at `picks` labels in each of `rows` rows of the samples, in their order, and stops at the first for which
/// allowed(label) is false.
template <class Allowed>
void look_at_labels(const Operands& operands, const int64_t* labels, int64_t samples, int64_t rows, int64_t picks,
                    Allowed allowed) {
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t k = 0; k < rows * picks; ++k) {
      const int64_t label = labels[(n / kLanes * rows * picks + k) * kLanes + n % kLanes];
      if (allowed(label)) continue;
      Status& status = *operands.run->status;
      int32_t none = Status::none;
      if (!status.kind.compare_exchange_strong(none, Status::label)) return;
      status.node = operands.node;
      status.sample = n * rows + k / picks;
      status.value = label;
      return;
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
