// Start time and memory of this process.
#include "cli/process.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace brisk::cli {

double process_age_ms() {
  std::FILE* const file = std::fopen("/proc/self/stat", "re");
  if (file == nullptr) return -1;
  char text[1024] = {};
  const size_t size = std::fread(text, 1, sizeof(text) - 1, file);
  std::fclose(file);
  text[size] = '\0';
  const char* at = std::strrchr(text, ')');  // the name before it may hold anything
  unsigned long long start_ticks = 0;
  // Behind the name: state is field 3, the start time field 22.
  const char* const format = " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu";
  if (at == nullptr || std::sscanf(at + 1, format, &start_ticks) != 1) return -1;
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double now_ms = static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
  return now_ms - static_cast<double>(start_ticks) * 1e3 / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int64_t peak_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace brisk::cli
