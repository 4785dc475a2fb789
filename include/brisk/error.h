// brisk/error.h: the one exception type, and the place in the user's program that it names.
#pragma once

#include <exception>
#include <string>

#include "brisk/export.h"

namespace brisk {

/// A line of the user's program. The last parameter of each operation is `Where where = Where::here()`: no macro is
/// needed.
struct Where {
  const char* file = "";  ///< as the compiler spells it; empty: unknown
  int line = 0;           ///< 0: unknown

  /// The line of the caller. The defaults are evaluated where the call stands.
  static constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
  bool known() const { return line > 0; }
  /// "lenet.cpp:9" (the last component of the path), or "" when unknown.
  BRISK_EXPORT std::string text() const;
};

/// What kind of thing went wrong; each prints as its name in brackets.
enum class ErrorCode { backend, data, dist, file, memory, numeric, option, schedule, shape, state, weights };
BRISK_EXPORT const char* name(ErrorCode code);

/// Every failure that Brisk reports. what(): "Error [code] field: message" with actual values and what to do.
class BRISK_EXPORT Error : public std::exception {
 public:
  /// field: the option with its value ("StepOptions.batch = 0"; field() gives the part before " = ") or the operation
  /// ("linear 'fc1'") that is at fault; may be empty.
  /// message: the value, what is allowed, what to do. where: the user's line, for symbolic operations.
  Error(ErrorCode code, std::string field, const std::string& message, Where where = {});
  ~Error() override;

  const char* what() const noexcept override { return text_.c_str(); }
  ErrorCode code() const noexcept { return code_; }
  const std::string& field() const noexcept { return field_; }
  const Where& where() const noexcept { return where_; }

 private:
  ErrorCode code_;
  std::string field_;
  std::string text_;
  Where where_;
};

}  // namespace brisk
