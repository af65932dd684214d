/* fuzz_history.c: arbitrary bytes as the metrics of a run, and as the traces of one rank or, cut in the
 * middle, of two. */
#include <stdlib.h>
#include <string.h>

#include "train/history.h"
#include "train/timeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_metrics(const char *text, size_t n)
{
    ls_history h = {0};
    ls_err err = {0};

    if (ls_history_parse(&h, text, n, "metrics.jsonl", &err) != LS_OK && err.text[0] == '\0')
        abort(); /* a refusal says why */
    if ((h.damage.lines > 0) != (h.damage.why[0] != '\0')) abort();
    for (int i = 0; i < h.n_curves; i++)
        if (h.curves[i].n < 1 || strlen(h.curves[i].name) >= LS_HISTORY_NAME) abort();
    for (int64_t i = 1; i < h.n_times; i++)
        if (!(h.step[i] > h.step[i - 1])) abort(); /* rates divide by the time between them */
    ls_history_release(&h);
}

static void read_traces(int n, const char *const *texts, const size_t *lengths)
{
    static const char *const paths[] = {"trace-00000.json", "trace-00001.json"};
    ls_timeline t;
    ls_err err = {0};

    if (ls_timeline_parse(&t, n, texts, lengths, paths, &err) != LS_OK && err.text[0] == '\0') abort();
    for (int64_t i = 0; i < t.n_spans; i++)
        if (t.spans[i].rank >= n || t.spans[i].kind >= LS_SPAN_KINDS) abort();
    ls_timeline_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const size_t half = size / 2;

    read_metrics(text, size);
    read_traces(1, &text, &size);
    read_traces(2, (const char *const[]){text, text + half}, (const size_t[]){half, size - half});
    return 0;
}
