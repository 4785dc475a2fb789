// Container limits are read from both versions of control groups, from the process's own group up to the root.
#include "core/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace brisk {
namespace {

class Machine : public testing::Test {
 protected:
  Machine() : root_(std::filesystem::path(testing::TempDir()) / ("brisk_machine_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(root_);
  }
  ~Machine() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  SystemPaths paths() const { return {.cgroup = (root_ / "cgroup").string(), .proc = (root_ / "proc").string()}; }

 private:
  const std::filesystem::path root_;
};

TEST_F(Machine, QuotaOfTheSecondVersionIsRoundedUpAndParentsBind) {
  put("proc/self/cgroup", "0::/pod/box\n");
  put("cgroup/pod/box/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(paths()), 0);
  put("cgroup/pod/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(paths()), 2);
  put("cgroup/pod/box/cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_quota(paths()), 1);
  EXPECT_EQ(allowed_threads(paths()), 1);
}

TEST_F(Machine, QuotaOfTheFirstVersion) {
  put("proc/self/cgroup", "4:memory:/box\n1:cpu,cpuacct:/box\n");
  put("cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  put("cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(paths()), 0);
  put("cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "320000\n");
  EXPECT_EQ(cpu_quota(paths()), 4);
}

TEST_F(Machine, MemoryIsWhatSystemAndGroupsLeave) {
  EXPECT_EQ(available_memory_bytes(paths()), INT64_MAX);
  put("proc/meminfo", "MemTotal:  4000 kB\nMemFree:  100 kB\nMemAvailable:   1000 kB\n");
  EXPECT_EQ(available_memory_bytes(paths()), 1'024'000);
  put("proc/self/cgroup", "0::/box\n");
  put("cgroup/box/memory.max", "max\n");
  EXPECT_EQ(available_memory_bytes(paths()), 1'024'000);
  put("cgroup/box/memory.max", "1000000\n");
  put("cgroup/box/memory.current", "900000\n");
  put("cgroup/box/memory.stat", "anon 1\ninactive_file 50000\nactive_file 7\n");
  EXPECT_EQ(available_memory_bytes(paths()), 150'000);
  put("cgroup/box/memory.current", "2000000\n");
  EXPECT_EQ(available_memory_bytes(paths()), 0);
}

TEST_F(Machine, MemoryOfTheFirstVersion) {
  put("proc/self/cgroup", "4:memory:/box\n");
  put("cgroup/memory/box/memory.limit_in_bytes", "500000\n");
  put("cgroup/memory/box/memory.usage_in_bytes", "100000\n");
  put("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("cgroup/memory/memory.usage_in_bytes", "700000\n");
  EXPECT_EQ(available_memory_bytes(paths()), 400'000);
}

TEST(MachineHere, HasAProcessorAndMemory) {
  EXPECT_GE(allowed_threads(), 1);
  EXPECT_GT(available_memory_bytes(), 1 << 20);
}

}  // namespace
}  // namespace brisk
