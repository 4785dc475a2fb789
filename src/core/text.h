// Text for messages: cat(...) joins strings, numbers and anything with text(). Not for hot paths.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace brisk {

/// As printf's %g, with a point in every locale: "0.001", "3e-04".
std::string number_text(double value, int digits = 6);
/// As printf's %.*f, with a point in every locale: "2.50".
std::string fixed_text(double value, int decimals);
/// "9,126,805,504"
std::string grouped(int64_t value);
/// The candidate closest to `word` by edit distance when at most half of its letters differ, else "".
std::string closest(std::string_view word, std::span<const std::string> candidates);
/// The message of an errno value: "No such file or directory".
std::string errno_text(int error);

namespace text_detail {
template <class T>
void append(std::string& out, const T& part) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out += std::string_view(part);
  } else if constexpr (std::is_same_v<T, char>) {
    out += part;
  } else if constexpr (std::is_same_v<T, bool>) {
    out += part ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    out += std::to_string(part);
  } else if constexpr (std::is_floating_point_v<T>) {
    out += number_text(static_cast<double>(part));
  } else {
    out += part.text();
  }
}
}  // namespace text_detail

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (text_detail::append(out, parts), ...);
  return out;
}

}  // namespace brisk
