// The attributes of an operation: a small sorted map from names to values, the same for every op, so that printing,
// comparing, verifying and planning need no per-op code.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace brisk {
class CustomOp;
}

namespace brisk::graph {

/// The object is an operation of the user's: two are equal when they are the same object; printed is its name.
using Object = std::shared_ptr<const CustomOp>;
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, Object>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries);

  void set(std::string_view name, Attribute value);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Attribute* find(std::string_view name) const;
  /// The value; throws Error [state] when the attribute is absent or of another kind.
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  const std::vector<double>& reals(std::string_view name) const;
  const CustomOp& object(std::string_view name) const;

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool operator==(const Attributes& other) const { return entries_ == other.entries_; }
  /// "{kernel = [5, 5], stride = [1, 1]}", or "" when there are none.
  std::string print() const;

 private:
  template <class T>
  const T& get(std::string_view name) const;
  std::vector<std::pair<std::string, Attribute>> entries_;  // sorted by name
};

}  // namespace brisk::graph
