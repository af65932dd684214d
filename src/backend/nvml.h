/* nvml.h: NVIDIA's management library, which comes with the driver, loaded when it is first asked for.
 *
 * Nothing is linked with it and no header of it is needed: the few functions that are called have been the
 * same since version 7 of the library (CUDA 7, 2015), and each ends in the number of its form.  Where the
 * library, a function or a device is missing, nothing is said but why. */
#ifndef LS_BACKEND_NVML_H
#define LS_BACKEND_NVML_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/gauges.h"

/* The library's version as text, such as "13.580.159"; NULL: there is none, and `why` says what is missing.
 * All functions may be called from any thread; the first one loads, which takes some milliseconds. */
const char *lsi_nvml_version(char *why, size_t size);

/* One look at the GPU at `bus` ("0000:1b:00.0"), or at the first one where that is NULL.  False: nobody can
 * say anything of it. */
bool lsi_nvml_look(const char *bus, ls_gauge *out);
/* What the driver says of a GPU that does not answer: that it has fallen off the bus, or was lost otherwise.
 * NULL: nothing of the sort. */
const char *lsi_nvml_lost(const char *bus);

#endif
