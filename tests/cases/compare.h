// Compares the outputs of an implementation with the reference's.
#pragma once

#include <string>
#include <vector>

#include "cases/op_cases.h"

namespace brisk::test {

/// What elements are allowed to differ from the reference by, one array an output.
std::vector<oracle::Array> error_scales(const NodeCase& node_case, const std::vector<oracle::Array>& want,
                                        const Tolerance& tolerance);

/// "" when `got` is what the reference gives, faults included, else the first difference in words. stored: the type of
/// each output where it is a narrower one than f32, to which results are rounded once more.
std::string difference(const NodeCase& node_case, const Outcome& got, const Tolerance& tolerance,
                       const std::vector<DType>& stored = {});
/// "" when both are the same to the bit.
std::string difference(const oracle::Array& a, const oracle::Array& b);

}  // namespace brisk::test
