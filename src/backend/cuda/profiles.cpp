// The table of devices. Rates are NVIDIA's data sheets': dense f16 Tensor Core rate with f32 sums, f32 rate, memory
// bandwidth of the SXM form where there are several. Large kernels reach about 80 % of the Tensor Core rate and 90 % of the
// bandwidth, which is what plans count with.
#include "backend/cuda/profiles.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace brisk::backend::cuda {
namespace {

constexpr double kTera = 1e12;

const std::array<Profile, 8> kProfiles = {{
    {"h200", 90, 132, 790 * kTera, 67 * kTera, 4.3 * kTera},
    {"h100", 90, 132, 790 * kTera, 67 * kTera, 3.0 * kTera},
    {"a100", 80, 108, 250 * kTera, 19.5 * kTera, 1.8 * kTera},
    {"l40s", 89, 142, 290 * kTera, 91.6 * kTera, 0.78 * kTera},
    {"rtx4090", 89, 128, 132 * kTera, 82.6 * kTera, 0.9 * kTera},
    {"a10", 86, 72, 100 * kTera, 31.2 * kTera, 0.54 * kTera},
    {"rtx3090", 86, 82, 57 * kTera, 35.6 * kTera, 0.84 * kTera},
    {"t4", 75, 40, 52 * kTera, 8.1 * kTera, 0.29 * kTera},
}};

/// Letters and digits alone, in lower case: "NVIDIA GeForce RTX 4090" holds "rtx4090".
std::string plain_letters(std::string_view text) {
  std::string letters;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)))
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

}  // namespace

std::span<const Profile> profiles() { return kProfiles; }

const Profile* find_profile(std::string_view name) {
  const auto found = std::find_if(kProfiles.begin(), kProfiles.end(), [&](const Profile& p) { return p.name == name; });
  return found == kProfiles.end() ? nullptr : &*found;
}

const Profile& default_profile() { return kProfiles[0]; }

Profile profile_of(std::string_view device_name, int capability, int processors) {
  const std::string letters = plain_letters(device_name);
  const Profile* chosen = nullptr;
  for (const Profile& profile : kProfiles)  // the longest name: "a100" holds "a10"
    if (letters.find(profile.name) != std::string::npos && (!chosen || profile.name.size() > chosen->name.size()))
      chosen = &profile;
  Profile made = chosen ? *chosen : kProfiles.back();
  if (!chosen) {
    for (const Profile& profile : kProfiles)
      if (profile.capability <= capability && profile.capability > made.capability) made = profile;
    // Rates grow with the processors, as far as they are of the same kind.
    const double share = static_cast<double>(processors) / made.processors;
    made.low_flops *= share, made.f32_flops *= share, made.bytes_per_second *= share;
    made.name = letters.empty() ? "unknown" : letters;
  }
  made.capability = capability;
  made.processors = processors;
  return made;
}

std::string architecture(const Profile& profile) {
  return "sm_" + std::to_string(profile.capability) + (profile.capability == 90 ? "a" : "");
}

}  // namespace brisk::backend::cuda
