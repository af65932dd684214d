/* api.h: what lockstep-cuda.so does for the backend.
 *
 * The module is all that is linked with CUDA.  It knows devices, memory, streams, libraries and kernels, and
 * nothing of graphs: planners live in the program, which therefore starts without CUDA.  Numbers that
 * functions return are 0 or a CUDA error, which `error` explains; every function may be called from any
 * thread. */
#ifndef LS_BACKEND_CUDA_API_H
#define LS_BACKEND_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/cuda/launch/library.h"
#include "backend/cuda/launchers.h"

#define LSI_CUDA_SYMBOL "ls_cuda_module"
/* Of everything that a module and a program must see alike, launchers included. */
#define LSI_CUDA_VERSION 12

/* cudaErrorMemoryAllocation, which libraries' errors of that kind are, too: another time there may be more.
 */
enum { LSI_CUDA_NO_MEMORY = 2 };

typedef void *lsi_cuda_event; /* a cudaEvent_t */
typedef struct lsi_cuda_library lsi_cuda_library;
typedef struct lsi_cuda_graph lsi_cuda_graph; /* what was put into a stream, kept */

/* The device in use. */
typedef struct lsi_cuda_about {
    char name[128];
    int major, minor;          /* compute capability */
    int processors;            /* multiprocessors */
    size_t memory;             /* bytes */
    size_t cache;              /* bytes of L2 */
    size_t shared;             /* bytes of shared memory that a block can have */
    int driver, runtime;       /* 13000 for 13.0 */
    long long cublaslt, cudnn; /* versions as they count them */
} lsi_cuda_about;

/* How a compiled kernel is started. */
typedef struct lsi_cuda_start {
    unsigned blocks[2];
    unsigned threads;
    size_t shared; /* bytes of shared memory that it names at run time */
} lsi_cuda_start;

/* What becomes of a graph. */
typedef struct lsi_cuda_graph_rules {
    bool early;  /* kernels that wait by themselves begin as the last blocks before them end */
    bool clears; /* what the driver would clear, a kernel of ours does */
    bool framed; /* every launch brings copies that come before all else in it, and such that come behind */
} lsi_cuda_graph_rules;

typedef struct lsi_cuda_graph_about {
    size_t edges, early;    /* all of them; those along which a kernel of ours begins early, */
    size_t programmatic;    /* and those for which libraries had asked for that themselves */
    size_t clears, copies;  /* by the driver, also those that kernels of ours do instead, */
    size_t cleared, copied; /* and their bytes */
} lsi_cuda_graph_about;

typedef struct lsi_cuda_api {
    int version; /* LSI_CUDA_VERSION */
    int runtime; /* of CUDA, that the module was built with: 13000 for 13.0 */

    /* How many devices CUDA_VISIBLE_DEVICES leaves. */
    int (*count)(int *devices);
    /* Device number `device` is the process's from now on; twice the same is fine. */
    int (*use)(int device, lsi_cuda_about *about);
    /* Where a device is in the machine, whatever its number: "0000:1b:00.0". */
    int (*bus)(int device, char *text, int size);
    const char *(*error)(int code);

    int (*alloc)(void **out, size_t bytes);
    void (*free)(void *p);
    int (*alloc_pinned)(void **out, size_t bytes); /* host memory that copies can run from by themselves */
    void (*free_pinned)(void *p);
    int (*memory)(size_t *free, size_t *all);
    /* From and to host or device memory, enqueued. */
    int (*copy)(void *to, const void *from, size_t bytes, lsi_cuda_stream s);
    int (*zero)(void *to, size_t bytes, lsi_cuda_stream s);

    int (*stream_create)(lsi_cuda_stream *out);
    void (*stream_destroy)(lsi_cuda_stream s);
    int (*stream_sync)(lsi_cuda_stream s);
    int (*stream_wait)(lsi_cuda_stream s, lsi_cuda_event e); /* what comes later in s waits for e */
    int (*event_create)(lsi_cuda_event *out, bool timed);
    void (*event_destroy)(lsi_cuda_event e);
    int (*event_record)(lsi_cuda_event e, lsi_cuda_stream s);
    int (*event_sync)(lsi_cuda_event e);
    int (*event_done)(lsi_cuda_event e, bool *done);
    int (*event_elapsed)(lsi_cuda_event from, lsi_cuda_event to, float *ms); /* both timed and over */

    /* What this thread puts into the stream between the two is kept instead of run; *out is NULL when it
     * cannot be. */
    int (*capture)(lsi_cuda_stream s);
    int (*captured)(lsi_cuda_stream s, const lsi_cuda_graph_rules *how, lsi_cuda_graph **out,
                    lsi_cuda_graph_about *about);
    /* Within it: what comes next comes after these nodes of the graph; and the nodes that what comes next
     * would come after, at most `room` of them, with their number in *n. */
    int (*capture_after)(lsi_cuda_stream s, void **nodes, size_t n);
    int (*capture_last)(lsi_cuda_stream s, void **nodes, size_t room, size_t *n);
    /* `before`, `behind`: of a framed graph, else NULL. */
    int (*graph_launch)(lsi_cuda_graph *graph, const lsi_cuda_copies_args *before,
                        const lsi_cuda_copies_args *behind, lsi_cuda_stream s);
    void (*graph_destroy)(lsi_cuda_graph *graph); /* when none of its launches is under way */

    /* Problems for libraries (launch/library.h).  Ways are numbered from the library's best guess on; they
     * are the same in every process with the same versions on the same kind of device, and each gives the
     * same bits every time.  A way must be prepared before it runs, and may turn out not to work then. */
    int (*product)(lsi_cuda_library **out, const lsi_cuda_product *p);
    int (*conv)(lsi_cuda_library **out, const lsi_cuda_conv *p);
    int (*ways)(const lsi_cuda_library *l);
    int (*prepare)(lsi_cuda_library *l, int way, size_t *workspace);
    int (*run)(lsi_cuda_library *l, int way, void *const *operands, void *workspace, lsi_cuda_stream s);
    void (*drop)(lsi_cuda_library *l); /* accepts NULL */

    /* The run-time compiler's version, 13000 for 13.0; 0: there is none. */
    int (*compiler)(void);
    /* CUDA C++ to an image for the device in use, which `release` takes back.  What the compiler complains of
     * goes to `log`. */
    int (*compile)(const char *source, void **image, size_t *bytes, char *log, size_t log_size);
    void (*release)(void *image); /* accepts NULL */
    /* The kernel `entry` of an image, for as long as the process lives. */
    int (*load)(void **kernel, const void *image, size_t bytes, const char *entry);
    /* Enqueues such a kernel; `arguments` is the struct that is its one parameter. */
    int (*start)(lsi_cuda_stream s, void *kernel, const lsi_cuda_start *how, void *arguments);

    lsi_cuda_launch launch;
} lsi_cuda_api;

#endif
