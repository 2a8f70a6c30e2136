// The driver API: graphs. An executable graph is the work of the nodes in one topological order.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/shim/work.h"

using namespace roofgen::shim;

namespace roofgen::shim {

Node* Graph::add(Work work, std::vector<Node*> after) {
  nodes.push_back(std::make_unique<Node>(Node{std::move(work), std::move(after), nullptr}));
  return nodes.back().get();
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  std::map<const Node*, Node*> twin;
  for (const auto& node : nodes) {
    twin[node.get()] = copy->add(node->work, {});
    if (node->child) copy->nodes.back()->child = node->child->clone();
  }
  for (const auto& node : nodes)
    for (const Node* before : node->after) twin[node.get()]->after.push_back(twin[before]);
  return copy;
}

}  // namespace roofgen::shim

namespace {

/// The graph of a node; null if the node does not exist.
Graph* graph_of(const State& s, Handle node) {
  for (const auto& [handle, graph] : s.graphs.all())
    for (const auto& n : graph->nodes)
      if (n.get() == node) return graph.get();
  return nullptr;
}

Status add(State& s, const char* call, Handle* out, Handle handle, const Handle* after, size_t count, Work work,
           Node** made = nullptr) {
  Graph* graph = s.graphs.find(handle);
  CHECK(out && (after || count == 0), kInvalidValue, "null");
  CHECK(graph, kInvalidHandle, "no such graph");
  std::vector<Node*> edges;
  for (size_t i = 0; i < count; ++i) {
    CHECK(graph_of(s, after[i]) == graph, kInvalidValue, "a dependency is not a node of this graph");
    edges.push_back(static_cast<Node*>(after[i]));
  }
  Node* node = graph->add(std::move(work), std::move(edges));
  if (made) *made = node;
  *out = node;
  return kSuccess;
}

Status kernel_work(State& s, const char* call, const KernelNodeParams* p, Work* out) {
  CHECK(p, kInvalidValue, "null");
  const LaunchShape shape = {.grid = {p->grid_x, p->grid_y, p->grid_z},
                             .block = {p->block_x, p->block_y, p->block_z},
                             .smem_bytes = p->smem_bytes,
                             .may_be_empty = true};
  return make_launch(s, call, p->function ? p->function : p->kernel, shape, p->args, p->extra, out);
}

/// CUDA_KERNEL_NODE_PARAMS_v1 ends before the kernel handle.
constexpr size_t kOlderParams = offsetof(KernelNodeParams, kernel);
Status older_kernel_work(State& s, const char* call, const void* p, Work* out) {
  CHECK(p, kInvalidValue, "null");
  KernelNodeParams params;
  std::memcpy(static_cast<void*>(&params), p, kOlderParams);
  return kernel_work(s, call, &params, out);
}
Status memcpy_work(State& s, const char* call, const Copy3d* p, Work* out) {
  CHECK(p, kInvalidValue, "null");
  Box box;
  if (Status status = make_box(s, call, *p, &box); status != kSuccess) return status;
  *out = move_later(s, box);
  return kSuccess;
}
Status memset_work(State& s, const char* call, const MemsetNodeParams* p, Work* out) {
  CHECK(p, kInvalidValue, "null");
  return make_memset(s, call, *p, out);
}
Status host_work(State& s, const char* call, const HostNodeParams* p, Work* out) {
  CHECK(p && p->function, kInvalidValue, "null");
  *out = make_host_call(p->function, p->data);
  return kSuccess;
}

/// Adds a node; `make` creates its work from `p`.
template <class P>
Status add(State& s, const char* call, Handle* out, Handle graph, const Handle* after, size_t count,
           Status (*make)(State&, const char*, P, Work*), P p) {
  Work work;
  if (Status status = make(s, call, p, &work); status != kSuccess) return status;
  return add(s, call, out, graph, after, count, std::move(work));
}
/// Replaces the work of a node in an executable by other work of the same type. The graph does not change.
template <class P>
Status replace(State& s, const char* call, Handle handle, Handle node, WorkType type,
               Status (*make)(State&, const char*, P, Work*), P p) {
  Executable* graph = s.executables.find(handle);
  CHECK(graph, kInvalidHandle, "no such graph");
  const auto step =
      std::find_if(graph->steps.begin(), graph->steps.end(), [&](const auto& t) { return t.node == node; });
  CHECK(step != graph->steps.end() && step->work.type == type, kInvalidValue, "no node of this type in this graph");
  return make(s, call, p, &step->work);
}

/// The node's work, which must have this type.
Status node_of(State& s, const char* call, Handle handle, WorkType type, Node** out) {
  CHECK(graph_of(s, handle), kInvalidHandle, "no such node");
  *out = static_cast<Node*>(handle);
  CHECK((*out)->work.type == type, kInvalidValue, "the node is of another type");
  return kSuccess;
}

/// Graphs of more nodes count as if they ran one after another: their order takes memory for each pair.
constexpr size_t kMostOrdered = 4096;

void add(std::vector<bool>& to, const std::vector<bool>& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i]) to[i] = true;
}

/// Sorts the nodes topologically, in the order of their creation where edges allow. False: the graph has a cycle.
/// `order`: the steps that each step is behind, if there are not too many; `begin`: those that all are behind.
bool flatten(const Graph& graph, std::vector<Executable::Step>& steps, NodeOrder& order,
             const std::vector<bool>& begin = {}) {
  std::map<const Node*, std::vector<bool>> ends;  // the steps that have ended with a node
  std::set<const Node*> done;
  while (done.size() < graph.nodes.size()) {
    const size_t before = done.size();
    for (const auto& node : graph.nodes) {
      if (done.count(node.get()) ||
          !std::all_of(node->after.begin(), node->after.end(), [&](const Node* n) { return done.count(n) != 0; }))
        continue;
      std::vector<bool> known = begin;
      for (const Node* n : node->after) add(known, ends[n]);
      const size_t first = steps.size();
      if (node->child && !flatten(*node->child, steps, order, known)) return false;
      if (!node->child) {
        steps.push_back({node.get(), node->work});
        if (steps.size() <= kMostOrdered) order.push_back(known);
      }
      if (steps.size() <= kMostOrdered) {
        known.resize(steps.size());
        std::fill(known.begin() + static_cast<ptrdiff_t>(first), known.end(), true);
        ends[node.get()] = std::move(known);
      }
      done.insert(node.get());
    }
    if (done.size() == before) return false;
  }
  return true;
}

Status instantiate(State& s, const char* call, Handle* out, Handle handle, unsigned long long flags) {
  const Graph* graph = s.graphs.find(handle);
  CHECK(out, kInvalidValue, "null");
  CHECK(graph, kInvalidHandle, "no such graph");
  // 1: AUTO_FREE_ON_LAUNCH, without effect as graphs allocate no memory. 2: UPLOAD, nothing to do.
  CHECK((flags & ~3ull) == 0, kNotSupported, "graph flags {}", flags);
  auto made = std::make_unique<Executable>();
  made->flags = flags;
  NodeOrder order;
  CHECK(flatten(*graph, made->steps, order), kInvalidValue, "the graph has a cycle");
  bool is_line = true;
  for (size_t i = 0; i < order.size(); ++i) {
    order[i].resize(order.size());
    is_line &= std::count(order[i].begin(), order[i].end(), true) == static_cast<ptrdiff_t>(i);
  }
  if (!is_line && order.size() == made->steps.size()) made->order = std::make_shared<NodeOrder>(std::move(order));
  *out = s.executables.add(std::move(made));
  return kSuccess;
}

/// The form before CUDA 12 returns the faulty node and a message; here the message is in the log only.
Status older_instantiate(State& s, const char* call, Handle* out, Handle graph, Handle* wrong, char* words,
                         size_t room) {
  if (wrong) *wrong = nullptr;
  if (words && room > 0) *words = '\0';
  return instantiate(s, call, out, graph, 0);
}

Status kernel_params(State& s, const char* call, Handle handle, KernelNodeParams* out) {
  Node* node = nullptr;
  if (Status status = node_of(s, call, handle, WorkType::kKernel, &node); status != kSuccess) return status;
  LaunchOp& op = *node->work.launch;
  const roofgen::Launch& l = op.launch;
  *out = {const_cast<Function*>(op.function),  l.grid.x,       l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z,
          static_cast<unsigned>(l.smem_bytes), op.args.data(), nullptr,  nullptr,  nullptr};
  return kSuccess;
}

/// Writes handles into a list of `*count`, like cuGraphGetNodes; without a list only their number.
Status list(State& s, const char* call, const std::vector<Node*>& nodes, Handle* out, size_t* count) {
  CHECK(count, kInvalidValue, "null");
  if (out) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < nodes.size() ? nodes[i] : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return kSuccess;
}

std::vector<Node*> nodes_of(const Graph& graph, bool roots_only) {
  std::vector<Node*> out;
  for (const auto& n : graph.nodes)
    if (!roots_only || n->after.empty()) out.push_back(n.get());
  return out;
}

}  // namespace

ROOFGEN_CU(cuGraphCreate, kContext, (Handle * out, unsigned flags), {
  CHECK(out && flags == 0, kInvalidValue, "flags must be 0");
  *out = s.graphs.add(std::make_unique<Graph>());
  return kSuccess;
})
ROOFGEN_CU(cuGraphClone, kContext, (Handle * out, Handle handle), {
  const Graph* graph = s.graphs.find(handle);
  CHECK(out, kInvalidValue, "null");
  CHECK(graph, kInvalidHandle, "no such graph");
  *out = s.graphs.add(graph->clone());
  return kSuccess;
})
ROOFGEN_CU(cuGraphDestroy, kContext, (Handle handle), {
  CHECK(s.graphs.remove(handle), kInvalidHandle, "no such graph");
  return kSuccess;
})

// ---- Nodes ---------------------------------------------------------------------------------------------

ROOFGEN_CU(cuGraphAddKernelNode_v2, kContext,
           (Handle * out, Handle graph, const Handle* after, size_t count, const KernelNodeParams* p),
           { return add(s, call, out, graph, after, count, kernel_work, p); })
ROOFGEN_CU(cuGraphAddKernelNode, kContext,
           (Handle * out, Handle graph, const Handle* after, size_t count, const void* p),
           { return add(s, call, out, graph, after, count, older_kernel_work, p); })
ROOFGEN_CU(cuGraphAddMemcpyNode, kContext,
           (Handle * out, Handle graph, const Handle* after, size_t count, const Copy3d* p, Handle),
           { return add(s, call, out, graph, after, count, memcpy_work, p); })
ROOFGEN_CU(cuGraphAddMemsetNode, kContext,
           (Handle * out, Handle graph, const Handle* after, size_t count, const MemsetNodeParams* p, Handle),
           { return add(s, call, out, graph, after, count, memset_work, p); })
ROOFGEN_CU(cuGraphAddHostNode, kContext,
           (Handle * out, Handle graph, const Handle* after, size_t count, const HostNodeParams* p),
           { return add(s, call, out, graph, after, count, host_work, p); })
ROOFGEN_CU(cuGraphAddEmptyNode, kContext, (Handle * out, Handle graph, const Handle* after, size_t count),
           { return add(s, call, out, graph, after, count, {}); })
ROOFGEN_CU(cuGraphAddEventRecordNode, kContext,
           (Handle * out, Handle graph, const Handle* after, size_t count, Handle event), {
             CHECK(s.events.find(event), kInvalidHandle, "no such event");
             return add(s, call, out, graph, after, count, make_record(s, event));
           })
ROOFGEN_CU(
    cuGraphAddEventWaitNode, kContext, (Handle * out, Handle graph, const Handle* after, size_t count, Handle event), {
      CHECK(s.events.find(event), kInvalidHandle, "no such event");
      // All streams run in submission order, so events recorded before the launch have completed.
      return add(s, call, out, graph, after, count, {WorkType::kWaitEvent, {}, nullptr, nullptr, false, {}, event});
    })
ROOFGEN_CU(
    cuGraphAddChildGraphNode, kContext, (Handle * out, Handle graph, const Handle* after, size_t count, Handle child), {
      const Graph* inner = s.graphs.find(child);
      CHECK(inner, kInvalidHandle, "no such child graph");
      CHECK(child != graph, kInvalidValue, "a graph as its own child");
      auto copy = inner->clone();
      Node* node = nullptr;
      const Status status = add(s, call, out, graph, after, count, {WorkType::kGraph, {}, nullptr, nullptr}, &node);
      if (status == kSuccess) node->child = std::move(copy);
      return status;
    })
ROOFGEN_CU(cuGraphKernelNodeGetParams_v2, kContext, (Handle handle, KernelNodeParams* out), {
  CHECK(out, kInvalidValue, "null");
  return kernel_params(s, call, handle, out);
})
ROOFGEN_CU(cuGraphKernelNodeGetParams, kContext, (Handle handle, void* out), {
  CHECK(out, kInvalidValue, "null");
  KernelNodeParams params;
  const Status status = kernel_params(s, call, handle, &params);
  if (status == kSuccess) std::memcpy(out, &params, kOlderParams);
  return status;
})
ROOFGEN_CU(cuGraphKernelNodeSetParams_v2, kContext, (Handle handle, const KernelNodeParams* p), {
  Node* node = nullptr;
  if (Status status = node_of(s, call, handle, WorkType::kKernel, &node); status != kSuccess) return status;
  return kernel_work(s, call, p, &node->work);
})
ROOFGEN_CU(cuGraphKernelNodeSetParams, kContext, (Handle handle, const void* p), {
  Node* node = nullptr;
  if (Status status = node_of(s, call, handle, WorkType::kKernel, &node); status != kSuccess) return status;
  return older_kernel_work(s, call, p, &node->work);
})
ROOFGEN_CU(cuGraphNodeGetType, kContext, (Handle handle, int* type), {
  CHECK(type, kInvalidValue, "null");
  CHECK(graph_of(s, handle), kInvalidHandle, "no such node");
  *type = static_cast<int>(static_cast<Node*>(handle)->work.type);
  return kSuccess;
})
ROOFGEN_CU(cuGraphDestroyNode, kContext, (Handle handle), {
  Graph* graph = graph_of(s, handle);
  CHECK(graph, kInvalidHandle, "no such node");
  for (const auto& n : graph->nodes) std::erase(n->after, static_cast<Node*>(handle));
  std::erase_if(graph->nodes, [&](const auto& n) { return n.get() == handle; });
  return kSuccess;
})
ROOFGEN_CU(cuGraphAddDependencies_v2, kContext,
           (Handle handle, const Handle* from, const Handle* to, const void* data, size_t count), {
             const Graph* graph = s.graphs.find(handle);
             CHECK(graph, kInvalidHandle, "no such graph");
             CHECK((from && to) || count == 0, kInvalidValue, "null");
             CHECK(!data, kNotSupported, "edges with data");
             for (size_t i = 0; i < count; ++i)
               CHECK(graph_of(s, from[i]) == graph && graph_of(s, to[i]) == graph && from[i] != to[i], kInvalidValue,
                     "an edge between nodes that are not in this graph");
             for (size_t i = 0; i < count; ++i) static_cast<Node*>(to[i])->after.push_back(static_cast<Node*>(from[i]));
             return kSuccess;
           })
ROOFGEN_CU(cuGraphGetNodes, kContext, (Handle handle, Handle* out, size_t* count), {
  const Graph* graph = s.graphs.find(handle);
  CHECK(graph, kInvalidHandle, "no such graph");
  return list(s, call, nodes_of(*graph, false), out, count);
})
ROOFGEN_CU(cuGraphGetRootNodes, kContext, (Handle handle, Handle* out, size_t* count), {
  const Graph* graph = s.graphs.find(handle);
  CHECK(graph, kInvalidHandle, "no such graph");
  return list(s, call, nodes_of(*graph, true), out, count);
})
ROOFGEN_CU(cuGraphNodeGetDependencies_v2, kContext, (Handle handle, Handle* out, void* data, size_t* count), {
  CHECK(graph_of(s, handle), kInvalidHandle, "no such node");
  CHECK(!data, kNotSupported, "edges with data");
  return list(s, call, static_cast<Node*>(handle)->after, out, count);
})

// ---- Execution -----------------------------------------------------------------------------------------

ROOFGEN_CU(cuGraphInstantiateWithFlags, kContext, (Handle * out, Handle graph, unsigned long long flags),
           { return instantiate(s, call, out, graph, flags); })
ROOFGEN_CU(cuGraphInstantiate, kContext, (Handle * out, Handle graph, Handle* wrong, char* words, size_t room),
           { return older_instantiate(s, call, out, graph, wrong, words, room); })
ROOFGEN_CU(cuGraphInstantiate_v2, kContext, (Handle * out, Handle graph, Handle* wrong, char* words, size_t room),
           { return older_instantiate(s, call, out, graph, wrong, words, room); })
ROOFGEN_CU_PTSZ(cuGraphInstantiateWithParams, kContext, (Handle * out, Handle graph, InstantiateParams* p), {
  CHECK(p, kInvalidValue, "null");
  p->error_node = nullptr;
  const Status status = instantiate(s, call, out, graph, p->flags);
  p->result = status == kSuccess ? 0 : 1;  // CUDA_GRAPH_INSTANTIATE_ERROR; the status names the error
  return status;
})
ROOFGEN_CU(cuGraphExecGetFlags, kContext, (Handle handle, unsigned long long* flags), {
  const Executable* graph = s.executables.find(handle);
  CHECK(flags, kInvalidValue, "null");
  CHECK(graph, kInvalidHandle, "no such graph");
  *flags = graph->flags;
  return kSuccess;
})
ROOFGEN_CU(cuGraphExecKernelNodeSetParams_v2, kContext, (Handle graph, Handle node, const KernelNodeParams* p),
           { return replace(s, call, graph, node, WorkType::kKernel, kernel_work, p); })
ROOFGEN_CU(cuGraphExecKernelNodeSetParams, kContext, (Handle graph, Handle node, const void* p),
           { return replace(s, call, graph, node, WorkType::kKernel, older_kernel_work, p); })
ROOFGEN_CU(cuGraphExecMemcpyNodeSetParams, kContext, (Handle graph, Handle node, const Copy3d* p, Handle),
           { return replace(s, call, graph, node, WorkType::kMemcpy, memcpy_work, p); })
ROOFGEN_CU(cuGraphExecMemsetNodeSetParams, kContext, (Handle graph, Handle node, const MemsetNodeParams* p, Handle),
           { return replace(s, call, graph, node, WorkType::kMemset, memset_work, p); })
ROOFGEN_CU(cuGraphExecHostNodeSetParams, kContext, (Handle graph, Handle node, const HostNodeParams* p),
           { return replace(s, call, graph, node, WorkType::kHost, host_work, p); })
ROOFGEN_CU_PTSZ(cuGraphUpload, kContext, (Handle graph, Handle stream), {
  CHECK(s.executables.find(graph) && s.stream(stream), kInvalidHandle, "no such graph or stream");
  return kSuccess;
})
ROOFGEN_CU_PTSZ(cuGraphLaunch, kContext, (Handle handle, Handle stream), {
  const Executable* graph = s.executables.find(handle);
  CHECK(graph, kInvalidHandle, "no such graph");
  for (const Executable::Step& step : graph->steps)
    CHECK(!step.work.launch || step.work.launch->launch.grid.count() > 0, kInvalidValue,
          "{}: the grid of a kernel node is still empty", step.work.launch->function->kernel.name);
  const Stream* on = s.stream(stream);
  CHECK(on, kInvalidHandle, "no such stream");
  if (on->capture || graph->steps.empty()) {
    for (const Executable::Step& step : graph->steps)
      if (Status status = s.queue(call, stream, step.work); status != kSuccess) return status;
    return kSuccess;
  }
  // Towards other work the launch is one piece.
  const uint32_t number = s.number_of(stream);
  bool calls_host = false;
  for (const Executable::Step& step : graph->steps) {
    calls_host |= step.work.type == WorkType::kHost;
    if (const Event* before = s.events.find(step.work.waits)) s.races.order().wait(number, before->clock);
  }
  Item item = s.races.submit(number);
  item.nodes = graph->order;
  for (const Executable::Step& step : graph->steps) {
    if (Status status = s.queue(call, stream, step.work, &item); status != kSuccess) return status;
    ++item.node;
  }
  if (calls_host) s.races.order().host_waits(number);
  return kSuccess;
})
ROOFGEN_CU(cuGraphExecDestroy, kContext, (Handle handle), {
  CHECK(s.executables.remove(handle), kInvalidHandle, "no such graph");
  return kSuccess;
})
