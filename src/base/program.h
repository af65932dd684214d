/* program.h: where the running program lies; what belongs to it is found from there. */
#ifndef LS_BASE_PROGRAM_H
#define LS_BASE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* The program's file, into `buf`.  False, and the empty text, when it cannot be told. */
bool ls_program_path(char *buf, size_t size);
/* FOLDER/`below`, where FOLDER is the program's; "" for the folder itself. */
bool ls_program_beside(char *buf, size_t size, const char *below);

#endif
