// The table of devices. Rates are those of NVIDIA's data sheets (SXM forms): dense f16 Tensor Core rate with f32 sums,
// f32 rate, memory bandwidth. Large kernels reach about 80 % of the Tensor Core rate and 90 % of the bandwidth, which
// is what plans count with.
#include "backend/cuda/profiles.h"

#include <algorithm>
#include <cctype>

namespace brisk::backend::cuda {
namespace {

constexpr double kTera = 1e12;
constexpr int64_t kGiB = int64_t{1} << 30, kKiB = int64_t{1} << 10;

Profile device(std::string name, int capability, int processors, double low_tera, double f32_tera, double tera_bytes,
               int64_t memory_gib, int64_t shared_kib) {
  return {.name = std::move(name),
          .bytes_per_s = tera_bytes * kTera,
          .capability = capability,
          .flops_per_s = low_tera * kTera,
          .flops_per_s_f32 = f32_tera * kTera,
          .memory_bytes = memory_gib * kGiB,
          .processors = processors,
          .shared_bytes = shared_kib * kKiB};
}

/// Letters and digits alone, in lower case: "NVIDIA GeForce RTX 4090" holds "rtx4090".
std::string letters_of(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) letters += static_cast<char>(std::tolower(byte));
  }
  return letters;
}

}  // namespace

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> table = {
      device("h200", 90, 132, 790, 67, 4.3, 141, 227),    device("h100", 90, 132, 790, 67, 3.0, 80, 227),
      device("a100", 80, 108, 250, 19.5, 1.8, 80, 163),   device("l40s", 89, 142, 290, 91.6, 0.78, 48, 99),
      device("rtx4090", 89, 128, 132, 82.6, 0.9, 24, 99), device("a10", 86, 72, 100, 31.2, 0.54, 24, 99),
      device("rtx3090", 86, 82, 57, 35.6, 0.84, 24, 99),  device("t4", 75, 40, 52, 8.1, 0.29, 16, 64),
  };
  return table;
}

const Profile* find_profile(std::string_view name) {
  const auto found =
      std::find_if(profiles().begin(), profiles().end(), [&](const Profile& known) { return known.name == name; });
  return found == profiles().end() ? nullptr : &*found;
}

Profile profile_of(std::string_view device_name, int capability, int processors, int64_t memory_bytes,
                   int64_t shared_bytes) {
  const std::string letters = letters_of(device_name);
  const Profile* named = nullptr;
  for (const Profile& known : profiles())  // the longest: "a100" holds "a10"
    if (letters.find(known.name) != std::string::npos && (!named || known.name.size() > named->name.size()))
      named = &known;
  const Profile* near = &profiles().back();
  for (const Profile& known : profiles())
    if (known.capability <= capability && known.capability > near->capability) near = &known;
  Profile made = named ? *named : *near;
  if (!named) {
    const double share = static_cast<double>(processors) / made.processors;
    made.flops_per_s *= share, made.flops_per_s_f32 *= share, made.bytes_per_s *= share;
    made.name = letters;
  }
  made.capability = capability;
  made.processors = processors;
  made.memory_bytes = memory_bytes;
  made.shared_bytes = shared_bytes;
  return made;
}

std::string architecture(const Profile& profile) {
  return "sm_" + std::to_string(profile.capability) + (profile.capability == 90 ? "a" : "");
}

}  // namespace brisk::backend::cuda
