/* alike.c: whether all ranks have opened the same data.
 *
 * Data lie where each machine says, so nothing but the data themselves tells whether they are the same. Ranks
 * compare numbers of samples, fields, classes, and some samples evenly spaced over each set: few, so that the
 * time is bounded whatever the set is. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "train/team.h"

enum { SAMPLES = 16 };
#define MEAN_TOLERANCE                                                                                       \
    0.02 /* of pixels from 0 to 1 and the like: decoders of JPEG differ in the last bits                     \
          */

typedef struct portrait {
    int64_t samples, classes;
    uint64_t fields, bytes; /* hashes: of names, types, shapes and classes; of what the samples hold */
    double mean[SAMPLES];   /* of decoded images, whose bits depend on the decoder */
    char text[160];         /* the fields, to be read */
} portrait;

typedef struct portraits {
    char host[64];
    portrait of[LS_TEAM_SETS];
} portraits;

static void describe_fields(const ls_dataset *d, portrait *p)
{
    const ls_field *fields;
    const int n = ls_dataset_fields(d, &fields);
    const char *const *names = NULL;
    size_t used = 0;

    p->samples = ls_dataset_count(d);
    p->classes = ls_dataset_classes(d, &names);
    for (int i = 0; i < n; i++) {
        char text[256], shape[LS_SHAPE_TEXT];
        snprintf(text, sizeof text, "%s %s %s", fields[i].name, ls_dtype_name(fields[i].dtype),
                 ls_shape_text(fields[i].shape, shape));
        p->fields = XXH3_64bits_withSeed(text, strlen(text) + 1, p->fields);
        if (used < sizeof p->text)
            used += (size_t)snprintf(p->text + used, sizeof p->text - used, "%s%s", i > 0 ? ", " : "", text);
    }
    for (int64_t i = 0; names != NULL && i < p->classes; i++)
        p->fields = XXH3_64bits_withSeed(names[i], strlen(names[i]) + 1, p->fields);
}

/* Decoded images by their mean, everything else by its bits. */
static void add_field(const ls_dataset *d, const ls_field *f, const void *data, size_t bytes, int k,
                      portrait *p)
{
    const bool decoded = f->dtype == LS_F32 && strcmp(ls_dataset_kind(d), "images") == 0;
    const int64_t n = ls_shape_count(f->shape);

    if (!decoded) p->bytes = XXH3_64bits_withSeed(data, bytes, p->bytes);
    for (int64_t i = 0; decoded && i < n; i++) p->mean[k] += (double)((const float *)data)[i] / (double)n;
}

static ls_status add_samples(const ls_dataset *d, portrait *p, ls_err *err)
{
    const ls_field *fields;
    const int n = ls_dataset_fields(d, &fields);
    const int64_t count = ls_dataset_count(d), most = count < SAMPLES ? count : SAMPLES;
    void **to = ls_alloc(LS_MEM_CLI, sizeof *to * ((size_t)n + 1));
    ls_status st = LS_OK;

    for (int i = 0; to != NULL && i < n && st == LS_OK; i++) {
        to[i] = ls_alloc(LS_MEM_CLI, ls_dataset_field_bytes(d, i));
        if (to[i] == NULL) st = LS_NOMEM;
    }
    if (to == NULL || st != LS_OK) st = ls_fail(err, LS_NOMEM, "comparing data: no memory");
    for (int64_t k = 0; st == LS_OK && k < most; k++) {
        const int64_t index = most > 1 ? k * (count - 1) / (most - 1) : 0;
        /* A damaged sample is the loader's affair; that it is damaged here alone is ours. */
        const bool damaged = ls_dataset_read(d, index, NULL, to, NULL) != LS_OK;
        p->bytes = XXH3_64bits_withSeed(&damaged, sizeof damaged, p->bytes);
        for (int i = 0; !damaged && i < n; i++)
            add_field(d, &fields[i], to[i], ls_dataset_field_bytes(d, i), (int)k, p);
    }
    for (int i = 0; to != NULL && i < n; i++) ls_free(to[i]);
    ls_free(to);
    return st;
}

static bool alike(const portrait *a, const portrait *b)
{
    for (int k = 0; k < SAMPLES; k++)
        if (!(fabs(a->mean[k] - b->mean[k]) <= MEAN_TOLERANCE) && !(isnan(a->mean[k]) && isnan(b->mean[k])))
            return false;
    return a->samples == b->samples && a->classes == b->classes && a->fields == b->fields &&
           a->bytes == b->bytes;
}

static void show(const portrait *p, char *text, size_t bytes)
{
    char classes[48] = "";

    if (p->classes > 0) snprintf(classes, sizeof classes, " in %lld classes", (long long)p->classes);
    snprintf(text, bytes, "%lld samples of %s%s, some of which have hash %08x", (long long)p->samples,
             p->text, classes, (unsigned)(p->bytes ^ p->bytes >> 32 ^ p->fields));
}

static ls_status compare(const portraits *all, int n, ls_err *err)
{
    static const char *const names[LS_TEAM_SETS] = {"training", "test", "validation"};
    char first[320], other[320];

    for (int r = 1; r < n; r++)
        for (int k = 0; k < LS_TEAM_SETS; k++) {
            if (alike(&all[0].of[k], &all[r].of[k])) continue;
            show(&all[0].of[k], first, sizeof first);
            show(&all[r].of[k], other, sizeof other);
            return ls_fail(
                err, LS_DISAGREE,
                "the %s data differ: rank 0 on %s has %s; rank %d on %s has %s; the data must be the same "
                "on all machines (data.path)",
                names[k], all[0].host, first, r, all[r].host, other);
        }
    return LS_OK;
}

ls_status ls_team_agree_on_data(ls_comm *c, const ls_dataset *const sets[LS_TEAM_SETS], ls_err *err)
{
    portraits mine = {.host = ""}, *all = NULL;
    ls_status st = LS_OK;

    if (c == NULL || ls_comm_size(c) == 1) return LS_OK;
    if (gethostname(mine.host, sizeof mine.host - 1) != 0) snprintf(mine.host, sizeof mine.host, "?");
    for (int k = 0; k < LS_TEAM_SETS; k++) {
        if (sets[k] == NULL) continue;
        describe_fields(sets[k], &mine.of[k]);
        LS_TRY(add_samples(sets[k], &mine.of[k], err));
    }
    all = ls_alloc(LS_MEM_CLI, sizeof *all * (size_t)ls_comm_size(c));
    if (all == NULL) {
        st = ls_fail(err, LS_NOMEM, "comparing data: no memory");
        goto out;
    }
    LS_TRY(ls_comm_gather_all(c, &mine, sizeof mine, all, "comparing data", err));
    st = compare(all, ls_comm_size(c), err);
out:
    ls_free(all);
    return st;
}
