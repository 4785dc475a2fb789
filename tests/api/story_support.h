// What the stories share: small data and the text of an error.
#pragma once

#include <brisk/brisk.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include "support/error_text.h"

namespace story {

using brisk::test::error_text;

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A file of this process that goes when the story ends.
class File {
 public:
  explicit File(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / ("brisk-story-" + std::to_string(getpid()) + "-" + name))
                  .string()) {}
  ~File() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Numbers between 0 and 1 that repeat after a prime.
inline std::vector<float> numbers(int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i * 37 % 101) / 101;
  return out;
}

/// 0, 1, ... classes - 1, 0, ...
inline std::vector<int64_t> labels(int64_t count, int64_t classes) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(i) % classes;
  return out;
}

inline bool same_bits(const brisk::Tensor& a, const brisk::Tensor& b) {
  return a.shape() == b.shape() && std::equal(a.data<float>(), a.data<float>() + a.count(), b.data<float>());
}

/// The network of the first story.
inline brisk::Var lenet(brisk::Var x) {  // [N, 1, 28, 28]; N is never written
  using namespace brisk;
  x = max_pool2d(relu(conv2d(x, {.channels = 20, .kernel = 5})), {.kernel = 2});  // parameters conv1.weight, conv1.bias
  x = max_pool2d(relu(conv2d(x, {.channels = 50, .kernel = 5})), {.kernel = 2});  // conv2.*
  return linear(relu(linear(flatten(x), 500)), 10);                               // fc1.*, fc2.*
}

}  // namespace story
