// Element types.
#include "backend/cpu/kernels/cast.h"

#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {

void lower_cast(const Call& call, Lowering& lowering) {
  constexpr int64_t kUnit = 8192;
  const Cast cast{call.input(0).dtype, call.output(0).dtype, stored(call.output(0), call.blocks(), call.lanes()),
                  kUnit};
  lowering.phase(BRISK_PHASE(call, cast_elements), ceil_divide(cast.count, cast.unit), cast);
}

}  // namespace brisk::backend::cpu
