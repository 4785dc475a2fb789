#include "exec/faults.h"

#include "core/text.h"

namespace brisk::exec {

void raise_user_op(const graph::Node& node, const std::exception_ptr& thrown) {
  std::string what = "something that is no std::exception";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  throw Error(ErrorCode::state, graph::label(node),
              cat("its ", node.stage == graph::Stage::forward ? "forward" : "backward", " threw: ", what), node.where);
}

}  // namespace brisk::exec
