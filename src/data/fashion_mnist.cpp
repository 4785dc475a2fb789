// Fashion-MNIST from the folders where it may lie.
#include <cstdlib>

#include "brisk/data.h"
#include "core/file.h"
#include "core/text.h"

namespace brisk::data {
namespace {

// "<folder>/<name>.gz", "<folder>/<name>", or "" when there is neither.
std::string find_in(const std::string& folder, const std::string& name) {
  for (const char* ending : {".gz", ""}) {
    std::string path = folder + "/" + name + ending;
    if (is_file(path)) return path;
  }
  return {};
}

std::vector<std::string> folders_to_try(const std::string& folder) {
  if (!folder.empty()) return {folder};
  std::vector<std::string> folders;
  const char* chosen = std::getenv("BRISK_DATA");
  if (chosen && *chosen) folders = {chosen, cat(chosen, "/fashion-mnist")};
  folders.push_back("/usr/share/datasets/fashion-mnist");
  return folders;
}

}  // namespace

TrainTest fashion_mnist(const std::string& folder) {
  const std::vector<std::string> folders = folders_to_try(folder);
  for (const std::string& candidate : folders) {
    const std::string train_images = find_in(candidate, "train-images-idx3-ubyte");
    const std::string train_labels = find_in(candidate, "train-labels-idx1-ubyte");
    const std::string test_images = find_in(candidate, "t10k-images-idx3-ubyte");
    const std::string test_labels = find_in(candidate, "t10k-labels-idx1-ubyte");
    if (train_images.empty() || train_labels.empty() || test_images.empty() || test_labels.empty()) continue;
    TrainTest out{idx(train_images, train_labels), idx(test_images, test_labels)};
    out.train.set_name("train");
    out.test.set_name("test");
    return out;
  }
  std::string tried;
  for (const std::string& candidate : folders) tried += (tried.empty() ? "" : ", ") + candidate;
  throw Error(ErrorCode::file, "fashion_mnist",
              cat("the four files train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, "
                  "t10k-labels-idx1-ubyte (plain or .gz) are not together in any of: ",
                  tried,
                  "; install Debian's package dataset-fashion-mnist, set BRISK_DATA to their folder, or use "
                  "data::drawn_digits, which needs no file"));
}

}  // namespace brisk::data
