// memory: lifetimes over waves, storage shared where legal (views, in place), and one arena packed by offsets.
#include <algorithm>
#include <numeric>

#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Place;
using graph::ValueId;

namespace {

constexpr int64_t kAlignment = 64;
int64_t align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// One piece of the arena: a value with all that share its storage, or a node's workspace.
struct Block {
  int64_t bytes = 0;
  int32_t first = 0;  ///< waves, both inclusive
  int32_t last = 0;
  ValueId value = kNoValue;
  int32_t node = -1;  ///< a workspace
  int64_t offset = -1;
  bool overlaps(const Block& other) const { return first <= other.last && other.first <= last; }
};

/// A block with its place, in the order of places.
struct Placed {
  int64_t begin = 0, end = 0;
  int32_t first = 0, last = 0;
};

/// The value whose storage `id` uses.
ValueId root(const Graph& graph, ValueId id) {
  while (graph.value(id).alias != kNoValue) id = graph.value(id).alias;
  return id;
}

/// Values inside a fused kernel live in registers and caches: they need no storage.
bool internal(const Graph& graph, const std::vector<std::vector<int32_t>>& readers, ValueId id) {
  const graph::Value& value = graph.value(id);
  if (value.producer < 0) return false;
  const int32_t group = node_at(graph, value.producer).group;
  const auto& list = readers[static_cast<size_t>(id)];
  return group >= 0 && !list.empty() &&
         std::all_of(list.begin(), list.end(), [&](int32_t reader) { return node_at(graph, reader).group == group; });
}

int32_t last_wave(const Graph& graph, const std::vector<std::vector<int32_t>>& readers, ValueId id) {
  int32_t wave = node_at(graph, graph.value(id).producer).wave;
  for (const int32_t reader : readers[static_cast<size_t>(id)]) wave = std::max(wave, node_at(graph, reader).wave);
  return wave;
}

class Planner {
 public:
  Planner(Graph& graph, const PlanRequest& request) : graph_(graph), request_(request), readers_(graph.consumers()) {}

  void run() {
    share();
    collect();
    pack();
    for (const Block& block : blocks_) {
      if (block.value != kNoValue) graph_.value(block.value).offset = block.offset;
      if (block.node >= 0) graph_.nodes[static_cast<size_t>(block.node)].workspace_offset = block.offset;
    }
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      graph::Value& value = graph_.values[i];
      if (value.alias != kNoValue) value.offset = graph_.value(root(graph_, static_cast<ValueId>(i))).offset;
    }
  }

 private:
  bool stored(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    return value.place == Place::activation && value.producer >= 0 && !internal(graph_, readers_, id);
  }

  /// Views share their input's storage; an output may take over an input that nobody reads any more.
  void share() {
    last_.assign(graph_.values.size(), -1);
    for (size_t i = 0; i < graph_.values.size(); ++i)
      if (stored(static_cast<ValueId>(i))) last_[i] = last_wave(graph_, readers_, static_cast<ValueId>(i));
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.outputs.empty() || !stored(node.outputs[0])) continue;
      const ValueId out = node.outputs[0];
      if (is_view(graph_, node) && stored(node.inputs[0])) {
        take_over(out, node.inputs[0]);
        continue;
      }
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (may_overwrite(static_cast<int32_t>(i), static_cast<int>(k))) {
          take_over(out, node.inputs[k]);
          break;
        }
    }
  }

  bool may_overwrite(int32_t index, int input) const {
    const Node& node = node_at(graph_, index);
    const ValueId in = node.inputs[static_cast<size_t>(input)], out = node.outputs[0];
    if (!stored(in) || bytes(in) != bytes(out) || !request_.target->in_place(graph_, index, input)) return false;
    const ValueId storage = root(graph_, in);
    if (last_[static_cast<size_t>(storage)] > node.wave) return false;
    // Nobody else of this wave may read the storage, under any name; nor may this node read it twice.
    int reads = 0;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      if (!stored(static_cast<ValueId>(i)) || root(graph_, static_cast<ValueId>(i)) != storage) continue;
      for (const int32_t reader : readers_[i]) {
        if (node_at(graph_, reader).wave != node.wave) continue;
        if (reader != index) return false;
        reads += static_cast<int>(std::count(node.inputs.begin(), node.inputs.end(), static_cast<ValueId>(i)));
      }
    }
    return reads == 1;
  }

  void take_over(ValueId out, ValueId in) {
    graph_.value(out).alias = in;
    int32_t& last = last_[static_cast<size_t>(root(graph_, in))];
    last = std::max(last, last_[static_cast<size_t>(out)]);
  }

  int64_t bytes(ValueId id) const { return align(value_bytes(graph_, id, request_.samples, request_.target->lanes())); }

  void collect() {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if (!stored(id)) continue;
      graph_.value(id).bytes = bytes(id);
      if (graph_.value(id).alias != kNoValue) continue;
      blocks_.push_back({bytes(id), node_at(graph_, graph_.value(id).producer).wave, last_[i], id, -1, -1});
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.workspace_bytes > 0)
        blocks_.push_back({node.workspace_bytes, node.wave, node.wave, kNoValue, static_cast<int32_t>(i), -1});
    }
  }

  /// Several orders of first-fit placement; the tightest wins, the first of equals.
  void pack() {
    int32_t waves = 0;
    for (const Block& block : blocks_) waves = std::max(waves, block.last + 1);
    std::vector<int64_t> live(static_cast<size_t>(waves), 0);
    for (const Block& block : blocks_)
      for (int32_t wave = block.first; wave <= block.last; ++wave) live[static_cast<size_t>(wave)] += block.bytes;
    graph_.live_bytes = live.empty() ? 0 : *std::max_element(live.begin(), live.end());

    const auto area = [](const Block& b) { return static_cast<double>(b.bytes) * (b.last - b.first + 1); };
    std::vector<size_t> order(blocks_.size());
    std::vector<Block> best;
    int64_t best_bytes = -1;
    const auto attempt = [&](auto&& before) {
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return before(blocks_[a], blocks_[b]); });
      improve(order, best, best_bytes);
    };
    attempt([](const Block& a, const Block& b) { return a.bytes > b.bytes; });
    attempt([&](const Block& a, const Block& b) { return area(a) > area(b); });
    attempt([](const Block& a, const Block& b) { return a.last - a.first > b.last - b.first; });
    attempt([](const Block& a, const Block& b) { return a.first < b.first; });
    attempt([](const Block& a, const Block& b) { return a.last > b.last; });
    blocks_ = std::move(best);
    graph_.arena_bytes = std::max<int64_t>(best_bytes, 0);
  }

  /// Places in the given order, then moves the block that sticks out most to the front and tries again, while that
  /// helps.
  void improve(std::vector<size_t> order, std::vector<Block>& best, int64_t& best_bytes) {
    constexpr int kRounds = 40;
    for (int round = 0; round < kRounds && best_bytes != graph_.live_bytes; ++round) {
      std::vector<Block> placed = blocks_;
      int64_t end = 0;
      size_t highest = 0;
      std::vector<Placed> done;
      done.reserve(order.size());
      for (size_t i = 0; i < order.size(); ++i) {
        Block& block = placed[order[i]];
        block.offset = lowest_gap(done, block);
        const Placed mine{block.offset, block.offset + block.bytes, block.first, block.last};
        const auto lower = [](const Placed& a, const Placed& b) { return a.begin < b.begin; };
        done.insert(std::upper_bound(done.begin(), done.end(), mine, lower), mine);
        if (block.offset + block.bytes > end) {
          end = block.offset + block.bytes;
          highest = i;
        }
      }
      if (best_bytes < 0 || end < best_bytes) {
        best_bytes = end;
        best = placed;
      }
      if (highest == 0) break;
      std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(highest),
                  order.begin() + static_cast<std::ptrdiff_t>(highest) + 1);
    }
    if (best.empty()) best = blocks_;
  }

  static int64_t lowest_gap(const std::vector<Placed>& placed, const Block& block) {
    int64_t at = 0;
    for (const Placed& other : placed) {
      if (other.first > block.last || block.first > other.last) continue;
      if (other.begin - at >= block.bytes) break;
      at = std::max(at, other.end);
    }
    return at;
  }

  Graph& graph_;
  const PlanRequest& request_;
  std::vector<std::vector<int32_t>> readers_;
  std::vector<int32_t> last_;  // last wave that reads a value or, for a root, any value in its storage
  std::vector<Block> blocks_;
};

}  // namespace

Graph memory(Graph graph, const PlanRequest& request) {
  Planner(graph, request).run();
  return graph;
}

namespace {

/// The rules of storage, apart from the planner: it is written again, not called.
class Verifier {
 public:
  Verifier(const Graph& graph, const PlanRequest& request)
      : graph_(graph), request_(request), readers_(graph.consumers()) {}

  void run() {
    for (size_t i = 0; i < graph_.values.size(); ++i) place(static_cast<ValueId>(i));
    for (size_t i = 0; i < graph_.values.size(); ++i)
      if (stored(static_cast<ValueId>(i)) && graph_.values[i].alias != kNoValue) share(static_cast<ValueId>(i));
    for (size_t i = 0; i < graph_.nodes.size(); ++i) workspace(static_cast<int32_t>(i));
    separate();
    largest_live_set();
  }

 private:
  bool stored(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    return value.place == Place::activation && value.producer >= 0 && !internal(graph_, readers_, id);
  }
  std::string at(ValueId id) const { return graph::label(node_at(graph_, graph_.value(id).producer)); }

  void place(ValueId id) {
    const graph::Value& value = graph_.value(id);
    if (!stored(id)) {
      check(value.alias == kNoValue, kPass, "alias", "a value that the arena does not hold shares storage");
      return;
    }
    check(value.offset >= 0, kPass, "placed", cat("a value of ", at(id), " has no storage"));
    check(value.offset % kAlignment == 0, kPass, "aligned", cat("a value of ", at(id), " lies at ", value.offset));
    check(value.bytes >= value_bytes(graph_, id, request_.samples, request_.target->lanes()), kPass, "size",
          cat("a value of ", at(id), " has ", value.bytes, " bytes"));
    check(value.offset + value.bytes <= graph_.arena_bytes, kPass, "bounds",
          cat("a value of ", at(id), " ends behind the arena"));
    blocks_.push_back(
        {value.bytes, node_at(graph_, value.producer).wave, last_wave(graph_, readers_, id), id, -1, value.offset});
  }

  /// A value shares storage with an input of its producer: a view, or an input that dies there.
  void share(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    const Node& writer = node_at(graph_, value.producer);
    const auto input = std::find(writer.inputs.begin(), writer.inputs.end(), value.alias);
    check(input != writer.inputs.end() && stored(value.alias) && id == writer.outputs[0], kPass, "alias",
          cat("a value of ", at(id), " shares storage with something that it is not made of"));
    const graph::Value& other = graph_.value(value.alias);
    check(other.offset == value.offset && other.bytes == value.bytes, kPass, "storage",
          cat("a value of ", at(id), " does not lie where what it shares storage with does"));
    const auto number = static_cast<int>(input - writer.inputs.begin());
    check(is_view(graph_, writer) || request_.target->in_place(graph_, value.producer, number), kPass, "target",
          cat(at(id), " cannot run in place"));
  }

  void workspace(int32_t index) {
    const Node& node = node_at(graph_, index);
    if (node.workspace_bytes == 0) return;
    check(node.workspace_offset >= 0 && node.workspace_offset % kAlignment == 0 &&
              node.workspace_offset + node.workspace_bytes <= graph_.arena_bytes,
          kPass, "workspace", cat(graph::label(node), " has its workspace at ", node.workspace_offset));
    blocks_.push_back({node.workspace_bytes, node.wave, node.wave, kNoValue, index, node.workspace_offset});
  }

  void separate() const {
    for (size_t a = 0; a < blocks_.size(); ++a)
      for (size_t b = a + 1; b < blocks_.size(); ++b) {
        const Block &x = blocks_[a], &y = blocks_[b];
        if (!x.overlaps(y) || x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset) continue;
        const bool one = x.value != kNoValue && y.value != kNoValue && root(graph_, x.value) == root(graph_, y.value);
        check(one, kPass, "overlap", cat("two live pieces lie at ", x.offset, " and ", y.offset));
        check(survives(x.value, y.value) && survives(y.value, x.value), kPass, "in place",
              cat("values of ", at(x.value), " and ", at(y.value), " share storage while both are needed"));
      }
  }

  bool made_of(ValueId id, ValueId ancestor) const {
    while (id != kNoValue && id != ancestor) id = graph_.value(id).alias;
    return id == ancestor;
  }

  /// Of one storage: from the wave on in which what `other` is made of overwrites `id`, nobody but that writer reads
  /// it.
  bool survives(ValueId id, ValueId other) const {
    for (; other != kNoValue && !made_of(id, other); other = graph_.value(other).alias) {
      const int32_t writer = graph_.value(other).producer;
      if (is_view(graph_, node_at(graph_, writer))) continue;
      for (const int32_t reader : readers_[static_cast<size_t>(id)])
        if (reader != writer && node_at(graph_, reader).wave >= node_at(graph_, writer).wave) return false;
    }
    return true;
  }

  void largest_live_set() const {
    std::vector<int64_t> live(1, 0);
    for (const Block& block : blocks_) {
      if (block.value != kNoValue && graph_.value(block.value).alias != kNoValue) continue;
      int32_t last = block.last;
      for (const Block& other : blocks_)
        if (block.value != kNoValue && other.value != kNoValue && root(graph_, other.value) == block.value)
          last = std::max(last, other.last);
      live.resize(std::max(live.size(), static_cast<size_t>(last) + 1), 0);
      for (int32_t wave = block.first; wave <= last; ++wave) live[static_cast<size_t>(wave)] += block.bytes;
    }
    const int64_t largest = *std::max_element(live.begin(), live.end());
    check(graph_.live_bytes == largest && graph_.arena_bytes >= largest, kPass, "live",
          cat("the largest live set has ", largest, " bytes, recorded is ", graph_.live_bytes, ", the arena has ",
              graph_.arena_bytes));
  }

  static constexpr const char* kPass = "memory";
  const Graph& graph_;
  const PlanRequest& request_;
  std::vector<std::vector<int32_t>> readers_;
  std::vector<Block> blocks_;
};

}  // namespace

void verify_memory(const Graph& graph, const PlanRequest& request) {
  verify_structure(graph, "memory", Sorted::by_wave);
  verify_types(graph, "memory");
  Verifier(graph, request).run();
}

}  // namespace brisk::passes
