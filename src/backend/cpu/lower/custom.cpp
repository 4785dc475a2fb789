// Operations of the user's own: batched operands are brought into rows of the workspace, one worker calls the user's
// code while the others help with its loops, and what it wrote is brought back into lanes.
#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/plan.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/lower/relayout.h"
#include "graph/op_table.h"

namespace brisk::backend::cpu {
namespace {

using graph::ValueType;

/// An operand as the user sees it: row-major, where the operand lies or in the workspace.
struct UserValue {
  int operand = -1;      ///< of the node; -1: a gradient that nobody wants
  int64_t rows_at = -1;  ///< offset in the workspace; -1: the operand itself
  Relayout move;
  int64_t units = 0;  ///< of the move
  DType dtype = DType::f32;
  Shape shape;
};

/// One node. All that a call needs is made here, so that it allocates nothing; one call runs at a time.
struct UserCall {
  const CustomOp* op = nullptr;
  bool backward = false;
  std::vector<UserValue> in, out;
  std::vector<uint8_t> wanted;
  std::vector<ConstView> in_views;
  std::vector<View> out_views;
  Team team;
};
using SharedCall = std::shared_ptr<UserCall>;

class WorkerContext : public OpContext {
 public:
  explicit WorkerContext(Team& team) : team_(team) {}

 private:
  void run(Piece piece, void* function, int64_t count) const override { team_.run(piece, function, count); }
  Team& team_;
};

bool in_lanes(const Call& call, graph::ValueId id) { return call.graph.value(id).layout == graph::Layout::lanes; }

/// lanes: how the operand lies; one that nobody wants has rows of its own.
UserValue user_value(const Call& call, const ValueType& type, int operand, bool lanes, Lowering& lowering) {
  UserValue value;
  value.operand = operand;
  value.dtype = type.dtype;
  if (type.batched()) value.shape.append(type.rows * call.samples);
  for (const int64_t size : type.shape) value.shape.append(size);
  if (!lanes && operand >= 0) return value;
  value.rows_at = lowering.workspace(value.shape.count() * size_of(type.dtype));
  if (operand < 0) return value;
  value.move = make_relayout(call, type);
  value.units = units(call, value.move);
  return value;
}

/// Between the lanes of the operands and the rows of the workspace, value after value.
struct Moves {
  SharedCall call;
  bool out = false;
  PhaseFunction kernel = nullptr;
  const std::vector<UserValue>& values() const { return out ? call->out : call->in; }
};

void move_values(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& moves = *static_cast<const Moves*>(parameters);
  for (const UserValue& value : moves.values()) {
    const int64_t end = std::min(last, value.units);
    if (first < end) {
      void* rows = operands.workspace + value.rows_at;
      const void* source = moves.out ? rows : operands.in[value.operand];
      void* target = moves.out ? operands.out[value.operand] : rows;
      Operands one = operands;
      one.in = &source;
      one.out = &target;
      moves.kernel(&value.move, one, first, end);
    }
    first = std::max<int64_t>(first - value.units, 0);
    last -= value.units;
  }
}

void move(Moves moves, Lowering& lowering) {
  int64_t units = 0;
  for (const UserValue& value : moves.values()) units += value.units;
  if (units > 0) lowering.phase(move_values, units, std::move(moves));
}

void bind_views(UserCall& call, const Operands& operands) {
  for (size_t i = 0; i < call.in.size(); ++i) {
    const UserValue& value = call.in[i];
    const void* data = value.rows_at >= 0 ? operands.workspace + value.rows_at : operands.in[value.operand];
    call.in_views[i] = ConstView(data, value.shape, value.dtype);
  }
  for (size_t i = 0; i < call.out.size(); ++i) {
    const UserValue& value = call.out[i];
    void* data = nullptr;  // of an integer's gradient
    if (value.rows_at >= 0) {
      data = operands.workspace + value.rows_at;
    } else if (value.operand >= 0) {
      data = operands.out[value.operand];
    }
    call.out_views[i] = View(data, value.shape, value.dtype);
  }
}

void call_op(const UserCall& call, const OpContext& context) {
  const ConstView* in = call.in_views.data();
  const Views out(call.out_views.data(), call.out_views.size());
  if (!call.backward) {
    call.op->forward(context, {in, call.in_views.size()}, out);
    return;
  }
  const Reads reads = call.op->backward_reads();
  const size_t inputs = reads == Reads::inputs || reads == Reads::both ? out.size() : 0;
  const size_t outputs = reads == Reads::outputs || reads == Reads::both ? 1 : 0;
  call.op->backward(context, {.inputs = {in + 1, inputs, "backward_reads() says that backward reads no inputs"},
                              .outputs = {in + 1 + inputs, outputs, "backward_reads() says that it reads no outputs"},
                              .output_gradients = {in, 1},
                              .input_gradients = out,
                              .wanted = {call.wanted.data(), call.wanted.size()}});
}

/// The one unit of the middle phase. An exception becomes the fault of the run, unless there is one already.
void call_user(const void* parameters, const Operands& operands, int64_t, int64_t) {
  UserCall& call = **static_cast<const SharedCall*>(parameters);
  bind_views(call, operands);
  Status& status = *operands.run->status;
  bool failed = status.set();
  if (!failed) {
    try {
      call_op(call, WorkerContext(call.team));
    } catch (...) {
      failed = true;
      int32_t none = Status::none;
      if (status.kind.compare_exchange_strong(none, Status::user_op)) {
        status.node = operands.node;
        status.exception = std::current_exception();
      }
    }
  }
  // The rest of a run that has failed computes on something; what it computes is dropped.
  for (const View& view : call.out_views)
    if (failed && view.raw()) std::memset(view.raw(), 0, view.bytes().size());
  call.team.close();
}

void add_phases(const Call& call, const SharedCall& made, Lowering& lowering) {
  made->in_views.resize(made->in.size());
  made->out_views.resize(made->out.size());
  move({made, false, BRISK_PHASE(call, store_lanes)}, lowering);
  lowering.phase(call_user, 1, made);
  lowering.phases.back().team = &made->team;
  move({made, true, BRISK_PHASE(call, load_lanes)}, lowering);
}

SharedCall make_call(const Call& call, bool backward, Lowering& lowering) {
  auto made = std::make_shared<UserCall>();
  made->op = &call.node.attributes.object("op");
  made->backward = backward;
  for (int i = 0; i < call.inputs(); ++i)
    made->in.push_back(
        user_value(call, call.input(i), i, in_lanes(call, call.node.inputs[static_cast<size_t>(i)]), lowering));
  return made;
}

}  // namespace

void lower_custom_op(const Call& call, Lowering& lowering) {
  const SharedCall made = make_call(call, false, lowering);
  made->out.push_back(user_value(call, call.output(0), 0, in_lanes(call, call.node.outputs[0]), lowering));
  add_phases(call, made, lowering);
}

void lower_custom_op_gradient(const Call& call, Lowering& lowering) {
  const SharedCall made = make_call(call, true, lowering);
  const std::vector<ValueType> types = graph::custom_input_types(call.node.attributes, call.input(0).rows);
  const std::vector<int64_t>& wanted = call.node.attributes.integers("wanted");
  int output = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    made->wanted.push_back(wanted[i] != 0 ? 1 : 0);
    if (wanted[i] != 0) {
      const bool lanes = in_lanes(call, call.node.outputs[static_cast<size_t>(output)]);
      made->out.push_back(user_value(call, types[i], output++, lanes, lowering));
    } else if (types[i].dtype == DType::f32) {
      made->out.push_back(user_value(call, types[i], -1, false, lowering));
    } else {
      made->out.push_back({});
      made->out.back().dtype = types[i].dtype;
    }
  }
  add_phases(call, made, lowering);
}

}  // namespace brisk::backend::cpu
