// The handler stores a number and nothing else.
#include "train/stop_signals.h"

#include <signal.h>

#include <array>
#include <atomic>
#include <mutex>

namespace brisk::train {
namespace {

constexpr std::array<int, 3> kSignals = {SIGTERM, SIGINT, SIGUSR1};

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free);
std::mutex mutex;  // guards what follows
int alive = 0;
std::array<struct sigaction, kSignals.size()> before;

extern "C" void note_signal(int signal) { noted.store(signal, std::memory_order_relaxed); }

}  // namespace

StopSignals::StopSignals(bool enabled) : enabled_(enabled) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex);
  if (alive++ > 0) return;
  noted = 0;
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before[i]);
}

StopSignals::~StopSignals() {
  if (!enabled_) return;
  const std::lock_guard lock(mutex);
  if (--alive > 0) return;
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before[i], nullptr);
}

int StopSignals::received() const { return enabled_ ? noted.load(std::memory_order_relaxed) : 0; }

const char* signal_name(int signal) {
  return signal == SIGTERM ? "SIGTERM" : signal == SIGINT ? "SIGINT" : signal == SIGUSR1 ? "SIGUSR1" : "a signal";
}

}  // namespace brisk::train
