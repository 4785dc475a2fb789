// Text for messages.
#include "core/text.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <vector>

namespace brisk {

namespace {
std::string format(double value, std::chars_format style, int precision) {
  char buffer[512];  // the largest double has 309 digits before the point
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof(buffer), value, style, precision);
  return {buffer, end.ec == std::errc() ? end.ptr : buffer};
}
}  // namespace

std::string number_text(double value, int digits) { return format(value, std::chars_format::general, digits); }
std::string fixed_text(double value, int decimals) { return format(value, std::chars_format::fixed, decimals); }

std::string grouped(int64_t value) {
  const std::string plain = std::to_string(value);
  std::string out;
  for (size_t i = 0; i < plain.size(); ++i) {
    const bool after_digit = i > 0 && plain[i - 1] != '-';
    if (after_digit && (plain.size() - i) % 3 == 0) out += ',';
    out += plain[i];
  }
  return out;
}

namespace {
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}
}  // namespace

std::string closest(std::string_view word, std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  size_t best_distance = word.size() / 2 + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best ? *best : std::string();
}

std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace brisk
