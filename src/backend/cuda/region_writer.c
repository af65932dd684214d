/* region_writer.c: barriers between calls of a region's first kernel, and names of what they work on. */
#include "backend/cuda/region_writer.h"

#include <string.h>

/* -- barriers ---------------------------------------------------------------------------------------------
 */

static bool is_flat(const lsi_region_place *p)
{
    return p->plane == p->h * p->w && p->row == p->w;
}

static void touch_own(lsi_region_writer *w, int from, int size, bool written, const lsi_region_place *own)
{
    LS_BUG_IF(w->n_next == (int)(sizeof w->next / sizeof w->next[0]));
    w->next[w->n_next++] = (lsi_region_range){from, from + size, written, own};
}

void lsi_touch(lsi_region_writer *w, int from, int size, bool written)
{
    touch_own(w, from, size, written, NULL);
}

void lsi_touch_place(lsi_region_writer *w, int place, bool written, bool own)
{
    const lsi_region_place *p = &w->r->place[place];

    touch_own(w, p->at, p->bytes ? (p->c * p->h * p->w + 3) / 4 : p->c * p->plane, written, own ? p : NULL);
}

void lsi_touch_value(lsi_region_writer *w, int32_t id, bool written, bool own)
{
    const lsi_region_value *v = lsi_region_value_of(w->r, id);

    if (v->place >= 0) lsi_touch_place(w, v->place, written, own);
}

/* Element by element in the same memory. */
static bool alike(const lsi_region_place *a, const lsi_region_place *b)
{
    return a->at + a->top * a->row + a->left == b->at + b->top * b->row + b->left &&
           a->c * a->h * a->w == b->c * b->h * b->w && a->bytes == b->bytes &&
           (a == b || (is_flat(a) && is_flat(b)));
}

bool lsi_must_wait(const lsi_region_writer *w)
{
    for (int i = 0; i < w->n_next; i++)
        for (int k = 0; k < w->n_touched; k++) {
            const lsi_region_range *a = &w->next[i], *b = &w->touched[k];
            if (a->own != NULL && b->own != NULL && alike(a->own, b->own)) continue;
            if ((a->written || b->written) && a->from < b->to && b->from < a->to) return true;
        }
    return w->n_touched + w->n_next > LSI_REGION_TOUCHED;
}

void lsi_add_barrier(lsi_region_writer *w)
{
    ls_text_add(w->out, "        barrier();\n");
    w->n_touched = 0;
}

void lsi_add_call(lsi_region_writer *w)
{
    if (lsi_must_wait(w)) lsi_add_barrier(w);
    memcpy(&w->touched[w->n_touched], w->next, sizeof w->next[0] * (size_t)w->n_next);
    w->n_touched += w->n_next;
    w->n_next = 0;
    ls_text_add(w->out, "        ");
}

/* -- names ------------------------------------------------------------------------------------------------
 */

int lsi_place_of(const lsi_region_writer *w, int32_t id)
{
    return lsi_region_value_of(w->r, id)->place;
}

void lsi_add_pointer(lsi_region_writer *w, int32_t id, const char *type)
{
    const lsi_region_value *v = lsi_region_value_of(w->r, id);

    ls_text_add(w->out, "(const %s *)p.at[%d]", type, v->input);
}

void lsi_add_weights(lsi_region_writer *w, int32_t id)
{
    const lsi_region_weights *kept = lsi_region_weights_of(w->r, id);

    if (kept != NULL)
        ls_text_add(w->out, "all + %d", kept->at);
    else
        lsi_add_pointer(w, id, "float");
}

void lsi_add_float(lsi_region_writer *w, double x)
{
    const float f = (float)x;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    ls_text_add(w->out, "__uint_as_float(0x%08xu)", (unsigned)bits);
}

void lsi_add_taps(lsi_region_writer *w, const ls_node *n)
{
    const ls_conv_attr *a = n->attr;
    const ls_shape k = w->r->g->values[n->op == &ls_op_conv2d_dw ? n->out[0] : n->in[1]]->shape;

    ls_text_add(w->out, "taps<%d, %d, %d, %d, %d, %d, %d, %d>", (int)k.dim[2], (int)k.dim[3], a->stride[0],
                a->stride[1], a->dilation[0], a->dilation[1], a->pad[0], a->pad[1]);
}

void lsi_add_label(lsi_region_writer *w, int32_t id)
{
    ls_text_add(w->out, "label%d", lsi_region_value_of(w->r, id)->input);
}

void lsi_add_single(lsi_region_writer *w, int32_t id)
{
    ls_text_add(w->out, "single%d", lsi_region_value_of(w->r, id)->input);
}

void lsi_add_cut(lsi_region_writer *w, int i)
{
    const lsi_region_product *p = &w->r->product[i];

    ls_text_add(w->out, "%d, %d, %d", p->split, p->down, p->across);
}
