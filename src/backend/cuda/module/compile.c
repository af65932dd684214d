/* compile.c: compiling kernels at run time.  NVRTC is loaded when it is first asked for: a machine without it
 * only lacks what it would have made. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nvrtc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/cuda/module/device.h"

static struct nvrtc {
    nvrtcResult (*version)(int *major, int *minor);
    nvrtcResult (*create)(nvrtcProgram *p, const char *source, const char *name, int n,
                          const char *const *headers, const char *const *names);
    nvrtcResult (*compile)(nvrtcProgram p, int n, const char *const *options);
    nvrtcResult (*log_size)(nvrtcProgram p, size_t *n);
    nvrtcResult (*log)(nvrtcProgram p, char *text);
    nvrtcResult (*image_size)(nvrtcProgram p, size_t *n);
    nvrtcResult (*image)(nvrtcProgram p, char *image);
    nvrtcResult (*destroy)(nvrtcProgram *p);
    int number; /* 13000 for 13.0; 0: there is none */
} nvrtc;

static void find_nvrtc(void)
{
    char name[64];
    void *lib;
    int major, minor;

    snprintf(name, sizeof name, "libnvrtc.so.%d", CUDART_VERSION / 1000);
    lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL) lib = dlopen("libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL) return;
    /* What dlsym returns is a function as POSIX has it, but not as ISO C lets a cast say. */
    *(void **)&nvrtc.version = dlsym(lib, "nvrtcVersion");
    *(void **)&nvrtc.create = dlsym(lib, "nvrtcCreateProgram");
    *(void **)&nvrtc.compile = dlsym(lib, "nvrtcCompileProgram");
    *(void **)&nvrtc.log_size = dlsym(lib, "nvrtcGetProgramLogSize");
    *(void **)&nvrtc.log = dlsym(lib, "nvrtcGetProgramLog");
    *(void **)&nvrtc.image_size = dlsym(lib, "nvrtcGetCUBINSize");
    *(void **)&nvrtc.image = dlsym(lib, "nvrtcGetCUBIN");
    *(void **)&nvrtc.destroy = dlsym(lib, "nvrtcDestroyProgram");
    if (nvrtc.version == NULL || nvrtc.create == NULL || nvrtc.compile == NULL || nvrtc.log_size == NULL ||
        nvrtc.log == NULL || nvrtc.image_size == NULL || nvrtc.image == NULL || nvrtc.destroy == NULL)
        return;
    if (nvrtc.version(&major, &minor) == NVRTC_SUCCESS) nvrtc.number = major * 1000 + minor * 10;
}

static int compiler(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_nvrtc);
    return nvrtc.number;
}

/* What the compiler says, as far as it fits. */
static void take_log(nvrtcProgram p, char *log, size_t log_size)
{
    size_t n = 0;
    char *text;

    if (nvrtc.log_size(p, &n) != NVRTC_SUCCESS || n == 0) return;
    text = malloc(n);
    if (text != NULL && nvrtc.log(p, text) == NVRTC_SUCCESS) snprintf(log, log_size, "%s", text);
    free(text);
}

static int take_image(nvrtcProgram p, void **image, size_t *bytes)
{
    if (nvrtc.image_size(p, bytes) != NVRTC_SUCCESS || *bytes == 0) return (int)cudaErrorInvalidSource;
    *image = malloc(*bytes);
    if (*image == NULL) return (int)cudaErrorMemoryAllocation;
    if (nvrtc.image(p, *image) == NVRTC_SUCCESS) return 0;
    free(*image);
    *image = NULL;
    return (int)cudaErrorInvalidSource;
}

static int compile(const char *source, void **image, size_t *bytes, char *log, size_t log_size)
{
    char arch[32];
    const char *const options[] = {arch, "--std=c++17", "-w"}; /* most functions go unused */
    nvrtcProgram p = NULL;
    int device = 0, major = 0, minor = 0, code = lsi_cuda_enter();

    if (compiler() == 0) return (int)cudaErrorNotSupported;
    if (code == 0) code = (int)cudaGetDevice(&device);
    if (code == 0) code = (int)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (code == 0) code = (int)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (code != 0) return code;
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d%d", major, minor);
    if (nvrtc.create(&p, source, "kernel.cu", 0, NULL, NULL) != NVRTC_SUCCESS)
        return (int)cudaErrorInvalidSource;
    code = nvrtc.compile(p, 3, options) == NVRTC_SUCCESS ? take_image(p, image, bytes)
                                                         : (int)cudaErrorInvalidSource;
    if (code != 0) take_log(p, log, log_size);
    (void)nvrtc.destroy(&p);
    return code;
}

/* The library is never unloaded: kernels are used as long as the process lives. */
static int load(void **kernel, const void *image, size_t bytes, const char *entry)
{
    cudaLibrary_t library;
    cudaError_t e = (cudaError_t)lsi_cuda_enter();

    (void)bytes;
    if (e == cudaSuccess) e = cudaLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
    if (e == cudaSuccess) e = cudaLibraryGetKernel((cudaKernel_t *)kernel, library, entry);
    return (int)e;
}

static int start(lsi_cuda_stream s, void *kernel, const lsi_cuda_start *how, void *arguments)
{
    void *list[] = {arguments};
    int device = 0, code = lsi_cuda_enter();

    if (code == 0 && how->shared > 48 * 1024) { /* more than that has to be asked for */
        code = (int)cudaGetDevice(&device);
        if (code == 0)
            code = (int)cudaKernelSetAttributeForDevice(
                (cudaKernel_t)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)how->shared, device);
    }
    if (code != 0) return code;
    code = (int)cudaLaunchKernel(kernel, (dim3){how->blocks[0], how->blocks[1], 1},
                                 (dim3){how->threads, 1, 1}, list, how->shared, (cudaStream_t)s);
    if (code == 0) lsi_cuda_note_kernel(s);
    return code;
}

void lsi_cuda_fill_compile(lsi_cuda_api *api)
{
    api->compiler = compiler;
    api->compile = compile;
    api->release = free;
    api->load = load;
    api->start = start;
}
