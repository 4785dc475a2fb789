// What kernels built with -fsanitize=kernel-address call. A bit for each byte of each allocation.
#include "simt/touched_bytes.h"

#include <map>
#include <utility>

#include "simt/cudart/memory.h"

namespace brisk::simt {
namespace {

/// The touched bytes of one allocation in one launch.
struct Bits {
  int64_t set(uint64_t first, uint64_t bytes) {
    int64_t added = 0;
    for (uint64_t i = first; i < first + bytes; ++i) {
      if (!touched[i]) ++added;
      touched[i] = true;
    }
    return added;
  }

  std::vector<bool> touched;
};

struct Trace {
  std::vector<TouchedBytes> launches;
  bool running = false;
  Allocation last;                            // accesses come in runs
  std::map<const void*, Bits> read, written;  // by the allocation's begin
};

Trace& trace() {
  static Trace* trace = new Trace;  // kernels may run while statics are destroyed
  return *trace;
}

void touch(const void* address, uint64_t bytes, bool write) {
  Trace& now = trace();
  if (!now.running) return;
  if (!now.last.contains(address) && !find_device_allocation(address, now.last)) return;
  auto& maps = write ? now.written : now.read;
  Bits& bits = maps[now.last.begin];
  if (bits.touched.empty()) bits.touched.resize(now.last.bytes);
  const auto first =
      static_cast<uint64_t>(static_cast<const char*>(address) - static_cast<const char*>(now.last.begin));
  if (first + bytes > now.last.bytes)
    fail("access of %llu bytes passes the end of an allocation", static_cast<unsigned long long>(bytes));
  TouchedBytes& launch = now.launches.back();
  (write ? launch.written : launch.read) += bits.set(first, bytes);
}

}  // namespace

std::vector<TouchedBytes> touched_bytes() { return std::exchange(trace().launches, {}); }

void begin_trace(Site launch) {
  if (!kTraced) return;
  trace().launches.push_back({launch});
  trace().last = {};
  trace().running = true;
}

void end_trace() {
  if (!kTraced) return;
  trace().running = false;
  trace().read.clear();
  trace().written.clear();
}

void trace_update(const void* address, uint64_t bytes) {
  if (!kTraced) return;
  touch(address, bytes, false);
  touch(address, bytes, true);
}

}  // namespace brisk::simt

#if defined(BRISK_SIMT_TRACED)
extern "C" {
#define BRISK_SIMT_ACCESS(bytes)                                                              \
  void __asan_load##bytes##_noabort(const void* at) { brisk::simt::touch(at, bytes, false); } \
  void __asan_store##bytes##_noabort(const void* at) { brisk::simt::touch(at, bytes, true); }
BRISK_SIMT_ACCESS(1)
BRISK_SIMT_ACCESS(2)
BRISK_SIMT_ACCESS(4)
BRISK_SIMT_ACCESS(8)
BRISK_SIMT_ACCESS(16)
#undef BRISK_SIMT_ACCESS
void __asan_loadN_noabort(const void* at, size_t bytes) { brisk::simt::touch(at, bytes, false); }
void __asan_storeN_noabort(const void* at, size_t bytes) { brisk::simt::touch(at, bytes, true); }
void __asan_handle_no_return() {}
void __asan_before_dynamic_init(const char*) {}
void __asan_after_dynamic_init() {}
}
#endif
