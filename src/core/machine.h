// What this process may use of its machine: processors and memory, under affinity masks and container limits.
#pragma once

#include <cstdint>
#include <string>

namespace brisk {

/// Where the kernel's files are; tests put their own tree here.
struct SystemPaths {
  std::string cgroup = "/sys/fs/cgroup";
  std::string proc = "/proc";
};

/// Processors this process may run on: the affinity mask, capped by the cgroup's cpu quota rounded up; at least 1.
int allowed_threads(const SystemPaths& paths = {});

/// The cgroup's cpu quota in processors, rounded up; 0 when there is none.
int cpu_quota(const SystemPaths& paths);

/// Bytes that can be taken before the kernel swaps or kills: MemAvailable, capped by what the cgroup has left.
/// INT64_MAX when the system does not say.
int64_t available_memory_bytes(const SystemPaths& paths = {});

/// Throws Error [memory] naming `field`, the bytes requested and those available, when they do not suffice.
void check_memory(const std::string& field, int64_t bytes);
[[noreturn]] void throw_no_memory(const std::string& field, int64_t bytes);

}  // namespace brisk
