// brisk/feed.h: named host memory that a step or a predictor reads and writes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brisk/export.h"
#include "brisk/tensor.h"

namespace brisk {

/// Named host views that are read: {{"image", x}, {"imu", y}}.
class BRISK_EXPORT Feed {
 public:
  Feed() = default;
  Feed(std::initializer_list<std::pair<std::string, ConstView>> entries) : entries_(entries) {}
  void add(std::string name, const ConstView& view) { entries_.emplace_back(std::move(name), view); }
  void clear() { entries_.clear(); }
  /// Throws Error [data] that lists the names it has.
  const ConstView& operator[](std::string_view name) const;
  const std::vector<std::pair<std::string, ConstView>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, ConstView>> entries_;
};

/// Named host views that results are written to: {{"logits", a}, {"value", b}}.
class BRISK_EXPORT Fetch {
 public:
  Fetch() = default;
  Fetch(std::initializer_list<std::pair<std::string, View>> entries) : entries_(entries) {}
  void add(std::string name, const View& view) { entries_.emplace_back(std::move(name), view); }
  void clear() { entries_.clear(); }
  const std::vector<std::pair<std::string, View>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, View>> entries_;
};

}  // namespace brisk
