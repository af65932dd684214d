/* nvrtc.h: NVIDIA's run-time compiler, for tests of sources that are written: it needs no GPU. */
#ifndef LS_TESTS_BACKEND_NVRTC_H
#define LS_TESTS_BACKEND_NVRTC_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

/* What is used of NVIDIA's header, which a machine without CUDA does not have. */
static struct nvrtc {
    int (*create)(void **p, const char *source, const char *name, int n, const char *const *headers,
                  const char *const *names);
    int (*compile)(void *p, int n, const char *const *options);
    int (*log_size)(void *p, size_t *n);
    int (*take_log)(void *p, char *text);
    int (*destroy)(void **p);
} nvrtc;

static inline bool nvrtc_find(void)
{
    void *lib = dlopen("libnvrtc.so", RTLD_NOW);

    if (lib == NULL) lib = dlopen("libnvrtc.so.13", RTLD_NOW);
    if (lib == NULL) lib = dlopen("/usr/local/cuda/lib64/libnvrtc.so", RTLD_NOW);
    if (lib == NULL) return false;
    *(void **)&nvrtc.create = dlsym(lib, "nvrtcCreateProgram");
    *(void **)&nvrtc.compile = dlsym(lib, "nvrtcCompileProgram");
    *(void **)&nvrtc.log_size = dlsym(lib, "nvrtcGetProgramLogSize");
    *(void **)&nvrtc.take_log = dlsym(lib, "nvrtcGetProgramLog");
    *(void **)&nvrtc.destroy = dlsym(lib, "nvrtcDestroyProgram");
    return nvrtc.create != NULL && nvrtc.compile != NULL && nvrtc.log_size != NULL &&
           nvrtc.take_log != NULL && nvrtc.destroy != NULL;
}

static inline void nvrtc_check(const char *source)
{
    enum { UNKNOWN_OPTION = 5 };
    /* That it compiles is asked, not how good the code is: a quarter of the time, where the last option is
     * known. */
    const char *const options[] = {"--gpu-architecture=sm_90", "--std=c++17", "--Ofast-compile=max"};
    void *p = NULL;
    bool compiles;
    int code;

    REQUIRE(nvrtc.create(&p, source, "kernel.cu", 0, NULL, NULL) == 0);
    code = nvrtc.compile(p, 3, options);
    if (code == UNKNOWN_OPTION) code = nvrtc.compile(p, 2, options);
    compiles = code == 0;
    if (!compiles) {
        size_t n = 0;
        char *log;
        REQUIRE(nvrtc.log_size(p, &n) == 0);
        log = calloc(n + 1, 1);
        if (log == NULL) abort();
        REQUIRE(nvrtc.take_log(p, log) == 0);
        printf("%s\n%s\n", source, log);
        free(log);
    }
    CHECK(compiles);
    (void)nvrtc.destroy(&p);
}

#endif
