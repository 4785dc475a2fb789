// Globs over parameter names: `*` is any text (dots too), `?` one character, everything else itself.
#pragma once

#include <string_view>

namespace brisk::optim {

bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace brisk::optim
