// The twin of the kernels in a build without CUDA: each launcher says so.
#include "brisk/error.h"
#include "brisk/kernels.h"

namespace brisk::kernels {
namespace {

[[noreturn]] void absent(const char* launcher) {
  throw Error(ErrorCode::backend, launcher, "this build has no CUDA; configure with -DBRISK_CUDA=ON (toolkit >= 12)");
}

}  // namespace

#define BRISK_LAUNCHER(name, Options) \
  void name(const Options&, CudaStream) { absent("kernels::" #name); }
#include "launchers.inc"

}  // namespace brisk::kernels
