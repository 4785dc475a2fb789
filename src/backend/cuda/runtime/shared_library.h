// A library that is opened at run time, where the machine has it.
#pragma once

#include <dlfcn.h>

#include <string>

#include "core/text.h"

namespace brisk::backend::cuda {

class SharedLibrary {
 public:
  explicit SharedLibrary(const char* name) : name_(name), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) missing_ = cat(name, " not found");
  }
  ~SharedLibrary() {
    if (handle_) dlclose(handle_);
  }
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  /// Sets the pointer; a name that the library lacks counts as missing.
  template <class Function>
  void find(const char* symbol, Function*& function) {
    function = handle_ ? reinterpret_cast<Function*>(dlsym(handle_, symbol)) : nullptr;
    if (!function && missing_.empty()) missing_ = cat(name_, " has no ", symbol);
  }
  /// Why it cannot be used; empty: it can.
  const std::string& missing() const { return missing_; }

 private:
  std::string name_, missing_;
  void* handle_ = nullptr;
};

}  // namespace brisk::backend::cuda
