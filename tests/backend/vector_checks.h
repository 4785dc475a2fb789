// Checks of the vector type on one instruction set; they need a processor that has it.
#pragma once

namespace brisk::test {

/// What went wrong first, or "".
using VectorCheck = const char* (*)();

namespace avx2 {
VectorCheck vector_check(int i);  ///< null past the last
}
namespace avx512 {
VectorCheck vector_check(int i);
}

}  // namespace brisk::test
