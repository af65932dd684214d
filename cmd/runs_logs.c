/* runs_logs.c: `lockstep runs logs RUN [-f] [--rank R]`: what a rank said, as a terminal may have it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/output.h"
#include "base/printable.h"
#include "base/text.h"
#include "runs.h"

static ls_status rank_of(const cli_args *args, int *rank, ls_err *err)
{
    char *end;
    long r;

    *rank = 0;
    if (args->rank == NULL) return LS_OK;
    r = strtol(args->rank, &end, 10);
    if (end == args->rank || *end != '\0' || r < 0 || r > 99999)
        return ls_fail(err, LS_INVALID, "--rank: \"%.40s\" is no rank: they count from 0", args->rank);
    *rank = (int)r;
    return LS_OK;
}

/* What was read of the last line, which need not be whole. */
typedef struct tail {
    FILE *file;
    ls_text line;
    bool json;
} tail;

/* Ranks write what files and peers told them: it is made harmless for a terminal. */
static void put_line(tail *t)
{
    const size_t n = t->line.length;
    char *shown = n > 0 ? ls_alloc(LS_MEM_CLI, 4 * n + 1) : NULL;

    if (shown != NULL) ls_printable(t->line.data, n, shown, 4 * n + 1);
    if (shown != NULL && t->json)
        cli_print_json_take(json_pack("{s:s, s:s}", "event", "log", "line", shown));
    else if (shown != NULL)
        fputs(shown, stdout);
    else if (n > 0)
        ls_output_lost("no memory for a line");
    ls_free(shown);
    ls_text_release(&t->line);
}

/* Prints the whole lines that are there; `all`: the rest, too. */
static void put_new(tail *t, bool all)
{
    int c;

    /* The end of a file that grows is none. */
    clearerr(t->file);
    while ((c = getc_unlocked(t->file)) != EOF) {
        if (c == '\n' && t->json) {
            if (t->line.length == 0) ls_text_add(&t->line, " ");
            put_line(t);
            continue;
        }
        ls_text_add(&t->line, "%c", c != 0 ? c : 1); /* a NUL is shown as any other */
        /* A log without line ends must not gather in memory. */
        if (c == '\n' || t->line.length > 65536) put_line(t);
    }
    if (all) put_line(t);
    ls_output_flush();
}

/* Whether the run may still say something. */
static bool goes_on(const char *path)
{
    ls_run_info i;
    const bool alive = ls_run_read(&i, path, NULL) == LS_OK && i.alive;

    ls_run_info_release(&i);
    return alive;
}

/* A run that was just begun has no log yet: who follows it waits, as long as it lives. */
static ls_status open_log(tail *t, const char *path, int rank, bool wait, ls_err *err)
{
    char name[LS_PATH_MAX + 32];

    snprintf(name, sizeof name, "%s/logs/rank-%05d.log", path, rank);
    while ((t->file = fopen(name, "re")) == NULL) {
        if (errno != ENOENT || !wait || !goes_on(path))
            return ls_fail(err, errno == ENOENT ? LS_INVALID : LS_IO,
                           "%s: %s; `lockstep runs show` says how many ranks it has", name, strerror(errno));
        nanosleep(&(struct timespec){0, 200 * 1000 * 1000}, NULL);
    }
    return LS_OK;
}

int runs_logs(const cli_args *args)
{
    char path[LS_PATH_MAX];
    tail t = {.json = args->json};
    ls_err err = {0};
    ls_status st = LS_OK;
    int rank;

    LS_TRY(rank_of(args, &rank, &err));
    LS_TRY(runs_find(path, args, 0, &err));
    LS_TRY(open_log(&t, path, rank, args->tail, &err));
    while (args->tail) {
        /* Asked before reading: what is said in between is read once more below. */
        const bool more = goes_on(path);
        put_new(&t, false);
        if (!more) break;
        nanosleep(&(struct timespec){0, 200 * 1000 * 1000}, NULL);
    }
    put_new(&t, true);
out:
    if (t.file != NULL) fclose(t.file);
    ls_text_release(&t.line);
    return st == LS_OK ? CLI_DONE : cli_fail("runs", &err);
}
