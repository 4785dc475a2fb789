// Fields of data sets and batches by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "brisk/field.h"

namespace brisk::data {

/// The number of the field called `name`. Throws Error [data] "<owner> has no field ...; it has ..." with the closest
/// name.
int64_t field_number(const std::vector<Field>& fields, std::string_view name, std::string_view owner);

}  // namespace brisk::data
