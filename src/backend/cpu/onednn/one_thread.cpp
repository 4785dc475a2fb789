// The OpenMP runtime is the one that oneDNN has loaded; it is looked up, not linked.
#include "backend/cpu/onednn/one_thread.h"

#include <dlfcn.h>

namespace brisk::backend::cpu {
namespace {

struct OpenMp {
  int (*maximum)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  void (*set)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
};

const OpenMp& open_mp() {
  static const OpenMp found;
  return found;
}

}  // namespace

OneThread::OneThread() {
  const OpenMp& omp = open_mp();
  if (omp.maximum == nullptr || omp.set == nullptr) return;
  before_ = omp.maximum();
  omp.set(1);
}

OneThread::~OneThread() {
  if (before_ > 0) open_mp().set(before_);
}

}  // namespace brisk::backend::cpu
