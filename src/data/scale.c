/* scale.c: what is done to pixel values.
 *
 * The operations and their order (divide by 255, subtract, divide, all in fp32) are those of the published
 * training scripts, so that inputs are the same to the last bit. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "data_internal.h"

typedef struct mode {
    const char *name;
    int channels; /* 1: the same for all */
    float shift[LSI_SCALE_CHANNELS], divisor[LSI_SCALE_CHANNELS];
} mode;

/* Those of three channels are means and standard deviations of red, green and blue over the training images.
 */
static const mode modes[] = {
    {"none", 1, {0.0f}, {1.0f}},
    {"mnist", 1, {0.1307f}, {0.3081f}},
    {"unit", 1, {0.5f}, {0.5f}},
    {"imagenet", 3, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}},
    {"cifar", 3, {0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}},
};

enum { N_MODES = sizeof modes / sizeof modes[0] };

int lsi_scale_channel(const lsi_scale *s, int64_t channel)
{
    return s->channels == 1 ? 0 : (int)channel;
}

float lsi_scale_value(const lsi_scale *s, int64_t channel, float x)
{
    int c = lsi_scale_channel(s, channel);
    return (x - s->shift[c]) / s->divisor[c];
}

/* What is no feature map has one. */
static int64_t channels_of(ls_shape shape)
{
    return shape.rank == 3 ? shape.dim[0] : 1;
}

static ls_status unknown(const char *wanted, ls_err *err)
{
    const char *names[N_MODES], *near;

    for (int i = 0; i < N_MODES; i++) names[i] = modes[i].name;
    near = ls_text_nearest(wanted, names, N_MODES);
    return ls_fail(err, LS_INVALID,
                   "no normalisation \"%s\"; %s%s%s there are none, mnist, unit, imagenet, cifar", wanted,
                   near ? "did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

ls_status lsi_scale_init(lsi_scale *s, const char *normalise, ls_err *err)
{
    const char *wanted = normalise ? normalise : "none";
    int k = 0;

    while (k < N_MODES && strcmp(modes[k].name, wanted) != 0) k++;
    if (k == N_MODES) return unknown(wanted, err);
    s->name = modes[k].name;
    s->channels = modes[k].channels;
    for (int c = 0; c < s->channels; c++) {
        s->shift[c] = modes[k].shift[c];
        s->divisor[c] = modes[k].divisor[c];
        for (int i = 0; i < 256; i++) s->table[c][i] = lsi_scale_value(s, c, (float)i / 255.0f);
    }
    return LS_OK;
}

void lsi_scale_floats(const lsi_scale *s, ls_shape shape, float *values)
{
    const int64_t channels = channels_of(shape), plane = ls_shape_count(shape) / channels;

    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < plane; i++)
            values[c * plane + i] = lsi_scale_value(s, c, values[c * plane + i]);
}

ls_status lsi_scale_check(const lsi_scale *s, ls_shape shape, ls_err *err)
{
    const int64_t channels = channels_of(shape);

    if (s->channels == 1 || s->channels == channels) return LS_OK;
    return ls_fail(err, LS_INVALID,
                   "the normalisation \"%s\" is for images of %d channels, and these have %" PRId64
                   "; there are none, mnist and unit for all",
                   s->name, s->channels, channels);
}
