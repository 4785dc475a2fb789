// The program's signals stay with the program's threads: threads of the library start with all of them blocked.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace brisk {

/// While it lives the calling thread, and each thread that it starts, takes no signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace brisk
