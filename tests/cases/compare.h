// Compares the outputs of an implementation with the reference's.
#pragma once

#include <string>
#include <vector>

#include "cases/op_cases.h"

namespace brisk::test {

/// What elements are allowed to differ from the reference by, one array an output.
std::vector<oracle::Array> error_scales(const NodeCase& node_case, const std::vector<oracle::Array>& want,
                                        const Tolerance& tolerance);

/// "" when `got` is what the reference gives, faults included, else the first difference in words.
std::string difference(const NodeCase& node_case, const Outcome& got, const Tolerance& tolerance);

}  // namespace brisk::test
