/* output.h: standard output that is known to have arrived.
 *
 * A full disk or a closed descriptor is noticed when buffers are written, often long after the printf that
 * filled them.  Everything that prints ends its lines with ls_output_flush where somebody waits for them;
 * whoever ends a process calls ls_output_end and makes an exit code of its answer.  What fails in between
 * ends nothing: a training run goes on, and says in the end that its words were lost. */
#ifndef LS_BASE_OUTPUT_H
#define LS_BASE_OUTPUT_H

#include "lockstep/status.h"

/* The first call of a program.  A program that is started with a closed standard output would otherwise print
 * into the next file that it opens. */
void ls_output_begin(void);
/* In a process that was forked: the failures of its parent are the parent's to tell. */
void ls_output_forget(void);

/* Writes what lies in the buffer.  Why that failed is remembered. */
void ls_output_flush(void);
/* Something could not be made into text at all; `why` is a constant. */
void ls_output_lost(const char *why);
/* Writes what is left and closes standard output.  LS_IO, with the reason, when anything that was printed
 * did not arrive. */
ls_status ls_output_end(ls_err *err) LS_MUST_CHECK;

#endif
