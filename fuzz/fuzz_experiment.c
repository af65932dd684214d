/* fuzz_experiment.c: arbitrary bytes as an experiment file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ls_status parse(ls_experiment *x, const char *text, size_t n, ls_err *err)
{
    ls_arena *arena = NULL;
    lsi_entries all;
    lsi_document doc = {0};
    ls_status st = LS_OK;

    *x = (ls_experiment){0};
    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    LS_TRY(lsi_entries_create(&all, arena, err));
    LS_TRY(lsi_entries_create(&doc.entries, arena, err));
    LS_TRY(lsi_yaml_parse(&doc, text, n, "fuzz", "", err));
    LS_TRY(lsi_merge(&all, &doc.entries, 1, err));
    LS_TRY(lsi_configure(x, &all, "fuzz", err));
out:
    ls_arena_destroy(arena);
    return st;
}

static char *written(const ls_experiment *x, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);

    if (f == NULL) abort();
    ls_experiment_write(x, f);
    if (fclose(f) != 0) abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_experiment x, y;
    ls_err err = {0};

    if (parse(&x, (const char *)data, size, &err) == LS_OK) {
        /* What is accepted is written as a file that means the same. */
        size_t n, m;
        char *a = written(&x, &n), *b;
        if (parse(&y, a, n, &err) != LS_OK) {
            fprintf(stderr, "%s\n%s", err.text, a);
            abort();
        }
        b = written(&y, &m);
        if (n != m || memcmp(a, b, n) != 0) abort();
        free(a);
        free(b);
        ls_experiment_release(&y);
    } else if (err.text[0] == '\0') {
        abort(); /* a refusal says why */
    }
    ls_experiment_release(&x);
    return 0;
}
