/* machine.c: machines by name or file. */
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

/* What other machines taught counts as so many measured steps: one step that happens to be met exactly does
 * not make all further ones exact. */
#define USUAL_ERROR  0.04
#define USUAL_WEIGHT 4

double ls_machine_together_error(const ls_machine *m)
{
    double squares = USUAL_WEIGHT * USUAL_ERROR * USUAL_ERROR;

    for (int32_t i = 0; i < m->n_together; i++) {
        const double missed = log(m->together[i].measured_s / m->together[i].computed_s);
        squares += missed * missed;
    }
    return sqrt(squares / (USUAL_WEIGHT + m->n_together));
}

void ls_machine_release(ls_machine *m)
{
    ls_arena_destroy(m->arena);
    *m = (ls_machine){0};
}
