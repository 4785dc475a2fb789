// Glob matching by going back to the last star: linear memory of two positions, no recursion.
#include "optim/glob.h"

#include <cstddef>

namespace brisk::optim {

bool glob_matches(std::string_view pattern, std::string_view text) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t p = 0, t = 0, star = kNone, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace brisk::optim
