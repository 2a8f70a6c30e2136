// The runtime API: streams, events, graphs.
#include "runtime/shim/cudart/runtime.h"

using namespace roofgen::shim::cudart;

namespace {

Error driver_form(Runtime& r, const char* call, const RuntimeKernelNode* p, KernelNodeParams* out) {
  NEED(p, kInvalidValue, "null");
  *out = {nullptr,    p->grid.x, p->grid.y, p->grid.z, p->block.x, p->block.y,
          p->block.z, p->smem,   p->args,   p->extra,  nullptr,    nullptr};
  return r.function(call, p->kernel, &out->function);
}

}  // namespace

PASS(cudaStreamCreate, (Handle * out), cuStreamCreateWithPriority(out, 0, 0))
PASS(cudaStreamCreateWithFlags, (Handle * out, unsigned flags), cuStreamCreateWithPriority(out, flags, 0))
PASS(cudaStreamCreateWithPriority, (Handle * out, unsigned flags, int priority),
     cuStreamCreateWithPriority(out, flags, priority))
PASS(cudaStreamDestroy, (Handle stream), cuStreamDestroy_v2(stream))
PASS_PTSZ(cudaStreamSynchronize, (Handle stream), cuStreamSynchronize(stream))
PASS_PTSZ(cudaStreamQuery, (Handle stream), cuStreamQuery(stream))
PASS_PTSZ(cudaStreamWaitEvent, (Handle stream, Handle event, unsigned flags), cuStreamWaitEvent(stream, event, flags))
PASS_PTSZ(cudaStreamAddCallback, (Handle stream, StreamCallback function, void* data, unsigned flags),
          cuStreamAddCallback(stream, function, data, flags))
PASS_PTSZ(cudaStreamGetFlags, (Handle stream, unsigned* flags), cuStreamGetFlags(stream, flags))
PASS_PTSZ(cudaStreamGetPriority, (Handle stream, int* priority), cuStreamGetPriority(stream, priority))
PASS_PTSZ(cudaStreamGetId, (Handle stream, unsigned long long* id), cuStreamGetId(stream, id))
PASS_PTSZ(cudaStreamGetDevice, (Handle stream, int* device), cuStreamGetDevice(stream, device))
PASS_PTSZ(cudaStreamIsCapturing, (Handle stream, int* status), cuStreamIsCapturing(stream, status))
// Before CUDA 13 it had the first three arguments, and forms with a number the others.
ROOFGEN_CUDART_PTSZ(cudaStreamGetCaptureInfo,
                    (Handle stream, int* status, unsigned long long* id, Handle* graph, const Handle** after,
                     const void** edges, size_t* count),
                    {
                      return kRuntimeVersion < 13000
                                 ? cuStreamGetCaptureInfo(stream, status, id)
                                 : cuStreamGetCaptureInfo_v3(stream, status, id, graph, after, edges, count);
                    })
PASS_PTSZ(cudaStreamGetCaptureInfo_v2,
          (Handle stream, int* status, unsigned long long* id, Handle* graph, const Handle** after, size_t* count),
          cuStreamGetCaptureInfo_v2(stream, status, id, graph, after, count))
PASS_PTSZ(cudaStreamGetCaptureInfo_v3,
          (Handle stream, int* status, unsigned long long* id, Handle* graph, const Handle** after, const void** edges,
           size_t* count),
          cuStreamGetCaptureInfo_v3(stream, status, id, graph, after, edges, count))
PASS_PTSZ(cudaStreamBeginCapture, (Handle stream, int mode), cuStreamBeginCapture_v2(stream, mode))
PASS_PTSZ(cudaStreamEndCapture, (Handle stream, Handle* graph), cuStreamEndCapture(stream, graph))
PASS(cudaThreadExchangeStreamCaptureMode, (int* mode), cuThreadExchangeStreamCaptureMode(mode))

PASS(cudaEventCreate, (Handle * out), cuEventCreate(out, 0))
PASS(cudaEventCreateWithFlags, (Handle * out, unsigned flags), cuEventCreate(out, flags))
PASS(cudaEventDestroy, (Handle event), cuEventDestroy_v2(event))
PASS_PTSZ(cudaEventRecord, (Handle event, Handle stream), cuEventRecordWithFlags(event, stream, 0))
PASS_PTSZ(cudaEventRecordWithFlags, (Handle event, Handle stream, unsigned flags),
          cuEventRecordWithFlags(event, stream, flags))
PASS(cudaEventQuery, (Handle event), cuEventQuery(event))
PASS(cudaEventSynchronize, (Handle event), cuEventSynchronize(event))
PASS(cudaEventElapsedTime, (float* ms, Handle from, Handle to), cuEventElapsedTime(ms, from, to))

PASS(cudaGraphCreate, (Handle * out, unsigned flags), cuGraphCreate(out, flags))
PASS(cudaGraphDestroy, (Handle graph), cuGraphDestroy(graph))
PASS(cudaGraphClone, (Handle * out, Handle graph), cuGraphClone(out, graph))
PASS(cudaGraphGetNodes, (Handle graph, Handle* out, size_t* count), cuGraphGetNodes(graph, out, count))
PASS(cudaGraphGetRootNodes, (Handle graph, Handle* out, size_t* count), cuGraphGetRootNodes(graph, out, count))
PASS(cudaGraphNodeGetType, (Handle node, int* type), cuGraphNodeGetType(node, type))
PASS(cudaGraphDestroyNode, (Handle node), cuGraphDestroyNode(node))
ROOFGEN_CUDART(cudaGraphAddKernelNode,
               (Handle * out, Handle graph, const Handle* after, size_t count, const RuntimeKernelNode* p), {
                 KernelNodeParams params;
                 TRY(driver_form(r, call, p, &params));
                 return cuGraphAddKernelNode_v2(out, graph, after, count, &params);
               })
ROOFGEN_CUDART(cudaGraphKernelNodeSetParams, (Handle node, const RuntimeKernelNode* p), {
  KernelNodeParams params;
  TRY(driver_form(r, call, p, &params));
  return cuGraphKernelNodeSetParams_v2(node, &params);
})
ROOFGEN_CUDART(cudaGraphExecKernelNodeSetParams, (Handle exec, Handle node, const RuntimeKernelNode* p), {
  KernelNodeParams params;
  TRY(driver_form(r, call, p, &params));
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &params);
})
PASS(cudaGraphAddHostNode, (Handle * out, Handle graph, const Handle* after, size_t count, const HostNodeParams* p),
     cuGraphAddHostNode(out, graph, after, count, p))
PASS(cudaGraphExecHostNodeSetParams, (Handle exec, Handle node, const HostNodeParams* p),
     cuGraphExecHostNodeSetParams(exec, node, p))
PASS(cudaGraphAddEmptyNode, (Handle * out, Handle graph, const Handle* after, size_t count),
     cuGraphAddEmptyNode(out, graph, after, count))
PASS(cudaGraphAddEventRecordNode, (Handle * out, Handle graph, const Handle* after, size_t count, Handle event),
     cuGraphAddEventRecordNode(out, graph, after, count, event))
PASS(cudaGraphAddEventWaitNode, (Handle * out, Handle graph, const Handle* after, size_t count, Handle event),
     cuGraphAddEventWaitNode(out, graph, after, count, event))
PASS(cudaGraphAddChildGraphNode, (Handle * out, Handle graph, const Handle* after, size_t count, Handle child),
     cuGraphAddChildGraphNode(out, graph, after, count, child))
PASS(cudaGraphInstantiate, (Handle * out, Handle graph, unsigned long long flags),
     cuGraphInstantiateWithFlags(out, graph, flags))
PASS(cudaGraphInstantiateWithFlags, (Handle * out, Handle graph, unsigned long long flags),
     cuGraphInstantiateWithFlags(out, graph, flags))
PASS(cudaGraphExecGetFlags, (Handle exec, unsigned long long* flags), cuGraphExecGetFlags(exec, flags))
PASS_PTSZ(cudaGraphUpload, (Handle exec, Handle stream), cuGraphUpload(exec, stream))
PASS_PTSZ(cudaGraphLaunch, (Handle exec, Handle stream), cuGraphLaunch(exec, stream))
PASS(cudaGraphExecDestroy, (Handle exec), cuGraphExecDestroy(exec))
