/* last_words.h: a summary that is ready to be written by a signal handler.
 *
 * A second Ctrl-C ends a run at once, in the middle of whatever it does.  So that its summary.json still says
 * so, the text is prepared beforehand, each time a summary is written, and the handler only writes it. */
#ifndef LS_RUNS_LAST_WORDS_H
#define LS_RUNS_LAST_WORDS_H

#include <jansson.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/replace.h"
#include "runs/reader.h"

enum { LS_LAST_WORDS_BYTES = 16384, LS_LAST_WORDS_PATH = 4200 };

/* Starts as {0}, and must live as long as a handler may be called. */
typedef struct ls_last_words {
    atomic_int ready; /* 0: nothing to say; else the text's number, from 1 */
    ls_replace_names names;
    char owner_file[LS_PATH_MAX];
    ls_run_owner owner; /* this process's opening of the run */
    struct {
        size_t n;
        char data[LS_LAST_WORDS_BYTES];
    } text[2]; /* one is ready while the other is being made */
} ls_last_words;

/* `summary` with the state "killed", for this run; NULL: nothing to say any more.  One run per run of the
 * program.  Accepts a NULL `w`. */
void ls_last_words_prepare(ls_last_words *w, const ls_run *run, const json_t *summary);
/* Writes it aside, and renames it where the run has not been taken over meanwhile.  May be called from a
 * signal handler. */
void ls_last_words_write(ls_last_words *w);

#endif
