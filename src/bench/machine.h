/* machine.h: which ranks are on the same machine, whatever names it goes by. */
#ifndef LS_BENCH_MACHINE_H
#define LS_BENCH_MACHINE_H

#include "bench/probe.h"

/* The kernel that runs this process.  Nodes of a batch system, containers and network namespaces may be one
 * machine with several names; where the kernel does not say which it is, the communicator's count of hosts
 * stands in (`comm` NULL: one). */
void lsi_machine_name(char name[LS_MACHINE_NAME_MAX], ls_comm *comm);

#endif
