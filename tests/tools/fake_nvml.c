/* fake_nvml.c: a libnvidia-ml.so.1 with one GPU, for tests on machines that have none.
 *
 * Load and memory grow with every look.  FAKE_NVML: "broken" cannot begin, "quiet" says neither load nor
 * power, "lost" has lost its GPU.  Built with WITHOUT_POWER it lacks a function, as a library of another age
 * may. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, UNKNOWN = 999, LOST = 15 };
#define BUS "0000:1b:00.0"

typedef struct rates {
    unsigned gpu, memory;
} rates;
typedef struct bytes {
    unsigned long long total, free, used;
} bytes;

static unsigned looks;

static int is(const char *how)
{
    const char *said = getenv("FAKE_NVML");

    return said != NULL && strcmp(said, how) == 0;
}

int nvmlInit_v2(void);
int nvmlSystemGetNVMLVersion(char *text, unsigned size);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **out);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out);
int nvmlDeviceGetUtilizationRates(void *d, rates *out);
int nvmlDeviceGetMemoryInfo(void *d, bytes *out);
int nvmlDeviceGetPowerUsage(void *d, unsigned *out);
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *out);

int nvmlInit_v2(void)
{
    return is("broken") ? UNKNOWN : OK;
}

int nvmlSystemGetNVMLVersion(char *text, unsigned size)
{
    snprintf(text, size, "1.2.fake");
    return OK;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **out)
{
    *out = &looks;
    return strcmp(bus, BUS) == 0 ? OK : NOT_FOUND;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out)
{
    *out = &looks;
    return i == 0 ? OK : NOT_FOUND;
}

int nvmlDeviceGetUtilizationRates(void *d, rates *out)
{
    if (d != &looks) return UNKNOWN;
    *out = (rates){40 + looks++ % 60, 7};
    return is("quiet") ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetMemoryInfo(void *d, bytes *out)
{
    const unsigned long long used = (1024ULL + looks) << 20;

    if (d != &looks) return UNKNOWN;
    *out = (bytes){8ULL << 30, (8ULL << 30) - used, used};
    return is("lost") ? LOST : OK;
}

#ifndef WITHOUT_POWER
int nvmlDeviceGetPowerUsage(void *d, unsigned *out)
{
    *out = 345678;
    return d != &looks ? UNKNOWN : is("quiet") ? NOT_SUPPORTED : OK;
}
#endif

int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *out)
{
    *out = 61;
    return d == &looks && sensor == 0 ? OK : UNKNOWN;
}
