/* samples.c: from fetched images to a picture. */
#include "train/samples.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "events/png.h"

enum { GAP = 2 };
#define PREFIX "samples/"

/* How many of size `size` fit beside each other. */
static int64_t fitting(int64_t size)
{
    const int64_t n = LS_SAMPLES_PIXELS / (size + GAP);

    return n < 1 ? 1 : n > LS_SAMPLES_ACROSS ? LS_SAMPLES_ACROSS : n;
}

static uint8_t shade(float v)
{
    return v >= 1 ? 255 : v > 0 ? (uint8_t)(v * 255 + 0.5F) : 0; /* also of what is not a number */
}

/* One image, channel by channel, into pixels of a picture that is `stride` pixels wide. */
static void place(const float *image, int64_t channels, int64_t height, int64_t width, uint8_t *to,
                  int64_t stride)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++)
                to[(y * stride + x) * channels + c] = shade(image[(c * height + y) * width + x]);
}

ls_status ls_samples_grid(const float *images, int64_t n, int64_t channels, int64_t height, int64_t width,
                          uint8_t **out, int64_t *out_width, int64_t *out_height, ls_err *err)
{
    const int64_t most = fitting(width), across = n < most ? n : most;
    const int64_t rows_needed = (n + across - 1) / across, rows_most = fitting(height);
    const int64_t down = rows_needed < rows_most ? rows_needed : rows_most;

    *out_width = across * (width + GAP) - GAP;
    *out_height = down * (height + GAP) - GAP;
    *out = ls_alloc(LS_MEM_CLI, (size_t)(*out_width * *out_height * channels));
    if (*out == NULL) return ls_fail(err, LS_NOMEM, "samples: no memory for a picture");
    memset(*out, 0, (size_t)(*out_width * *out_height * channels));
    for (int64_t i = 0; i < n && i < across * down; i++) {
        const int64_t x = i % across * (width + GAP), y = i / across * (height + GAP);
        place(images + i * channels * height * width, channels, height, width,
              *out + (y * *out_width + x) * channels, *out_width);
    }
    return LS_OK;
}

static ls_status write_one(const ls_tensor *t, ls_events *ev, int64_t step, ls_err *err)
{
    const int64_t *dim = t->shape.dim;
    uint8_t *pixels = NULL, *png = NULL;
    int64_t width, height;
    size_t bytes;
    ls_status st = LS_OK;

    LS_TRY(ls_samples_grid(t->data, dim[0], dim[1], dim[2], dim[3], &pixels, &width, &height, err));
    LS_TRY(ls_png_encode(pixels, width, height, (int)dim[1], &png, &bytes, err));
    ls_events_image(ev, t->name, step, width, height, (int)dim[1], png, bytes);
out:
    ls_free(pixels);
    ls_free(png);
    return ls_fail_in(err, st, "%s", t->name);
}

void ls_samples_write(const ls_session *s, ls_events *ev, int64_t step)
{
    const ls_batch_plan *p = NULL;

    for (int i = 0; i < s->n_plans; i++)
        if (s->plans[i].mode == LS_EVAL && (p == NULL || s->plans[i].batch > p->batch)) p = &s->plans[i];
    for (int i = 0; p != NULL && i < ls_plan_fetch_count(p->plan); i++) {
        const ls_tensor *t = ls_plan_fetch_at(p->plan, i);
        ls_err err = {0};
        if (strncmp(t->name, PREFIX, strlen(PREFIX)) != 0 || t->shape.rank != 4) continue;
        if (write_one(t, ev, step, &err) != LS_OK) ls_log(LS_LOG_WARN, "%s", err.text);
    }
}
