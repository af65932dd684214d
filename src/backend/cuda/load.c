/* load.c: finds the driver and the module, and says what is missing. */
#include <pthread.h>

#include "backend/cuda/cuda.h"
#include "base/module.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const lsi_cuda_api *loaded;
static ls_err why_not;

/* The driver first: without it the module's libraries, half a gigabyte, need not be looked at.  CUDA itself
 * is not begun here: it would not work any more in ranks that are forked later. */
static ls_status load(const lsi_cuda_api **out, ls_err *err)
{
    const lsi_cuda_api *(*table)(void);
    const lsi_cuda_api *api;
    int (*version)(int *);
    int driver = 0;
    void *library, *symbol;
    ls_status st = LS_OK;

    if (ls_module_load(&library, "libcuda.so.1", NULL) != LS_OK)
        return ls_fail(err, LS_UNSUPPORTED, "no NVIDIA driver is installed (libcuda.so.1 cannot be loaded)");
    st = ls_module_open(&symbol, "cuda", LSI_CUDA_SYMBOL, err);
    if (st != LS_OK)
        return ls_fail_in(err, st, "build on a machine with CUDA 13 and cuDNN 9, or install them");
    *(void **)&table = symbol;
    api = table();
    if (api->version != LSI_CUDA_VERSION)
        return ls_fail(err, LS_UNSUPPORTED, "the module cuda belongs to another version of Lockstep");
    *(void **)&version = ls_module_symbol(library, "cuDriverGetVersion");
    if (version != NULL) (void)version(&driver);
    if (driver / 1000 < api->runtime / 1000)
        return ls_fail(
            err, LS_UNSUPPORTED,
            "the NVIDIA driver knows CUDA %d.%d, and this build needs %d.%d; install a newer driver",
            driver / 1000, driver % 1000 / 10, api->runtime / 1000, api->runtime % 1000 / 10);
    *out = api;
    return LS_OK;
}

static void load_once(void)
{
    (void)load(&loaded, &why_not);
}

ls_status lsi_cuda_load(const lsi_cuda_api **out, ls_err *err)
{
    pthread_once(&once, load_once);
    *out = loaded;
    return loaded != NULL ? LS_OK : ls_fail(err, why_not.status, "%s", why_not.text);
}
