// The one exception type: its text is made once, when it is thrown.
#include "brisk/error.h"

#include <algorithm>
#include <string_view>

namespace brisk {

std::string Where::text() const {
  if (!known()) return {};
  std::string_view path(file);
  const size_t slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return std::string(path) + ":" + std::to_string(line);
}

const char* name(ErrorCode code) {
  switch (code) {
    case ErrorCode::backend:
      return "backend";
    case ErrorCode::data:
      return "data";
    case ErrorCode::dist:
      return "dist";
    case ErrorCode::file:
      return "file";
    case ErrorCode::memory:
      return "memory";
    case ErrorCode::numeric:
      return "numeric";
    case ErrorCode::option:
      return "option";
    case ErrorCode::schedule:
      return "schedule";
    case ErrorCode::shape:
      return "shape";
    case ErrorCode::state:
      return "state";
    case ErrorCode::weights:
      return "weights";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string field, const std::string& message, Where where)
    : code_(code), field_(std::move(field)), where_(where) {
  std::string subject = field_;
  if (where.known()) subject += (subject.empty() ? "(" : " (") + where.text() + ")";
  field_.resize(std::min(field_.find(" = "), field_.size()));
  text_ = std::string("Error [") + name(code) + "] " + subject + (subject.empty() ? "" : ": ") + message;
}

Error::~Error() = default;

}  // namespace brisk
