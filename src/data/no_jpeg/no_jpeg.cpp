// The twin of jpeg/, compiled where the library was not found.
#include "data/codec.h"

namespace brisk::data {

std::unique_ptr<Codec> make_jpeg_codec() {
  throw Error(ErrorCode::option, "", "this build reads no JPEG files; install libjpeg62-turbo-dev and build again");
}

}  // namespace brisk::data
