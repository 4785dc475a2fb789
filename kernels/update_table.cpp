// Tables of the walks over many tensors, numbered before they are copied to the device.
#include "brisk/kernels/optimizer.h"

namespace brisk::kernels {
namespace {

template <class Tensor>
int64_t number(std::span<Tensor> tensors) {
  int64_t chunks = 0;
  for (Tensor& tensor : tensors) {
    tensor.first_chunk = chunks;
    chunks += (tensor.count + kUpdateChunk - 1) / kUpdateChunk;
  }
  return chunks;
}

}  // namespace

int64_t number_chunks(std::span<UpdateTensor> tensors) { return number(tensors); }
int64_t number_chunks(std::span<StagedTensor> tensors) { return number(tensors); }

}  // namespace brisk::kernels
