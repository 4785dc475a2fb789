// Where threads of a block meet: operations of a warp, __syncthreads, asynchronous copies, fences. A meeting to which
// some never come is an error here, though devices may forgive it.
#include <cstring>

#include "simt/block.h"
#include "simt/sanitizer.h"

namespace brisk::simt {

const WarpOperation kWarpBarrier{"__syncwarp", nullptr, true, false};

namespace {

bool same_line(Site a, Site b) { return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0); }

void complete(Worker& worker, Warp& warp, WarpGroup& group, uint32_t warp_number) {
  const WarpOperation& operation = *group.operation;
  if (operation.needs_whole_warp && group.arrived != ~0u) {
    fail("%s needs all 32 lanes, but only 0x%08x take part (%s:%d)", operation.name, group.arrived, group.site.file,
         group.site.line);
  }
  const uint32_t gone = group.mask & warp.born & ~warp.alive;
  if (gone) {
    fail("%s: mask 0x%08x names lanes 0x%08x that have exited (%s:%d)", operation.name, group.mask, gone,
         group.site.file, group.site.line);
  }
  if (operation.run) operation.run(group.values, group.arrived);
  warp.used &= ~(1u << (&group - warp.groups.data()));
  for (uint32_t left = group.arrived; left; left &= left - 1) {
    worker.make_ready(worker.thread(warp_number * 32 + static_cast<uint32_t>(__builtin_ctz(left))));
  }
}

// The group of this mask that waits; else a new one.
WarpGroup& group_of(Worker& worker, Warp& warp, uint32_t mask, const WarpOperation& operation, Site site) {
  const uint32_t lane = worker.running().lane;
  for (uint32_t left = warp.used; left; left &= left - 1) {
    WarpGroup& group = warp.groups[static_cast<size_t>(__builtin_ctz(left))];
    // Lanes may come to a barrier of the warp from different lines, to anything else from one.
    const bool other = group.operation != &operation || (!operation.orders_memory && !same_line(group.site, site));
    if (group.mask == mask && !other) return group;
    if (group.mask & mask) {
      fail(
          "warp divergence: lane %u calls %s, mask 0x%08x, at %s:%d while lanes 0x%08x wait in %s, mask 0x%08x, at "
          "%s:%d",
          lane, operation.name, mask, site.file, site.line, group.arrived, group.operation->name, group.mask,
          group.site.file, group.site.line);
    }
  }
  const uint32_t free = ~warp.used & ((1u << warp.groups.size()) - 1);
  if (!free) fail("more than %zu groups of one warp wait at the same time", warp.groups.size());
  WarpGroup& group = warp.groups[static_cast<size_t>(__builtin_ctz(free))];
  warp.used |= free & -free;
  group.mask = mask;
  group.arrived = 0;
  group.operation = &operation;
  group.site = site;
  group.order = operation.orders_memory ? worker.shared.next_order() : nullptr;
  return group;
}

void complete(Worker& worker, Barrier& barrier) {
  ++barrier.phase;
  barrier.arrived = 0;
  for (Thread* thread : barrier.waiting) worker.make_ready(*thread);
  barrier.waiting.clear();
}

}  // namespace

void warp_collective(uint32_t mask, const WarpOperation& operation, void* value, Site site) {
  Worker& self = worker();
  Thread& thread = self.running();
  Warp& warp = self.warp(thread.warp);
  if (!(mask >> thread.lane & 1)) {
    fail("%s at %s:%d: mask 0x%08x does not name the calling lane %u", operation.name, site.file, site.line, mask,
         thread.lane);
  }
  WarpGroup& group = group_of(self, warp, mask, operation, site);
  group.arrived |= 1u << thread.lane;
  group.values[thread.lane] = value;
  void* order = group.order;
  if (order) release(order);
  if (group.arrived == (mask & warp.alive)) {
    complete(self, warp, group, thread.warp);
  } else {
    self.wait(operation.name, mask, site);
  }
  if (order) acquire(order);
}

void block_barrier(Site site) {
  Worker& self = worker();
  Thread& thread = self.running();
  Barrier& barrier = self.barrier;
  if (self.exited()) {
    fail("divergent __syncthreads at %s:%d: %u threads of the block have exited", site.file, site.line, self.exited());
  }
  if (barrier.arrived == 0) barrier.site = site;
  if (!same_line(barrier.site, site)) {
    fail("divergent __syncthreads: thread %u is at %s:%d while %u threads wait at %s:%d", thread.number, site.file,
         site.line, barrier.arrived, barrier.site.file, barrier.site.line);
  }
  const uint32_t phase = barrier.phase;
  void* order = self.shared.barrier_order(phase);
  release(order);
  if (++barrier.arrived == self.alive()) {
    complete(self, barrier);
  } else {
    barrier.waiting.push_back(&thread);
    self.wait("__syncthreads", 0, site);
  }
  acquire(order);
}

void lane_exited(Worker& worker, Thread& thread) {
  Warp& warp = worker.warp(thread.warp);
  for (uint32_t left = warp.used; left; left &= left - 1) {
    WarpGroup& group = warp.groups[static_cast<size_t>(__builtin_ctz(left))];
    if (group.mask >> thread.lane & 1) {
      fail("thread %u exited while lanes 0x%08x of its warp wait for it in %s (%s:%d)", thread.number, group.arrived,
           group.operation->name, group.site.file, group.site.line);
    }
  }
  const Barrier& barrier = worker.barrier;
  if (barrier.arrived) {
    fail("divergent __syncthreads: thread %u exited while %u threads wait at %s:%d", thread.number, barrier.arrived,
         barrier.site.file, barrier.site.line);
  }
}

bool copies_at_once() { return worker().running().copies_at_once; }

void remember_copy(const AsyncCopy& copy) {
  Thread& thread = worker().running();
  thread.copies.push_back({copy, thread.copy_group});
}

void commit_copies() { ++worker().running().copy_group; }

void wait_for_copies(uint32_t groups_left, void (*perform)(const AsyncCopy&)) {
  Thread& thread = worker().running();
  size_t kept = 0;
  for (const PendingCopy& pending : thread.copies) {
    if (pending.group + groups_left < thread.copy_group) {
      perform(pending.copy);
    } else {
      thread.copies[kept++] = pending;
    }
  }
  thread.copies.resize(kept);
}

void fence() {
  static char order[8];
  release(order);
  acquire(order);
}

void count_ldmatrix_phase(int extra) {
  Stats& counted = worker().statistics;
  ++counted.ldmatrix_phases;
  counted.ldmatrix_conflicts += extra;
}

}  // namespace brisk::simt
