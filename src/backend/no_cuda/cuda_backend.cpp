// The twin of cuda/runtime/ in a build without a CUDA toolkit: it says so. Plans for devices can be made all the same.
#include "backend/cuda.h"
#include "backend/cuda/cublaslt.h"
#include "backend/cuda/lowering.h"
#include "brisk/error.h"

namespace brisk::backend::cuda {

namespace {
constexpr const char* kAbsent = "this build has no CUDA backend";
}

const Backend& cuda_backend(Device device) {
  throw Error(ErrorCode::backend, device.text(),
              std::string(kAbsent) + "; use .device = cpu(), or configure with -DBRISK_CUDA=ON (toolkit >= 12)");
}

std::vector<Device> cuda_devices(std::string& why_not) {
  why_not = kAbsent;
  return {};
}

const Profile* device_profile(Device) { return nullptr; }

std::string cublaslt_missing() { return "this build has no CUDA runtime"; }

void lower_cublaslt(const Call& call, const kernels::GemmOptions&, int, int, Lowering&) {
  throw Error(ErrorCode::backend, graph::label(call.node), cublaslt_missing());
}

}  // namespace brisk::backend::cuda
