/* device.c: devices, memory, streams and events. */
#include "backend/cuda/module/device.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

_Static_assert(LSI_CUDA_NO_MEMORY == (int)cudaErrorMemoryAllocation, "api.h has CUDA's number");

/* The process's device; a rank has one. */
static atomic_int in_use;

/* CUDA keeps the error of a call until somebody asks, and the next launch, which is asked by that, would be
 * taken for the one that failed, by us and by libraries.  Whatever is kept here was told by the call that it
 * belongs to, and may have been put up with, such as memory that could not be had.  What a device does not
 * survive comes back by itself. */
int lsi_cuda_enter(void)
{
    static _Thread_local int mine = -1;
    const int device = atomic_load_explicit(&in_use, memory_order_relaxed);
    cudaError_t e = cudaSuccess;

    (void)cudaGetLastError();
    if (mine != device) e = cudaSetDevice(device);
    if (e == cudaSuccess) mine = device;
    return (int)e;
}

#define ENTER()                                                                                              \
    do {                                                                                                     \
        const int entered = lsi_cuda_enter();                                                                \
        if (entered != 0) return entered;                                                                    \
    } while (0)

static int count(int *devices)
{
    *devices = 0;
    return (int)cudaGetDeviceCount(devices);
}

static int use(int device, lsi_cuda_about *about)
{
    struct cudaDeviceProp p;
    cudaError_t e = cudaSetDevice(device);

    if (e == cudaSuccess) e = cudaGetDeviceProperties(&p, device);
    if (e != cudaSuccess) return (int)e;
    atomic_store(&in_use, device);
    memset(about, 0, sizeof *about);
    snprintf(about->name, sizeof about->name, "%.127s", p.name);
    about->major = p.major;
    about->minor = p.minor;
    about->processors = p.multiProcessorCount;
    about->memory = p.totalGlobalMem;
    about->cache = (size_t)p.l2CacheSize;
    about->shared = p.sharedMemPerBlockOptin;
    (void)cudaDriverGetVersion(&about->driver);
    (void)cudaRuntimeGetVersion(&about->runtime);
    lsi_cuda_library_versions(about);
    return (int)cudaFree(NULL); /* makes the context */
}

static int bus(int device, char *text, int size)
{
    return (int)cudaDeviceGetPCIBusId(text, size, device);
}

static const char *error(int code)
{
    return code >= LSI_CUDA_CUBLAS ? lsi_cuda_library_error(code) : cudaGetErrorString((cudaError_t)code);
}

static int device_alloc(void **out, size_t bytes)
{
    ENTER();
    return (int)cudaMalloc(out, bytes);
}

static void device_free(void *p)
{
    if (lsi_cuda_enter() == 0) (void)cudaFree(p);
}

static int alloc_pinned(void **out, size_t bytes)
{
    ENTER();
    return (int)cudaMallocHost(out, bytes);
}

static void free_pinned(void *p)
{
    if (lsi_cuda_enter() == 0) (void)cudaFreeHost(p);
}

static int memory(size_t *free, size_t *all)
{
    ENTER();
    return (int)cudaMemGetInfo(free, all);
}

static int copy(void *to, const void *from, size_t bytes, lsi_cuda_stream s)
{
    ENTER();
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)s);
}

static int zero(void *to, size_t bytes, lsi_cuda_stream s)
{
    ENTER();
    return (int)cudaMemsetAsync(to, 0, bytes, (cudaStream_t)s);
}

static int stream_create(lsi_cuda_stream *out)
{
    ENTER();
    return (int)cudaStreamCreateWithFlags((cudaStream_t *)out, cudaStreamNonBlocking);
}

static void stream_destroy(lsi_cuda_stream s)
{
    if (lsi_cuda_enter() == 0) (void)cudaStreamDestroy((cudaStream_t)s);
}

static int stream_sync(lsi_cuda_stream s)
{
    ENTER();
    return (int)cudaStreamSynchronize((cudaStream_t)s);
}

static int stream_wait(lsi_cuda_stream s, lsi_cuda_event e)
{
    ENTER();
    return (int)cudaStreamWaitEvent((cudaStream_t)s, (cudaEvent_t)e, 0);
}

static int event_create(lsi_cuda_event *out, bool timed)
{
    ENTER();
    return (int)cudaEventCreateWithFlags((cudaEvent_t *)out, timed ? 0 : cudaEventDisableTiming);
}

static void event_destroy(lsi_cuda_event e)
{
    if (lsi_cuda_enter() == 0) (void)cudaEventDestroy((cudaEvent_t)e);
}

static int event_record(lsi_cuda_event e, lsi_cuda_stream s)
{
    ENTER();
    return (int)cudaEventRecord((cudaEvent_t)e, (cudaStream_t)s);
}

static int event_sync(lsi_cuda_event e)
{
    ENTER();
    return (int)cudaEventSynchronize((cudaEvent_t)e);
}

static int event_done(lsi_cuda_event e, bool *done)
{
    cudaError_t st;

    ENTER();
    st = cudaEventQuery((cudaEvent_t)e);
    *done = st == cudaSuccess;
    return st == cudaErrorNotReady ? 0 : (int)st;
}

static int event_elapsed(lsi_cuda_event from, lsi_cuda_event to, float *ms)
{
    ENTER();
    return (int)cudaEventElapsedTime(ms, (cudaEvent_t)from, (cudaEvent_t)to);
}

void lsi_cuda_fill_device(lsi_cuda_api *api)
{
    api->count = count;
    api->runtime = CUDART_VERSION;
    api->use = use;
    api->bus = bus;
    api->error = error;
    api->alloc = device_alloc;
    api->free = device_free;
    api->alloc_pinned = alloc_pinned;
    api->free_pinned = free_pinned;
    api->memory = memory;
    api->copy = copy;
    api->zero = zero;
    api->stream_create = stream_create;
    api->stream_destroy = stream_destroy;
    api->stream_sync = stream_sync;
    api->stream_wait = stream_wait;
    api->event_create = event_create;
    api->event_destroy = event_destroy;
    api->event_record = event_record;
    api->event_sync = event_sync;
    api->event_done = event_done;
    api->event_elapsed = event_elapsed;
}
