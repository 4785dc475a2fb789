// What an Error says.
#pragma once

#include <string>

#include "brisk/error.h"

namespace brisk::test {

/// what() of the Error that `f` throws; "nothing was thrown" when it throws none.
template <class F>
std::string error_text(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace brisk::test
