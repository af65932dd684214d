/* nvml.c: calls of NVIDIA's management library. */
#include "backend/nvml.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "base/module.h"

/* Of its interface, as nvml.h of the toolkit has it. */
typedef struct device *device; /* an nvmlDevice_t */
typedef struct rates {
    unsigned gpu, memory; /* percent */
} rates;
typedef struct bytes {
    unsigned long long total, free, used;
} bytes;
enum { GPU_LOST = 15, SENSOR_GPU = 0 }; /* NVML_ERROR_GPU_IS_LOST, NVML_TEMPERATURE_GPU */

/* Filled once; only `version` and the calls are used afterwards. */
static struct nvml {
    int (*init)(void);
    int (*version)(char *text, unsigned size);
    int (*by_bus)(const char *bus, device *out);
    int (*by_index)(unsigned i, device *out);
    int (*utilization)(device d, rates *out);
    int (*memory)(device d, bytes *out);
    int (*power)(device d, unsigned *milliwatts);
    int (*temperature)(device d, int sensor, unsigned *celsius);
    bool usable;
    char text[96], why[200];
} nvml;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define LIBRARY "libnvidia-ml.so.1"

/* True when all functions are there, else `why` names the first that is not. */
static bool find_functions(void *library)
{
    const struct {
        const char *name;
        void *at; /* where the function's address goes */
    } functions[] = {{"nvmlInit_v2", &nvml.init},
                     {"nvmlSystemGetNVMLVersion", &nvml.version},
                     {"nvmlDeviceGetHandleByPciBusId_v2", &nvml.by_bus},
                     {"nvmlDeviceGetHandleByIndex_v2", &nvml.by_index},
                     {"nvmlDeviceGetUtilizationRates", &nvml.utilization},
                     {"nvmlDeviceGetMemoryInfo", &nvml.memory},
                     {"nvmlDeviceGetPowerUsage", &nvml.power},
                     {"nvmlDeviceGetTemperature", &nvml.temperature}};

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = ls_module_symbol(library, functions[i].name);
        if (symbol == NULL) {
            snprintf(nvml.why, sizeof nvml.why, LIBRARY " has no %s", functions[i].name);
            return false;
        }
        /* What dlsym returns is a function as POSIX has it, but not as ISO C lets a cast say. */
        *(void **)functions[i].at = symbol;
    }
    return true;
}

static void load(void)
{
    void *library;
    int code;

    snprintf(nvml.why, sizeof nvml.why, LIBRARY " cannot be loaded");
    if (ls_module_load(&library, LIBRARY, NULL) != LS_OK || !find_functions(library)) return;
    code = nvml.init();
    if (code != 0) {
        snprintf(nvml.why, sizeof nvml.why, LIBRARY " cannot begin: its error %d", code);
        return;
    }
    if (nvml.version(nvml.text, sizeof nvml.text) != 0) snprintf(nvml.text, sizeof nvml.text, "unknown");
    nvml.usable = true;
}

const char *lsi_nvml_version(char *why, size_t size)
{
    pthread_once(&once, load);
    if (nvml.usable) return nvml.text;
    snprintf(why, size, "%s", nvml.why);
    return NULL;
}

/* Handles are looked up anew each time: they are cheap, and one of a device that was lost is worth nothing.
 */
static int find(const char *bus, device *out)
{
    pthread_once(&once, load);
    if (!nvml.usable) return -1;
    return bus != NULL ? nvml.by_bus(bus, out) : nvml.by_index(0, out);
}

bool lsi_nvml_look(const char *bus, ls_gauge *out)
{
    unsigned number;
    rates r;
    bytes b;
    device d;

    *out = (ls_gauge){0, NAN, NAN, NAN, NAN, NAN};
    if (find(bus, &d) != 0) return false;
    if (nvml.utilization(d, &r) == 0) out->utilization = r.gpu / 100.0;
    if (nvml.memory(d, &b) == 0) {
        out->memory_bytes = (double)b.used;
        out->memory_of = (double)b.total;
    }
    if (nvml.power(d, &number) == 0) out->power_w = number / 1000.0;
    if (nvml.temperature(d, SENSOR_GPU, &number) == 0) out->temperature_c = number;
    return !isnan(out->utilization) || !isnan(out->memory_bytes) || !isnan(out->power_w) ||
           !isnan(out->temperature_c);
}

const char *lsi_nvml_lost(const char *bus)
{
    device d;
    bytes b;
    int code = find(bus, &d);

    if (code == 0) code = nvml.memory(d, &b);
    return code == GPU_LOST ? "the GPU has fallen off the bus or is lost otherwise" : NULL;
}
