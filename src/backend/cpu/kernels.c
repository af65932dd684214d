/* kernels.c: the only list of ops with kernels of the CPU backend's own. */
#include "backend/cpu/cpu.h"

const lsi_cpu_entry lsi_cpu_entries[] = {
    {NULL, NULL},
};
