// Attributes: lookups by name, and text that reads back to the same values.
#include "graph/attributes.h"

#include <algorithm>
#include <charconv>

#include "brisk/op.h"
#include "core/text.h"

namespace brisk::graph {
namespace {

// The shortest digits that read back to the same number.
std::string text_of(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const Object& value) { return value->name(); }
template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + text_of(values[i]);
  return out + "]";
}

bool before(const std::pair<std::string, Attribute>& entry, std::string_view name) { return entry.first < name; }

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

void Attributes::set(std::string_view name, Attribute value) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, before);
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.insert(at, {std::string(name), std::move(value)});
  }
}

const Attribute* Attributes::find(std::string_view name) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, before);
  return at != entries_.end() && at->first == name ? &at->second : nullptr;
}

template <class T>
const T& Attributes::get(std::string_view name) const {
  const Attribute* found = find(name);
  if (!found) throw Error(ErrorCode::state, cat("attribute '", name, "'"), cat("is missing in ", print()));
  const T* value = std::get_if<T>(found);
  if (!value) throw Error(ErrorCode::state, cat("attribute '", name, "'"), cat("is of another kind in ", print()));
  return *value;
}

bool Attributes::flag(std::string_view name) const { return get<bool>(name); }
int64_t Attributes::integer(std::string_view name) const { return get<int64_t>(name); }
double Attributes::real(std::string_view name) const { return get<double>(name); }
const std::string& Attributes::text(std::string_view name) const { return get<std::string>(name); }
const std::vector<int64_t>& Attributes::integers(std::string_view name) const {
  return get<std::vector<int64_t>>(name);
}
const std::vector<double>& Attributes::reals(std::string_view name) const { return get<std::vector<double>>(name); }
const CustomOp& Attributes::object(std::string_view name) const { return *get<Object>(name); }

std::string Attributes::print() const {
  if (entries_.empty()) return {};
  std::string out = "{";
  for (const auto& [name, value] : entries_) {
    if (out.size() > 1) out += ", ";
    out += name + " = " + std::visit([](const auto& v) { return text_of(v); }, value);
  }
  return out + "}";
}

}  // namespace brisk::graph
