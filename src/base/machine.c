/* machine.c: asks the kernel for the machine's memory, and the control group for its limit. */
#include "base/machine.h"

#include <math.h>
#include <stdio.h>
#include <sys/sysinfo.h>

/* A file with one number; infinity for "max", and where it cannot be read. */
static double read_limit(const char *path)
{
    FILE *f = fopen(path, "re");
    double x = 0;
    const int n = f != NULL ? fscanf(f, "%lf", &x) : 0;

    if (f != NULL) fclose(f);
    return n == 1 && x > 0 ? x : (double)INFINITY;
}

double ls_machine_memory(void)
{
    struct sysinfo info;
    double all = (double)INFINITY;

    if (sysinfo(&info) == 0) all = ((double)info.totalram + (double)info.totalswap) * (double)info.mem_unit;
    /* Those of the group that a container shows as its own. */
    all = fmin(all, read_limit("/sys/fs/cgroup/memory.max"));
    return fmin(all, read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
}
