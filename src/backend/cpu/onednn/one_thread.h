// oneDNN runs in OpenMP's threads; while this lives, the calling thread starts none. Other threads keep their setting.
#pragma once

namespace brisk::backend::cpu {

class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = 0;
};

}  // namespace brisk::backend::cpu
