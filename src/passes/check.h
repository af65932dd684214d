/* check.h: proofs about a plan: no two nodes that touch the same memory, one of them writing, are unordered.
 *
 * What comes before what is taken from the edges (by value and by control) and, for memory that was assigned
 * after scheduling, from the order within each queue; what touches what from the ops.  Nothing is asked of
 * the passes that make edges and orders, so a mistake in them is found here.  A plan that fails is a defect
 * of Lockstep: the error (LS_INVALID) names both nodes and what is missing. */
#ifndef LS_PASSES_CHECK_H
#define LS_PASSES_CHECK_H

#include "passes/passes.h"

/* Variables, after ls_pass_versions: whoever reads a version comes after its writer and before the next one,
 * by edges alone, whatever order the scheduler chooses.  Where ranks of a machine keep a variable once, a
 * barrier lies between a rank that writes it and any other that reads or writes it, in one step and from one
 * step to the next. */
ls_status ls_check_variables(const ls_graph *g, ls_err *err) LS_MUST_CHECK;

/* Collectives, after ls_pass_versions: every start has its wait, with the same tensors; one bucket is used by
 * one after the other; all starts, and all waits and barriers, have one order; leaves come before the sum of
 * them; a piece of a sharded variable is read by who gathers or updates it alone. */
ls_status ls_check_collectives(const ls_graph *g, ls_err *err) LS_MUST_CHECK;

/* The arena and the buffers of collectives, after ls_pass_memory: what is written over a value's memory comes
 * before the value is made or after its last reader.  A collective holds its memory from its start to its
 * wait. */
ls_status ls_check_memory(const ls_graph *g, const ls_schedule *s, const ls_memory *m,
                          const size_t *value_bytes, const size_t *scratch_bytes, ls_err *err) LS_MUST_CHECK;

#endif
