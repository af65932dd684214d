/* machine.c: asks the kernel for the machine's memory and processors, and the control group for its limit. */
#include "base/machine.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
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

ls_machine_ticks ls_machine_ticks_now(void)
{
    FILE *f = fopen("/proc/stat", "re");
    double user, nice, system, idle, wait, irq, soft, steal;
    ls_machine_ticks t = {0};

    if (f == NULL) return t;
    if (fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait, &irq, &soft,
               &steal) == 8) {
        t.stolen = steal;
        t.busy = user + nice + system + irq + soft + steal;
        t.all = t.busy + idle + wait;
    }
    fclose(f);
    return t;
}

double ls_machine_stolen_since(ls_machine_ticks before)
{
    const ls_machine_ticks now = ls_machine_ticks_now();
    const double all = now.all - before.all;

    return before.all > 0 && all > 0 ? fmax(0, now.stolen - before.stolen) / all : 0;
}

void ls_machine_allow_descriptors(int n)
{
    struct rlimit r;
    const rlim_t want = (rlim_t)n;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= want) return;
    r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > want ? want : r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
}
