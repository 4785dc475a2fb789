// Capture of streams into graphs, and their replay: nodes run in any order that their dependencies allow.
#include <algorithm>

#include "simt/core.h"
#include "simt/cudart/call.h"
#include "simt/cudart/stream.h"

namespace brisk::simt {
namespace {

std::set<cudaGraph_t> graphs;
std::set<cudaGraphExec_t> executables;

// Whether each captured node is an ancestor of the stream's last ones: the other streams have been joined.
bool all_joined(const CUgraph_st& graph, std::vector<size_t> open) {
  std::vector<bool> reached(graph.nodes.size());
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    open.insert(open.end(), graph.nodes[node].after.begin(), graph.nodes[node].after.end());
  }
  return std::find(reached.begin(), reached.end(), false) == reached.end();
}

}  // namespace

void count_live_graphs(Live& live) {
  live.graphs = static_cast<int64_t>(graphs.size());
  live.executable_graphs = static_cast<int64_t>(executables.size());
}

namespace cudart {

cudaError_t run_nodes(const std::vector<CUgraphNode_st>& nodes) {
  std::vector<size_t> waits_for(nodes.size()), ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    waits_for[i] = nodes[i].after.size();
    if (waits_for[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const size_t pick = config().seed >= 2 ? random_below(ready.size()) : 0;
    const size_t node = ready[pick];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    if (const cudaError_t error = nodes[node].action()) return error;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::vector<size_t>& after = nodes[i].after;
      if (std::find(after.begin(), after.end(), node) != after.end() && --waits_for[i] == 0) ready.push_back(i);
    }
  }
  return cudaSuccess;
}

}  // namespace cudart
}  // namespace brisk::simt

using namespace brisk::simt;
using namespace brisk::simt::cudart;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t to, cudaStreamCaptureMode) {
  Call call("cudaStreamBeginCapture");
  if (call.failed()) return call.end();
  CUstream_st& stream = stream_of(to);
  if (&stream == &stream_of(nullptr)) return call.end(cudaErrorStreamCaptureUnsupported);
  if (stream.capture) return call.end(cudaErrorIllegalState);
  stream.capture = new CUgraph_st;
  stream.capture->origin = to;
  stream.capture->streams = {&stream};
  stream.after.clear();
  set_capturing(true);
  return call.end();
}

// A failure that a test asks for ends the capture all the same, as errors on a device do.
cudaError_t cudaStreamEndCapture(cudaStream_t to, cudaGraph_t* result) {
  Call call("cudaStreamEndCapture");
  *result = nullptr;
  CUstream_st& stream = stream_of(to);
  if (!stream.capture || stream.capture->origin != to) return call.end(cudaErrorStreamCaptureUnmatched);
  std::unique_ptr<CUgraph_st> graph(stream.capture);
  const bool joined = all_joined(*graph, stream.after);
  for (cudaStream_t captured : graph->streams) {
    captured->capture = nullptr;
    captured->after.clear();
  }
  set_capturing(false);
  if (call.failed()) return call.end();
  if (!joined) return call.end(cudaErrorStreamCaptureUnjoined);
  graphs.insert(graph.get());
  *result = graph.release();
  return call.end();
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  Call call("cudaStreamIsCapturing");
  if (call.failed()) return call.end();
  *status = stream_of(stream).capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return call.end();
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  Call call("cudaGraphGetNodes");
  if (call.failed()) return call.end();
  if (nodes) {
    *count = std::min(*count, graph->nodes.size());
    for (size_t i = 0; i < *count; ++i) nodes[i] = &graph->nodes[i];
  } else {
    *count = graph->nodes.size();
  }
  return call.end();
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  Call call("cudaGraphNodeGetType");
  if (call.failed()) return call.end();
  *type = node->type;
  return call.end();
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* result, cudaGraph_t graph, unsigned long long) {
  Call call("cudaGraphInstantiate");
  if (call.failed()) return call.end();
  *result = new CUgraphExec_st{std::make_shared<const std::vector<CUgraphNode_st>>(graph->nodes)};
  executables.insert(*result);
  return call.end();
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return Call("cudaGraphUpload").end(); }

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  Call call("cudaGraphLaunch");
  if (call.failed()) return call.end();
  return call.end(submit(stream, cudaGraphNodeTypeGraph, [nodes = executable->nodes] { return run_nodes(*nodes); }));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  Call call("cudaGraphExecDestroy");
  executables.erase(executable);
  delete executable;
  return call.end();
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  Call call("cudaGraphDestroy");
  graphs.erase(graph);
  delete graph;
  return call.end();
}
}
