// What a test tells the library of fake_cublaslt.cpp, and is told by it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace brisk::test {

struct FakeCublasLt {
  decltype(&cudaLaunchHostFunc) enqueue = nullptr;  ///< the emulated runtime's
  size_t version = 130100;
  std::string fails;      ///< the function that returns status 13 from now on
  std::string complaint;  ///< the first argument that was not as it has to be
  int64_t live = 0;       ///< descriptors that have not been destroyed
  int64_t products = 0;   ///< started
};

}  // namespace brisk::test

/// The library's own: one a process.
extern "C" brisk::test::FakeCublasLt* fake_cublaslt();
