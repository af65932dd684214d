/* svg.c: a plan as a picture: queues as lanes over time, edges between them, memory below. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "graph/graph.h"
#include "plans/blocks_internal.h"
#include "plans/plans.h"

/* All in pixels. */
enum {
    WIDTH = 1600,
    LEFT = 110,
    RIGHT = 20,
    TOP = 64,
    BETWEEN = 36, /* lanes */
    BAR = 56,     /* height of a block, and */
    ROW = 17,     /* of one where others go on at the same time */
    GAP = 46,     /* between lanes and memory */
    CHART = 240,
    LEGEND = 56,
    COLUMNS = 480, /* of the memory chart */
    LETTER = 6,    /* width of a letter of a label */
    LABEL_MIN = 26 /* a block narrower than this has none */
};

typedef struct picture {
    const ls_document *d;
    lsi_blocks b;
    ls_text *out;
    int lane_at[LSI_LANES]; /* top of each lane that is drawn; -1: it is empty */
    int chart_at, height;
} picture;

/* -- text -------------------------------------------------------------------------------------------------
 */

/* At most `most` characters, of which some take several bytes. */
static void add_escaped(ls_text *t, const char *text, size_t most)
{
    size_t characters = 0;

    for (size_t i = 0; text[i] != '\0'; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80 && characters++ == most) break;
        switch (text[i]) {
        case '<': ls_text_add(t, "&lt;"); break;
        case '>': ls_text_add(t, "&gt;"); break;
        case '&': ls_text_add(t, "&amp;"); break;
        case '"': ls_text_add(t, "&quot;"); break;
        default: ls_text_add(t, "%c", (unsigned char)text[i] < 32 ? ' ' : text[i]);
        }
    }
}

static void add_label(ls_text *t, double x, double y, const char *anchor, const char *class, const char *text)
{
    ls_text_add(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor, class);
    add_escaped(t, text, 200);
    ls_text_add(t, "</text>\n");
}

/* -- lanes ------------------------------------------------------------------------------------------------
 */

static double x_of(const picture *p, double seconds)
{
    const double all = p->b.seconds > 0 ? p->b.seconds : 1;

    return LEFT + (WIDTH - LEFT - RIGHT) * (seconds / all);
}

static const char *colour(const ls_doc_node *n, int lane)
{
    if (lane > 0) return "#b07cc6";
    if (n->waits) return "#c0504d";
    if (n->updates) return "#e0a030";
    return n->backward ? "#5a9e6f" : "#4f81bd";
}

static void add_tip(picture *p, const lsi_block *x)
{
    const ls_document *d = p->d;
    const ls_doc_node *n = &d->nodes[x->first];
    double flops = 0, bytes = 0;
    char a[32], b[32], c[LS_UNITS_TEXT];

    for (int32_t i = x->first; i <= x->last; i++) {
        if (p->b.block_of[i] != (int32_t)(x - p->b.of)) continue;
        flops += d->nodes[i].flops;
        bytes += d->nodes[i].bytes;
    }
    ls_text_add(p->out, "<title>");
    add_escaped(p->out, x->name, sizeof x->name);
    if (x->first == x->last && n->attributes[0] != '\0') {
        ls_text_add(p->out, "\n");
        add_escaped(p->out, n->attributes, 300);
    }
    ls_text_add(p->out, "\nnode %d%s", n->id, x->first != x->last ? " and others" : "");
    if (n->impl[0] != '\0' && x->first == x->last) {
        ls_text_add(p->out, ", ");
        add_escaped(p->out, n->impl, 60);
    }
    ls_text_add(p->out, "\n%s FLOP, %s%s%s</title>", ls_text_si(flops, a), ls_text_bytes(bytes, b),
                p->b.measured ? ", " : "", p->b.measured ? ls_units_seconds(x->end - x->begin, c) : "");
}

static int bar_height(const picture *p, int lane)
{
    return p->b.rows[lane] > 1 ? ROW : BAR;
}

static int lane_height(const picture *p, int lane)
{
    return p->b.rows[lane] > 1 ? p->b.rows[lane] * ROW : BAR;
}

/* Upright where it fits, else along the block's height, else nothing: the tip has it. */
static void add_name(picture *p, const lsi_block *x, double left, double width, double top)
{
    const size_t fits = (size_t)(width / LETTER);
    const double middle = left + width / 2;

    if (width < 11) return;
    if (width >= LABEL_MIN && fits >= strlen(x->name)) {
        add_label(p->out, middle, top + bar_height(p, x->lane) / 2.0 + 4, "middle", "in", x->name);
        return;
    }
    if (bar_height(p, x->lane) < BAR) return;
    ls_text_add(p->out, "<text transform=\"translate(%.1f %.1f) rotate(-90)\" class=\"in\">", middle + 3.5,
                top + BAR - 3);
    add_escaped(p->out, x->name, (BAR - 4) / (LETTER - 1));
    ls_text_add(p->out, "</text>\n");
}

static void add_blocks(picture *p)
{
    for (int32_t i = 0; i < p->b.n; i++) {
        const lsi_block *x = &p->b.of[i];
        const double left = x_of(p, x->begin), width = fmax(x_of(p, x->end) - left, 0.5);
        const double top = p->lane_at[x->lane] + x->row * ROW;
        ls_text_add(p->out, "<g><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"%s>",
                    left, top, width, bar_height(p, x->lane), colour(&p->d->nodes[x->first], x->lane),
                    x->lane > 0 ? " fill-opacity=\"0.6\"" : "");
        add_tip(p, x);
        ls_text_add(p->out, "</rect>\n");
        add_name(p, x, left, width, top);
        ls_text_add(p->out, "</g>\n");
    }
}

/* Between lanes only: within one, what comes later lies further right. */
static void add_edges(picture *p)
{
    int32_t from_last = -1, to_last = -1;

    for (int32_t i = 0; i < p->d->n_edges; i++) {
        const ls_doc_edge *e = &p->d->edges[i];
        const int32_t f = p->b.block_of[e->from], t = p->b.block_of[e->to];
        const lsi_block *from = &p->b.of[f], *to = &p->b.of[t];
        const bool down = from->lane < to->lane;
        double x, y, u, v;
        if (from->lane == to->lane || (f == from_last && t == to_last)) continue;
        from_last = f;
        to_last = t;
        x = x_of(p, p->b.ends[e->from]);
        y = p->lane_at[from->lane] + from->row * ROW + (down ? bar_height(p, from->lane) : 0);
        u = x_of(p, p->b.begins[e->to]);
        v = p->lane_at[to->lane] + to->row * ROW + (down ? 0 : bar_height(p, to->lane));
        ls_text_add(p->out, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" class=\"%s\"/>\n", x, y, x,
                    (y + v) / 2, u, (y + v) / 2, u, v, e->value >= 0 ? "ev" : "ec");
    }
}

static void add_lanes(picture *p)
{
    for (int i = 0; i < LSI_LANES; i++)
        if (p->lane_at[i] >= 0)
            add_label(p->out, LEFT - 10, p->lane_at[i] + lane_height(p, i) / 2.0 + 4, "end", "l",
                      lsi_lanes[i]);
    add_edges(p);
    add_blocks(p);
}

/* -- memory -----------------------------------------------------------------------------------------------
 */

static const char *const category_colours[LS_CAT_N] = {"#4f81bd", "#555555", "#5a9e6f",
                                                       "#e0a030", "#aaaaaa", "#b07cc6"};
/* From the bottom up: what stays lies below what comes and goes. */
static const ls_category stacked[LS_CAT_N] = {LS_CAT_WEIGHT,   LS_CAT_OPTIMIZER,  LS_CAT_COMM,
                                              LS_CAT_GRADIENT, LS_CAT_ACTIVATION, LS_CAT_SCRATCH};

/* The node that computes at that time. */
static int32_t node_at(const picture *p, double seconds)
{
    int32_t lo = 0, hi = p->d->n_nodes - 1;

    while (lo < hi) {
        const int32_t mid = (lo + hi + 1) / 2;
        if (p->b.begins[mid] <= seconds)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* The height of the first `layers` kinds of memory together. */
static double level(const picture *p, double (*bytes)[LS_CAT_N], int column, int layers, double most)
{
    double sum = 0;

    for (int i = 0; i < layers; i++) sum += bytes[column][stacked[i]];
    return p->chart_at + CHART - CHART * sum / most;
}

static double column_at(int column)
{
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * column / COLUMNS;
}

/* In steps, as memory comes and goes at once: along the top to the right, along the bottom back. */
static void add_area(picture *p, double (*bytes)[LS_CAT_N], int layer, double most)
{
    double y = level(p, bytes, 0, layer + 1, most), next;

    ls_text_add(p->out, "<path fill=\"%s\" fill-opacity=\"0.85\" d=\"M%d %.1f",
                category_colours[stacked[layer]], LEFT, y);
    for (int k = 1; k < COLUMNS; k++, y = next) {
        next = level(p, bytes, k, layer + 1, most);
        if (fabs(next - y) > 0.05) ls_text_add(p->out, "H%.1fV%.1f", column_at(k), next);
    }
    y = level(p, bytes, COLUMNS - 1, layer, most);
    ls_text_add(p->out, "H%dV%.1f", WIDTH - RIGHT, y);
    for (int k = COLUMNS - 1; k > 0; k--, y = next) {
        next = level(p, bytes, k - 1, layer, most);
        if (fabs(next - y) > 0.05) ls_text_add(p->out, "H%.1fV%.1f", column_at(k), next);
    }
    ls_text_add(p->out, "H%dz\"><title>%s</title></path>\n", LEFT, ls_category_name(stacked[layer]));
}

static void add_memory_axis(picture *p, double most, double peak)
{
    char text[32], label[64];

    for (int i = 0; i <= 4; i++) {
        const double y = p->chart_at + CHART - CHART * i / 4.0;
        ls_text_add(p->out, "<path d=\"M%d %.1fH%d\" class=\"grid\"/>\n", LEFT, y, WIDTH - RIGHT);
        add_label(p->out, LEFT - 10, y + 4, "end", "s", ls_text_bytes(most * i / 4, text));
    }
    snprintf(label, sizeof label, "memory of one rank; at most %s", ls_text_bytes(peak, text));
    add_label(p->out, LEFT, p->chart_at - 10, "start", "l", label);
}

static void add_memory(picture *p)
{
    double bytes[COLUMNS][LS_CAT_N];
    double peak = 0, most;

    for (int k = 0; k < COLUMNS; k++) {
        double sum = 0;
        ls_document_memory_at(p->d, node_at(p, p->b.seconds * (k + 0.5) / COLUMNS), bytes[k]);
        for (int c = 0; c < LS_CAT_N; c++) sum += bytes[k][c];
        peak = fmax(peak, sum);
    }
    most = peak > 0 ? peak * 1.05 : 1;
    add_memory_axis(p, most, (double)p->d->memory.total);
    for (int i = 0; i < LS_CAT_N; i++) add_area(p, bytes, i, most);
}

/* -- the whole --------------------------------------------------------------------------------------------
 */

static void add_key(ls_text *t, double *x, double y, const char *fill, const char *text)
{
    ls_text_add(t, "<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", *x, y - 10,
                fill);
    add_label(t, *x + 17, y, "start", "s", text);
    *x += 17 + 7.0 * (double)strlen(text) + 18;
}

static void add_legend(picture *p)
{
    double x = LEFT;
    const double y = p->height - 30, below = p->height - 10;

    add_key(p->out, &x, y, "#4f81bd", "forward");
    add_key(p->out, &x, y, "#5a9e6f", "backward");
    add_key(p->out, &x, y, "#e0a030", "update");
    add_key(p->out, &x, y, "#c0504d", "waits for other ranks");
    add_key(p->out, &x, y, "#b07cc6", "exchange, from its start to the end of its wait");
    x = LEFT;
    for (int i = 0; i < LS_CAT_N; i++)
        add_key(p->out, &x, below, category_colours[stacked[i]], ls_category_name(stacked[i]));
}

static void add_axis(picture *p)
{
    const int y = p->chart_at - GAP + 4;
    char text[LS_UNITS_TEXT];

    for (int i = 0; i <= 8; i++) {
        const double x = x_of(p, p->b.seconds * i / 8);
        ls_text_add(p->out, "<path d=\"M%.1f %dv5\" class=\"grid\"/>\n", x, y);
        if (p->b.measured)
            add_label(p->out, x, y + 17, i < 8 ? "middle" : "end", "s",
                      ls_units_seconds(p->b.seconds * i / 8, text));
    }
    if (!p->b.measured)
        add_label(p->out, WIDTH - RIGHT, y + 17, "end", "s",
                  "order of the schedule; widths estimated from FLOPs and bytes");
}

static void add_head(picture *p, const char *title)
{
    int32_t control = 0;
    char text[200];

    for (int32_t i = 0; i < p->d->n_edges; i++) control += p->d->edges[i].value < 0;
    ls_text_add(p->out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
                "role=\"img\">\n<title>",
                WIDTH, p->height, WIDTH, p->height);
    add_escaped(p->out, title, 200);
    ls_text_add(
        p->out,
        "</title>\n<style>text{font-family:sans-serif;fill:#222}.t{font-size:18px;font-weight:bold}"
        ".l{font-size:13px}.s{font-size:11px;fill:#555}.in{font-size:10px;fill:#fff;pointer-events:none}"
        "rect{stroke:#fff;stroke-width:.4}.ev,.ec{fill:none;stroke:#999;stroke-width:.8}"
        ".ec{stroke-dasharray:3 2}.grid{stroke:#ddd;fill:none}</style>\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
        WIDTH, p->height);
    add_label(p->out, 20, 26, "start", "t", title);
    snprintf(text, sizeof text,
             "%d nodes%s; %d edges by value, %d by control; %d collectives; plan hash %016llx",
             (int)p->d->n_nodes, p->b.grouped ? ", drawn by layer" : "", (int)(p->d->n_edges - control),
             (int)control, (int)p->d->n_collectives, (unsigned long long)p->d->hash);
    add_label(p->out, 20, 46, "start", "s", text);
}

static void lay_out(picture *p)
{
    int y = TOP;

    for (int i = 0; i < LSI_LANES; i++) {
        const bool used = i == 0 || p->b.rows[i] > 0;
        p->lane_at[i] = used ? y : -1;
        if (used) y += lane_height(p, i) + BETWEEN;
    }
    p->chart_at = y - BETWEEN + GAP + 14;
    p->height = p->chart_at + CHART + LEGEND;
}

void ls_document_svg(const ls_document *d, const char *title, ls_text *svg)
{
    picture p = {.d = d, .out = svg};

    if (!lsi_blocks_make(&p.b, d)) {
        svg->failed = true;
    } else {
        lay_out(&p);
        add_head(&p, title);
        add_lanes(&p);
        add_axis(&p);
        add_memory(&p);
        add_legend(&p);
        ls_text_add(svg, "</svg>\n");
    }
    lsi_blocks_release(&p.b);
}
