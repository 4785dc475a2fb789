// What is fed by name: which field it is, and whether it has the field's shape and type.
#pragma once

#include <string>
#include <vector>

#include "brisk/field.h"

namespace brisk::exec {

/// Throws Error [data] "<name>" <refusal><names of all fields> for another name, with the closest one.
size_t find_field(const std::vector<Field>& fields, const std::string& name, const char* refusal);

/// Throws Error [data] naming field, wanted and given unless the view is [any number, ...shape of the field] of its
/// dtype in host memory. Allocates nothing when it is.
void check_rows_of(const Field& field, const ConstView& view);

}  // namespace brisk::exec
