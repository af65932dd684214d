/* machine.c: a name for the machine. */
#include "bench/machine.h"

#include <stdio.h>
#include <string.h>

void lsi_machine_name(char name[LS_MACHINE_NAME_MAX], ls_comm *comm)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

    memset(name, 0, LS_MACHINE_NAME_MAX);
    if (f == NULL || fgets(name, LS_MACHINE_NAME_MAX, f) == NULL)
        snprintf(name, LS_MACHINE_NAME_MAX, "host %d", comm != NULL ? ls_comm_host(comm) : 0);
    if (f != NULL) fclose(f);
}
