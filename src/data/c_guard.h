// Calls of C libraries that report an error through a function which must not return.
#pragma once

#include <csetjmp>

#include "data/codec.h"

namespace brisk::data {

class CGuard {
 public:
  /// Calls `f`, which holds nothing that has a destructor: fail() leaves it from within. False when it was left so.
  template <class F>
  bool run(const F& f) {
    if (setjmp(jump_) != 0) return false;
    f();
    return true;
  }
  [[noreturn]] void fail() { std::longjmp(jump_, 1); }
  /// Where the library's message is put before fail().
  static constexpr int kMessageBytes = 256;
  char* message() { return message_; }

 private:
  std::jmp_buf jump_;
  char message_[kMessageBytes] = {};
};

}  // namespace brisk::data
