/* link_table.c: a hash table of links. */
#include "predict/link_table.h"

#include <string.h>

#include "base/alloc.h"

static int64_t find(const lsi_link_table *t, int64_t link)
{
    int64_t at = (int64_t)(((uint64_t)link * 0x9E3779B97F4A7C15u) >> 32) & (t->n_hashed - 1);

    while (t->hashed[at] >= 0 && t->links[t->hashed[at]] != link) at = (at + 1) & (t->n_hashed - 1);
    return at;
}

static bool grow(lsi_link_table *t)
{
    const int32_t capacity = t->capacity > 0 ? 2 * t->capacity : 256;
    int64_t *links = ls_realloc(LS_MEM_CLI, t->links, (size_t)capacity * sizeof *links);
    int32_t *hashed = ls_alloc(LS_MEM_CLI, 2 * (size_t)capacity * sizeof *hashed);

    if (links != NULL) t->links = links;
    if (links == NULL || hashed == NULL) {
        ls_free(hashed);
        return false;
    }
    ls_free(t->hashed);
    t->hashed = hashed;
    t->capacity = capacity;
    t->n_hashed = 2 * (int64_t)capacity;
    memset(hashed, 0xFF, (size_t)t->n_hashed * sizeof *hashed);
    for (int32_t i = 0; i < t->n; i++) t->hashed[find(t, t->links[i])] = i;
    return true;
}

int32_t lsi_link_table_place(lsi_link_table *t, int64_t link)
{
    int64_t at;

    if (t->n == t->capacity && !grow(t)) return -1;
    at = find(t, link);
    if (t->hashed[at] < 0) {
        t->links[t->n] = link;
        t->hashed[at] = t->n++;
    }
    return t->hashed[at];
}

void lsi_link_table_release(lsi_link_table *t)
{
    ls_free(t->links);
    ls_free(t->hashed);
    *t = (lsi_link_table){0};
}
