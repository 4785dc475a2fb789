// The twin of png/, compiled where the library was not found.
#include "data/codec.h"

namespace brisk::data {

std::unique_ptr<Codec> make_png_codec() {
  throw Error(ErrorCode::option, "", "this build reads no PNG files; install libpng-dev and build again");
}

}  // namespace brisk::data
