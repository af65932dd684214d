/* scale.c: what is done to pixel values.
 *
 * The operations and their order (divide by 255, subtract, divide, all in fp32) are those of the published
 * training scripts, so that inputs are the same to the last bit. */
#include <string.h>

#include "base/text.h"
#include "data_internal.h"

static const struct {
    const char *name;
    float shift, divisor;
} modes[] = {{"none", 0.0f, 1.0f}, {"mnist", 0.1307f, 0.3081f}, {"unit", 0.5f, 0.5f}};

enum { N_MODES = sizeof modes / sizeof modes[0] };

float lsi_scale_value(const lsi_scale *s, float x)
{
    return (x - s->shift) / s->divisor;
}

ls_status lsi_scale_init(lsi_scale *s, const char *normalise, ls_err *err)
{
    const char *names[N_MODES], *wanted = normalise ? normalise : "none", *near;
    int mode = 0;

    for (int i = 0; i < N_MODES; i++) names[i] = modes[i].name;
    while (mode < N_MODES && strcmp(names[mode], wanted) != 0) mode++;
    if (mode == N_MODES) {
        near = ls_text_nearest(wanted, names, N_MODES);
        return ls_fail(err, LS_INVALID, "no normalisation \"%s\"; %s%s%s there are none, mnist, unit", wanted,
                       near ? "did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    s->shift = modes[mode].shift;
    s->divisor = modes[mode].divisor;
    for (int i = 0; i < 256; i++) s->table[i] = lsi_scale_value(s, (float)i / 255.0f);
    return LS_OK;
}

void lsi_scale_bytes(const lsi_scale *s, const uint8_t *in, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = s->table[in[i]];
}
