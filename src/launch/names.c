/* names.c: all machines get different names. */
#include "launch/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

typedef struct machine {
    char own[LSI_HOST_NAME]; /* as its host calls it, in letters that MPI takes */
    char name[LSI_HOST_NAME + 16];
} machine;

static void clean(machine *m, const char *own)
{
    snprintf(m->own, sizeof m->own, "%s", own[0] != '\0' ? own : "machine");
    for (char *c = m->own; *c != '\0'; c++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.", *c) == NULL) *c = '-';
}

/* Whether machine i, which is not the first of its own name, may be called `name`.  Nobody's own name may be
 * made here, those of later machines included. */
static bool is_free(const machine *all, int n, int i, const char *name)
{
    for (int k = 0; k < n; k++)
        if (strcmp(all[k].own, name) == 0 || (k < i && strcmp(all[k].name, name) == 0)) return false;
    return true;
}

static void choose(machine *all, int n, int i)
{
    bool taken = false;

    for (int k = 0; k < i; k++) taken |= strcmp(all[k].own, all[i].own) == 0;
    snprintf(all[i].name, sizeof all[i].name, "%s", all[i].own);
    for (int number = i; taken && !is_free(all, n, i, all[i].name); number++)
        snprintf(all[i].name, sizeof all[i].name, "%s-%d", all[i].own, number);
}

ls_status lsi_host_names(char **out, char (*own)[LSI_HOST_NAME], int n, ls_err *err)
{
    machine *all = ls_alloc(LS_MEM_CLI, sizeof *all * (size_t)n);
    ls_text t = {0};

    *out = NULL;
    for (int i = 0; all != NULL && i < n; i++) clean(&all[i], own[i]);
    for (int i = 0; all != NULL && i < n; i++) {
        choose(all, n, i);
        ls_text_add(&t, "%s%s", i > 0 ? "," : "", all[i].name);
    }
    if (all == NULL || t.failed) {
        ls_text_release(&t);
        ls_free(all);
        return ls_fail(err, LS_NOMEM, "no memory for the names of machines");
    }
    ls_free(all);
    *out = t.data;
    return LS_OK;
}
