// Named views.
#include "brisk/feed.h"

#include "core/text.h"

namespace brisk {

const ConstView& Feed::operator[](std::string_view name) const {
  std::string names;
  for (const auto& [known, view] : entries_) {
    if (known == name) return view;
    names += (names.empty() ? "" : ", ") + known;
  }
  throw Error(ErrorCode::data, "Feed", cat("no value \"", name, "\"; it has ", names.empty() ? "none" : names));
}

}  // namespace brisk
