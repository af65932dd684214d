/* device.h: what the files of the module share. */
#ifndef LS_BACKEND_CUDA_MODULE_DEVICE_H
#define LS_BACKEND_CUDA_MODULE_DEVICE_H

#include "backend/cuda/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Before any call of CUDA's that depends on the device: a new thread begins with device 0.  Errors that were
 * told before are forgotten. */
int lsi_cuda_enter(void);

/* -- kernels that begin early (early.c) ------------------------------------------------------------------ */

/* While a stream is captured by this thread: a launcher that has put in a kernel which waits by itself says
 * so. */
void lsi_cuda_note_begin(void);
void lsi_cuda_note_kernel(lsi_cuda_stream s);
void lsi_cuda_note_node(void *node); /* the same of a node that was put into the graph behind the capture */
void lsi_cuda_note_end(void);
/* Between the two latter: the captured graph (a cudaGraph_t) as one that can be launched (a cudaGraphExec_t);
 * noted kernels in it begin early. */
int lsi_cuda_instantiate(void *graph, void **out, lsi_cuda_graph_about *about);

/* All nodes of a graph, in memory to be freed also where it fails; none of an empty one (graph.c). */
int lsi_cuda_graph_nodes(void *graph, void ***out, size_t *n);

/* -- memory that is cleared (clears.c) ------------------------------------------------------------------- */

/* Counts what the driver does in a captured graph; with `ours`, what it would clear kernels of ours do, which
 * are noted. */
int lsi_cuda_clears(void *graph, bool ours, lsi_cuda_graph_about *about);
int lsi_cuda_clear_node(void *graph, void **node, void *to, size_t bytes); /* copies.cu */

/* -- copies as a node of a graph (copies.cu) ------------------------------------------------------------- */

int lsi_cuda_copies_node(void *graph, void **node, const lsi_cuda_copies_args *a);
/* In one that can be launched: from the next launch on. */
int lsi_cuda_copies_change(void *exec, void *node, const lsi_cuda_copies_args *a);

/* The parts of the table. */
void lsi_cuda_fill_device(lsi_cuda_api *api);
void lsi_cuda_fill_graphs(lsi_cuda_api *api);
void lsi_cuda_fill_libraries(lsi_cuda_api *api);
void lsi_cuda_fill_compile(lsi_cuda_api *api);

/* Statuses of libraries among CUDA's errors: from these numbers on. */
enum { LSI_CUDA_CUBLAS = 100000, LSI_CUDA_CUDNN = 200000 };
const char *lsi_cuda_library_error(int code);
void lsi_cuda_library_versions(lsi_cuda_about *about);

/* A chain whose kernel was compiled (chain_launch.c). */
int lsi_cuda_launch_chain(lsi_cuda_stream s, const lsi_cuda_chain_args *a);

#ifdef __cplusplus
}
#endif

#endif
