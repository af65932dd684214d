/* reorder.c: blocks and unblocks feature maps.  Any element type of 1, 2 or 4 bytes; f32 has vector
 * kernels, and so has the way back of 2 bytes with AVX-512. */
#include "backend/cpu/reorder.h"

#include "backend/cpu/b16.h"
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"

typedef struct reorder_state {
    const lsi_reorder_kernels *vec; /* NULL: not f32, or no vector instructions */
    int64_t blocks, pixels;         /* N * C/16 transposes of (16, pixels) */
    size_t size;                    /* bytes per element */
    bool to_blocked;
    int threads;
    const char *x;
    char *y;
} reorder_state;

/* One block, element by element. */
static void move_block(const reorder_state *s, const char *x, char *y)
{
    for (int64_t p = 0; p < s->pixels; p++)
        for (int64_t c = 0; c < 16; c++) {
            size_t plain = (size_t)(c * s->pixels + p) * s->size, blocked = (size_t)(p * 16 + c) * s->size;
            if (s->to_blocked)
                memcpy(y + blocked, x + plain, s->size);
            else
                memcpy(y + plain, x + blocked, s->size);
        }
}

static void move_halves(const reorder_state *s, const uint16_t *x, uint16_t *y)
{
    if (!s->to_blocked && lsi_has_avx512()) {
        lsi_b16_turn_lines(x, LS_BF16, 16, s->pixels, y, s->pixels);
        return;
    }
    for (int64_t p = 0; p < s->pixels; p++)
        for (int64_t c = 0; c < 16; c++)
            if (s->to_blocked)
                y[p * 16 + c] = x[c * s->pixels + p];
            else
                y[c * s->pixels + p] = x[p * 16 + c];
}

static void part(int thread, int n_threads, void *arg)
{
    const reorder_state *s = arg;
    size_t bytes = (size_t)s->pixels * 16 * s->size;
    int64_t lo, hi;

    ls_parallel_range(s->blocks, thread, n_threads, &lo, &hi);
    for (int64_t b = lo; b < hi; b++) {
        const char *x = s->x + (size_t)b * bytes;
        char *y = s->y + (size_t)b * bytes;
        if (s->pixels == 1)
            memcpy(y, x, bytes); /* a map of one pixel looks the same in both layouts */
        else if (s->size == 2)
            move_halves(s, (const uint16_t *)(const void *)x, (uint16_t *)(void *)y);
        else if (s->vec == NULL)
            move_block(s, x, y);
        else if (s->to_blocked)
            s->vec->block((const float *)x, (float *)y, s->pixels);
        else
            s->vec->unblock((const float *)x, (float *)y, s->pixels);
    }
}

static void run(void *state, const ls_call *c)
{
    reorder_state s = *(const reorder_state *)state;

    s.x = c->in[0];
    s.y = c->out[0];
    ls_parallel_run(s.threads, part, &s);
}

ls_status lsi_plan_reorder(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_vinfo *x = lsi_in(g, n, 0), *y = lsi_out(g, n, 0);
    reorder_state s = {0};

    s.to_blocked = x->layout == &ls_layout_plain && y->layout == &lsi_layout_c16;
    if (!s.to_blocked && !(x->layout == &lsi_layout_c16 && y->layout == &ls_layout_plain))
        return LS_UNSUPPORTED;
    s.blocks = x->shape.dim[0] * x->shape.dim[1] / 16;
    s.pixels = x->shape.dim[2] * x->shape.dim[3];
    s.size = ls_dtype_size(x->dtype);
    s.threads = lsi_threads_for(dev, s.blocks * s.pixels * 16);
    if (x->dtype == LS_F32) s.vec = LSI_PICK(lsi_reorder_avx512, lsi_reorder_avx2);
    return lsi_kernel_make(out, run, &s, sizeof s, 0, s.to_blocked ? "block" : "unblock", err);
}
