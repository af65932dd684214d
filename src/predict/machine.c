/* machine.c: machines by name or file, and how ranks of one slow one another. */
#include "predict/machine.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/whole.h"
#include "predict/machine_internal.h"

#define FILE_MAX_BYTES ((size_t)64 << 20)
enum { PRESETS_MAX = 32 };

const char *ls_cost_source_name(ls_cost_source s)
{
    static const char *const names[LS_COST_N] = {"measured", "interpolated", "extrapolated", "rates",
                                                 "peaks"};

    return names[s];
}

bool ls_machine_has_jitter(const ls_machine *m)
{
    return m->jitter[0] < 1 || m->jitter[LS_JITTER_N - 1] > 1;
}

static ls_status open_preset(ls_machine *m, const char *name, ls_err *err)
{
    const char *names[PRESETS_MAX], *text = lsi_machine_preset_text(name), *near;
    size_t n = 0;

    if (text != NULL) return ls_machine_parse(m, text, strlen(text), name, err);
    while (n < PRESETS_MAX && (names[n] = ls_machine_preset((int)n, NULL)) != NULL) n++;
    near = ls_text_nearest(name, names, n);
    return ls_fail(err, LS_INVALID, "no machine is called \"%s\"%s%s%s; a file has a '/' or '.' in its name",
                   name, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?" : "");
}

ls_status ls_machine_open(ls_machine *m, const char *preset_or_path, ls_err *err)
{
    char *text = NULL;
    size_t length;
    ls_err why = {0};
    ls_status st = LS_OK;

    *m = (ls_machine){0};
    if (strpbrk(preset_or_path, "/.") == NULL) return open_preset(m, preset_or_path, err);
    if (ls_whole_plain(&text, &length, preset_or_path, FILE_MAX_BYTES, &why) != LS_OK)
        return ls_fail(err, why.status == LS_NOMEM ? LS_NOMEM : LS_INVALID, "%s", why.text);
    st = ls_machine_parse(m, text, length, preset_or_path, err);
    ls_free(text);
    return st;
}

void ls_machine_release(ls_machine *m)
{
    ls_arena_destroy(m->arena);
    *m = (ls_machine){0};
}

/* Beyond what was measured ranks share cores: with fewer cores than threads they take turns. */
static double by_cores(const ls_machine *m, int32_t ranks, int32_t than, double factor)
{
    const double cores = m->cores > 0 ? (double)m->cores : (double)INFINITY;
    const double wanted = (double)ranks * m->threads, had = (double)than * m->threads;

    return factor * fmax(1, wanted / cores) / fmax(1, had / cores);
}

double ls_machine_crowded(const ls_machine *m, int32_t ranks)
{
    const ls_crowding one = {1, 1}, *before = &one;

    for (int32_t i = 0; i < m->n_crowding; i++) {
        const ls_crowding *c = &m->crowding[i];
        if (c->ranks == ranks) return c->factor;
        if (c->ranks > ranks && before->ranks < ranks)
            return before->factor + (c->factor - before->factor) * (ranks - before->ranks) /
                                        (double)(c->ranks - before->ranks);
        if (c->ranks <= ranks) before = c;
    }
    if (before->ranks >= ranks) return before->factor;
    /* Memory and caches are shared by more, too: the last two measured counts say how much each doubling
     * adds, as long as there are cores. */
    if (before != &one) {
        const ls_crowding *earlier = before > m->crowding ? before - 1 : &one;
        const double doublings = log2((double)before->ranks / fmax(1, earlier->ranks));
        const double each = doublings > 0 ? fmax(0, before->factor - earlier->factor) / doublings : 0;
        const double more = before->factor + each * log2((double)ranks / before->ranks);
        return fmax(more, by_cores(m, ranks, before->ranks, before->factor));
    }
    return by_cores(m, ranks, 1, 1);
}
