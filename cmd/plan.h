/* plan.h: the parts of `lockstep plan`. */
#ifndef LS_CMD_PLAN_H
#define LS_CMD_PLAN_H

#include "cli.h"
#include "plans/plans.h"

/* The experiment of the command line, compiled and written down: d has LS_OUTLINE_PLANS places, of which
 * x->outline.n_plans are filled.  Release x and all of d in any case. */
ls_status plan_compile(cli_experiment *x, ls_document *d, const cli_args *args, ls_err *err) LS_MUST_CHECK;

/* Whether the word is a file of a plan (ls_document_open) and no experiment: those are YAML, or names. */
bool plan_is_file(const char *word);
/* LS_INVALID for such a word that is a pipe, a device or a folder: one would wait for whoever writes it. */
ls_status plan_file_check(const char *word, ls_err *err) LS_MUST_CHECK;

/* --graph FILE: LS_INVALID unless it ends in .svg or .dot and can be written.  To be called before anything
 * is compiled or said. */
ls_status plan_graph_check(const char *path, ls_err *err) LS_MUST_CHECK;
ls_status plan_graph_write(const char *path, const char *title, const ls_document *d,
                           ls_err *err) LS_MUST_CHECK;

/* --strategy NAME|all, and -n with several numbers: the table of memory.  Whether it is asked for, LS_INVALID
 * where options contradict one another, and the table itself, which returns the exit code. */
bool plan_memory_wanted(const cli_args *args);
ls_status plan_memory_check(const cli_args *args, ls_err *err) LS_MUST_CHECK;
int plan_memory(const cli_args *args);

/* --diff A B: returns the exit code: 0 when they are equal, 1 when not. */
int plan_diff(const cli_args *args);

#endif
