/* machine.h: how much memory there is, what processors have done, and how many files may be open. */
#ifndef LS_BASE_MACHINE_H
#define LS_BASE_MACHINE_H

/* Bytes of memory and swap that this process could ever have: the machine's, or what its control group
 * grants; infinity where nobody says. */
double ls_machine_memory(void);

/* What all processors of this machine together have done since it started, in the kernel's ticks.  `stolen`,
 * a part of `busy`: there was something to do, but whoever runs this virtual machine gave the processor to
 * others. */
typedef struct ls_machine_ticks {
    double busy, all, stolen;
} ls_machine_ticks;

/* All 0 where nobody says. */
ls_machine_ticks ls_machine_ticks_now(void);
/* The share of all processors' time that was stolen from `before` until now; 0 where nobody says. */
double ls_machine_stolen_since(ls_machine_ticks before);

/* Raises the limit of files and connections that this process may have open to `n`, or as far as it may: the
 * usual one of 1024 is soft.  A higher one stays. */
void ls_machine_allow_descriptors(int n);

#endif
