// Processors and memory this process may use. The kernel's text files are read again at each call: limits may change.
#include "core/machine.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include "brisk/error.h"
#include "core/text.h"

namespace brisk {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "max", an unreadable file and a number beyond 63 bits all mean: no limit.
int64_t limit_in(const std::string& path) {
  const std::string line = first_line(path);
  int64_t value = -1;
  std::istringstream in(line);
  return in >> value && value >= 0 ? value : INT64_MAX;
}

// The value after `key` in a file of "key value" lines; `fallback` when absent.
int64_t value_of(const std::string& path, const std::string& key, int64_t fallback) {
  std::ifstream file(path);
  std::string name;
  std::string rest;
  while (file >> name) {
    int64_t value = 0;
    if (name == key && file >> value) return value;
    file.clear();
    std::getline(file, rest);
  }
  return fallback;
}

struct Level {
  std::string folder;
  bool unified = false;  // cgroup version 2
};

void add_with_parents(const std::string& mount, std::string path, bool unified, std::vector<Level>& levels) {
  while (!path.empty() && path != "/") {
    levels.push_back({mount + path, unified});
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  levels.push_back({mount, unified});
}

// All folders whose limits bind this process for one controller, from its own group to the root, both versions.
std::vector<Level> levels_of(const std::string& controller, const SystemPaths& paths) {
  std::vector<Level> levels;
  std::ifstream groups(paths.proc + "/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      add_with_parents(paths.cgroup, path, true, levels);
    } else if (("," + controllers + ",").find("," + controller + ",") != std::string::npos) {
      add_with_parents(paths.cgroup + "/" + controllers, path, false, levels);
      if (controllers != controller) add_with_parents(paths.cgroup + "/" + controller, path, false, levels);
    }
  }
  return levels;
}

int affinity_count() {
  // Machines with more than 1024 processors need a larger mask than cpu_set_t.
  for (int processors = 1024; processors <= 1 << 20; processors *= 4) {
    cpu_set_t* set = CPU_ALLOC(processors);
    if (!set) break;
    const size_t size = CPU_ALLOC_SIZE(processors);
    const int result = sched_getaffinity(0, size, set);
    const int count = result == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (result == 0) return std::max(count, 1);
  }
  return 1;
}

}  // namespace

int cpu_quota(const SystemPaths& paths) {
  double processors = 0;
  for (const Level& level : levels_of("cpu", paths)) {
    double quota = -1;
    double period = 0;
    if (level.unified) {
      std::istringstream in(first_line(level.folder + "/cpu.max"));
      if (!(in >> quota >> period)) continue;
    } else {
      std::istringstream in(first_line(level.folder + "/cpu.cfs_quota_us"));
      std::istringstream in_period(first_line(level.folder + "/cpu.cfs_period_us"));
      if (!(in >> quota) || !(in_period >> period)) continue;
    }
    if (quota > 0 && period > 0) processors = processors > 0 ? std::min(processors, quota / period) : quota / period;
  }
  return static_cast<int>(std::min(std::ceil(processors), 1e6));
}

int allowed_threads(const SystemPaths& paths) {
  const int quota = cpu_quota(paths);
  const int affinity = affinity_count();
  return quota > 0 ? std::min(quota, affinity) : affinity;
}

int64_t available_memory_bytes(const SystemPaths& paths) {
  const int64_t kilobytes = value_of(paths.proc + "/meminfo", "MemAvailable:", -1);
  int64_t available = kilobytes >= 0 ? kilobytes * 1024 : INT64_MAX;
  for (const Level& level : levels_of("memory", paths)) {
    const int64_t limit = limit_in(level.folder + (level.unified ? "/memory.max" : "/memory.limit_in_bytes"));
    if (limit == INT64_MAX) continue;
    const int64_t usage = limit_in(level.folder + (level.unified ? "/memory.current" : "/memory.usage_in_bytes"));
    if (usage == INT64_MAX) continue;
    // Cached file pages count as used, but the kernel gives them back.
    const int64_t cached =
        value_of(level.folder + "/memory.stat", level.unified ? "inactive_file" : "total_inactive_file", 0);
    available = std::min(available, std::max<int64_t>(limit - usage + cached, 0));
  }
  return available;
}

void check_memory(const std::string& field, int64_t bytes) {
  const int64_t available = available_memory_bytes();
  if (bytes > available) {
    throw Error(ErrorCode::memory, field,
                cat("needs ", grouped(bytes), " bytes, ", grouped(available), " are available on cpu"));
  }
}

void throw_no_memory(const std::string& field, int64_t bytes) {
  throw Error(ErrorCode::memory, field,
              cat("needs ", grouped(bytes), " bytes, which the system refused; it says ",
                  grouped(available_memory_bytes()), " are available on cpu"));
}

}  // namespace brisk
