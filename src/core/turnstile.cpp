// A caller draws a ticket and may pass once enough have left; who leaves wakes the holder of the next ticket alone.
#include "core/turnstile.h"

namespace brisk {

void Turnstile::enter() {
  const uint64_t ticket = came_.fetch_add(1, std::memory_order_relaxed);
  while (ticket >= left_.load(std::memory_order_acquire) + width_) {
    // Read before the second look: whoever leaves after that look changes it.
    const uint32_t seen = gate_of(ticket).value();
    if (ticket < left_.load(std::memory_order_seq_cst) + width_) break;
    gate_of(ticket).wait_while(seen, kOversubscribedSpinNs);
  }
}

void Turnstile::leave() {
  const uint64_t gone = left_.fetch_add(1, std::memory_order_seq_cst);
  gate_of(gone + width_).advance();
}

}  // namespace brisk
