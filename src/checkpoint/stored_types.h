// The element types of the .safetensors format.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/safetensors.h"

namespace brisk::checkpoint {

struct StoredType {
  const char* name;
  int bits;  ///< of one element
  int rank;  ///< place in the format's order; tensors of later types stand first in a file
};

/// nullptr: no type of the format.
const StoredType* find_stored_type(std::string_view name);
/// "BOOL, F4, ..."
std::string stored_type_names();
/// Bytes of the tensor by shape and type. Throws Error [file] when they do not fit 63 bits or are no whole bytes.
int64_t stored_bytes(const std::string& path, const StoredTensor& tensor);

}  // namespace brisk::checkpoint
