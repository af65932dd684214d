/* machine.h: how much memory there is. */
#ifndef LS_BASE_MACHINE_H
#define LS_BASE_MACHINE_H

/* Bytes of memory and swap that this process could ever have: the machine's, or what its control group
 * grants; infinity where nobody says. */
double ls_machine_memory(void);

#endif
