/* data.c: `lockstep data info|verify|make`: what a data set holds, whether all of it can be read, and small
 * synthetic sets in the real formats. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli.h"
#include "data/data.h"
#include "data/make.h"

/* Labels beyond these are not counted one by one. */
enum { MAX_COUNTED = 1000 };

/* -- settings ---------------------------------------------------------------------------------------------
 */

enum { READ = 1, MAKE = 2 };

typedef struct settings {
    const char *kind, *path, *images, *labels, *normalise, *shape, *field, *box, *layout, *format, *pattern;
    int64_t first, end, classes, count, seed, train, test, gzip, points, maps, channels, resize, pad, crop;
} settings;

typedef struct setting {
    const char *name;
    bool text;
    size_t field;
    unsigned verbs;
    const char *help;
} setting;

#define FIELD(f) offsetof(settings, f)

static const setting table[] = {
    {"kind", true, FIELD(kind), READ | MAKE,
     "idx (default), cifar, npy, hdf5, images; to read also synthetic; make: also unpaired"},
    {"path", true, FIELD(path), READ | MAKE, "the folder (npy, hdf5: or the file)"},
    {"images", true, FIELD(images), READ, "train (default), test, or a file name (hdf5: FILE:/ARRAY)"},
    {"labels", true, FIELD(labels), READ, "file of labels, where the name of the images does not tell"},
    {"normalise", true, FIELD(normalise), READ, "none (default), mnist, unit, imagenet, cifar"},
    {"field", true, FIELD(field), READ, "hdf5: the model's input that the samples are for (default image)"},
    {"box", true, FIELD(box), READ, "hdf5: brings clouds to 0..1: LO:HI, or auto"},
    {"points", false, FIELD(points), READ | MAKE,
     "hdf5: points of a cloud to take (make: clouds of so many)"},
    {"maps", false, FIELD(maps), MAKE, "npy: smooth square maps of so many pixels a side, -1 to 1"},
    {"layout", true, FIELD(layout), READ, "images: classes (default), unpaired"},
    {"channels", false, FIELD(channels), READ, "images: 3 (default), or 1 for grey"},
    {"resize", false, FIELD(resize), READ, "pixels of an image's shorter side (default: as it is)"},
    {"pad", false, FIELD(pad), READ, "black pixels around an image"},
    {"crop", false, FIELD(crop), READ, "side of the square taken from the middle (default: all)"},
    {"first", false, FIELD(first), READ, "first sample (default 0)"},
    {"end", false, FIELD(end), READ, "the sample after the last (default: all)"},
    {"classes", false, FIELD(classes), READ | MAKE, "labels must be below (make: how many, default 10)"},
    {"count", false, FIELD(count), READ, "synthetic: samples (default 1000)"},
    {"seed", false, FIELD(seed), READ | MAKE, "synthetic and make: the seed (default 0)"},
    {"pattern", true, FIELD(pattern), READ | MAKE,
     "synthetic and make: tiles (default) or waves, in which a linear classifier finds next to nothing"},
    {"shape", true, FIELD(shape), READ | MAKE, "synthetic and make: an image, such as 1x28x28"},
    {"train", false, FIELD(train), MAKE, "training samples (default 1000)"},
    {"test", false, FIELD(test), MAKE, "test samples (default 200)"},
    {"gzip", false, FIELD(gzip), MAKE, "1: compressed files (idx, hdf5)"},
    {"format", true, FIELD(format), MAKE, "jpeg (default) or png (images and unpaired only)"},
};

enum { N_SETTINGS = sizeof table / sizeof table[0] };

void cli_data_help(void)
{
    printf("\nSettings:\n");
    for (int i = 0; i < N_SETTINGS; i++) {
        const int at = printf("  %-18s %s", table[i].name, table[i].verbs == MAKE ? "make: " : "");
        cli_print_wrapped(table[i].help, at, 21);
    }
}

const char *cli_data_setting(int i)
{
    return i >= 0 && i < N_SETTINGS ? table[i].name : NULL;
}

/* Names of this command alone: what reads a set and what makes one have few in common. */
static ls_status unknown(const char *word, unsigned verb, ls_err *err)
{
    const char *names[N_SETTINGS], *near;
    char name[64];
    size_t n = 0;

    for (int i = 0; i < N_SETTINGS; i++)
        if (table[i].verbs & verb) names[n++] = table[i].name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    near = ls_text_nearest(name, names, n);
    if (near) return ls_fail(err, LS_INVALID, "no setting \"%s\" here; did you mean \"%s\"?", name, near);
    return ls_fail(err, LS_INVALID, "no setting \"%s\" here; `lockstep data --help` lists them", name);
}

/* The least that a number can be: nothing is made of no samples or classes, while no limit of labels is fine.
 */
static long long least_of(const setting *k, unsigned verb)
{
    return verb == MAKE &&
           (k->field == FIELD(train) || k->field == FIELD(test) || k->field == FIELD(classes));
}

static ls_status store(settings *s, const setting *k, const char *text, unsigned verb, ls_err *err)
{
    const long long least = least_of(k, verb);
    char *end;

    /* Texts are the command line's, which outlives them. */
    if (k->text) {
        *(const char **)((char *)s + k->field) = text;
        return LS_OK;
    }
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end || n < least || errno)
        return ls_fail(err, LS_INVALID, "%s=%s: must be a whole number from %lld on", k->name, text, least);
    *(int64_t *)((char *)s + k->field) = n;
    return LS_OK;
}

static ls_status parse(settings *s, const cli_args *args, unsigned verb, ls_err *err)
{
    ls_status st = LS_OK;

    *s = (settings){.kind = "idx", .count = 1000};
    for (int i = 0; i < args->n_settings; i++) {
        const char *word = args->settings[i];
        size_t length = strcspn(word, "=");
        int k = 0;
        while (k < N_SETTINGS && !((table[k].verbs & verb) && strlen(table[k].name) == length &&
                                   strncmp(table[k].name, word, length) == 0))
            k++;
        LS_TRY(k == N_SETTINGS ? unknown(word, verb, err)
                               : store(s, &table[k], word + length + 1, verb, err));
    }
out:
    return st;
}

/* "3x32x32"; rank 0 when nothing was said. */
static ls_status parse_shape(const char *text, ls_shape *shape, ls_err *err)
{
    const char *p = text;
    char *end;

    *shape = LS_SHAPE_SCALAR;
    while (p && shape->rank < LS_MAX_RANK) {
        long long n = strtoll(p, &end, 10);
        if (end == p || n < 1 || n > 1000000) break;
        shape->dim[shape->rank++] = n;
        if (!*end) return LS_OK;
        if (*end != 'x') break;
        p = end + 1;
    }
    if (!p) return LS_OK;
    return ls_fail(err, LS_INVALID, "shape=%s: write it like 3x32x32", text);
}

static ls_status open_set(const settings *s, ls_dataset **out, ls_err *err)
{
    ls_status st = LS_OK;
    ls_field fields[] = {{"image", LS_F32, LS_SHAPE_SCALAR}, {"label", LS_I32, LS_SHAPE_SCALAR}};
    ls_data_source src = {.kind = s->kind,
                          .path = s->path,
                          .images = s->images,
                          .labels = s->labels,
                          .normalise = s->normalise,
                          .layout = s->layout,
                          .channels = s->channels,
                          .transform = {.resize = s->resize, .pad = s->pad, .crop = s->crop},
                          .field = s->field,
                          .box = s->box,
                          .points = s->points,
                          .first = s->first,
                          .end = s->end,
                          .classes = s->classes,
                          .count = s->count,
                          .pattern = s->pattern,
                          .seed = (uint64_t)s->seed};

    LS_TRY(parse_shape(s->shape, &fields[0].shape, err));
    if (s->shape) {
        src.fields = fields;
        src.n_fields = 2;
    }
    LS_TRY(ls_dataset_open(out, &src, err));
out:
    return st;
}

/* -- info -------------------------------------------------------------------------------------------------
 */

/* Samples per label: [980, 1135, ...], or null for a set without labels or with too many; `damaged` receives
 * the number of labels that cannot be. */
static json_t *count_classes(const ls_dataset *d, int64_t *damaged)
{
    int64_t counts[MAX_COUNTED] = {0};
    const ls_field *fields;
    int n_fields = ls_dataset_fields(d, &fields), at = ls_dataset_find(d, "label"), n = 0;
    int32_t label = 0;
    void *pointers[16] = {NULL};

    *damaged = 0;
    if (at < 0 || at >= 16 || n_fields > 16 || fields[at].dtype != LS_I32 || fields[at].shape.rank != 0)
        return json_null();
    /* Fields without a place are not read: images need not be decoded for their labels. */
    pointers[at] = &label;
    for (int64_t i = 0; i < ls_dataset_count(d); i++) {
        if (ls_dataset_read(d, i, NULL, pointers, NULL) != LS_OK) {
            ++*damaged;
            continue;
        }
        if (label >= MAX_COUNTED) return json_null();
        counts[label]++;
        if (label >= n) n = label + 1;
    }
    json_t *list = json_array();
    for (int k = 0; k < n; k++) json_array_append_new(list, json_integer(counts[k]));
    return list;
}

static json_t *describe_fields(const ls_dataset *d)
{
    const ls_field *f;
    int n = ls_dataset_fields(d, &f);
    json_t *list = json_array();

    for (int i = 0; i < n; i++) {
        json_t *shape = json_array();
        for (int k = 0; k < f[i].shape.rank; k++)
            json_array_append_new(shape, json_integer(f[i].shape.dim[k]));
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", f[i].name, "dtype",
                                              ls_dtype_name(f[i].dtype), "shape", shape));
    }
    return list;
}

/* Names of classes by label, or null where the set has none. */
static json_t *list_names(const ls_dataset *d)
{
    const char *const *names;
    const int64_t n = ls_dataset_classes(d, &names);
    json_t *list = n > 0 ? json_array() : json_null();

    for (int64_t k = 0; k < n; k++) {
        json_t *name = json_string(names[k]);
        json_array_append_new(list, name != NULL ? name : json_string("(not UTF-8)"));
    }
    return list;
}

static void print_info(const ls_dataset *d, const json_t *classes, int64_t damaged)
{
    const char *const *names, *file;
    const int64_t n_names = ls_dataset_classes(d, &names), ignored = ls_dataset_ignored(d, &file);
    const ls_field *f;
    int n = ls_dataset_fields(d, &f);
    char text[LS_SHAPE_TEXT];

    printf("kind      %s\nsamples   %s\n", ls_dataset_kind(d), ls_text_count(ls_dataset_count(d), text));
    for (int i = 0; i < n; i++)
        printf("field     %-8s %s %s\n", f[i].name, ls_dtype_name(f[i].dtype),
               ls_shape_text(f[i].shape, text));
    if (ls_dataset_box(d))
        printf("box       %.9g:%.9g\n", (double)ls_dataset_box(d)->lo, (double)ls_dataset_box(d)->hi);
    for (size_t k = 0; k < json_array_size(classes); k++) {
        const json_int_t count = json_integer_value(json_array_get(classes, k));
        if ((int64_t)k < n_names)
            printf("class     %-8zu %-8" JSON_INTEGER_FORMAT " %s\n", k, count, names[k]);
        else
            printf("class     %-8zu %" JSON_INTEGER_FORMAT "\n", k, count);
    }
    if (ignored)
        printf("ignored   %" PRId64 " file%s that %s no JPEG or PNG, such as %s\n", ignored,
               ignored == 1 ? "" : "s", ignored == 1 ? "is" : "are", file);
    if (damaged)
        printf("damaged   %" PRId64 " labels; `lockstep data verify` with the same settings names them\n",
               damaged);
}

static int info(const settings *s, bool json)
{
    ls_err err = {0};
    ls_dataset *d;
    const char *file;
    int64_t damaged;

    if (open_set(s, &d, &err) != LS_OK) return cli_fail("data info", &err);
    json_t *classes = count_classes(d, &damaged);
    const int64_t ignored = ls_dataset_ignored(d, &file);
    if (json) {
        cli_print_json_take(json_pack(
            "{s:s, s:s, s:I, s:o, s:O, s:o, s:I, s:I}", "event", "data", "kind", ls_dataset_kind(d),
            "samples", (json_int_t)ls_dataset_count(d), "fields", describe_fields(d), "classes", classes,
            "class_names", list_names(d), "ignored", (json_int_t)ignored, "damaged", (json_int_t)damaged));
    } else {
        print_info(d, classes, damaged);
    }
    json_decref(classes);
    ls_dataset_close(d);
    return CLI_DONE;
}

/* -- verify -----------------------------------------------------------------------------------------------
 */

static void report_damage(int64_t index, const ls_err *err, bool json)
{
    if (json)
        cli_print_json_take(json_pack("{s:s, s:I, s:s}", "event", "damaged", "sample", (json_int_t)index,
                                      "error", err->text));
    else
        printf("damaged   %s\n", err->text);
}

/* Reads every sample; the number of damaged ones in *damaged. */
static ls_status read_all(const ls_dataset *d, bool json, int64_t *damaged, ls_err *err)
{
    ls_status st = LS_OK;
    const ls_field *f;
    int n = ls_dataset_fields(d, &f);
    size_t bytes = 0, at = 0;
    void *fields[16];
    char *memory;

    *damaged = 0;
    LS_BUG_IF(n > 16);
    /* One sample at a time, in memory that is used again: sets are larger than machines. */
    for (int i = 0; i < n; i++) bytes += (ls_dataset_field_bytes(d, i) + 63) / 64 * 64;
    memory = ls_alloc(LS_MEM_CLI, bytes);
    if (!memory) return ls_fail(err, LS_NOMEM, "no memory for a sample of %zu bytes", bytes);
    for (int i = 0; i < n; i++) {
        fields[i] = memory + at;
        at += (ls_dataset_field_bytes(d, i) + 63) / 64 * 64;
    }
    for (int64_t i = 0; i < ls_dataset_count(d); i++) {
        ls_err bad = {0};
        st = ls_dataset_read(d, i, NULL, fields, &bad);
        /* A damaged sample is what is looked for; what else fails would fail for all. */
        if (st == LS_DATA) {
            ++*damaged;
            report_damage(i, &bad, json);
        } else if (st != LS_OK) {
            *err = bad;
            goto out;
        }
    }
    st = LS_OK;
out:
    ls_free(memory);
    return st;
}

static int verify(const settings *s, bool json)
{
    ls_err err = {0};
    ls_dataset *d = NULL;
    int64_t damaged = 0;
    ls_status st = open_set(s, &d, &err);

    if (st == LS_OK) st = read_all(d, json, &damaged, &err);
    if (st == LS_OK && json)
        cli_print_json_take(json_pack("{s:s, s:I, s:I}", "event", "verify", "samples",
                                      (json_int_t)ls_dataset_count(d), "damaged", (json_int_t)damaged));
    else if (st == LS_OK)
        printf("%" PRId64 " samples read, %" PRId64 " damaged\n", ls_dataset_count(d), damaged);
    ls_dataset_close(d);
    if (st != LS_OK) return cli_fail("data verify", &err);
    return damaged ? CLI_DAMAGED : CLI_DONE;
}

/* -- make -------------------------------------------------------------------------------------------------
 */

static int make(const settings *s, bool json)
{
    ls_err err = {0};
    ls_data_make_options o = {.kind = s->kind,
                              .path = s->path,
                              .train = s->train,
                              .test = s->test,
                              .classes = s->classes,
                              .seed = (uint64_t)s->seed,
                              .gzip = s->gzip != 0,
                              .png = s->format && strcmp(s->format, "png") == 0,
                              .pattern = s->pattern,
                              .points = s->points,
                              .maps = s->maps};
    const bool unpaired = strcmp(s->kind, "unpaired") == 0;
    char word[4096];

    if (s->format && !o.png && strcmp(s->format, "jpeg") != 0) {
        ls_fail(&err, LS_INVALID, "format=%s: there are jpeg and png", s->format);
        return cli_fail("data make", &err);
    }
    if (parse_shape(s->shape, &o.shape, &err) != LS_OK || ls_data_make(&o, &err) != LS_OK)
        return cli_fail("data make", &err);
    if (json)
        cli_print_json_take(json_pack("{s:s, s:s, s:s}", "event", "make", "kind", s->kind, "path", s->path));
    else
        printf("%s: a synthetic set of kind %s; try `lockstep data info kind=%s%s path=%s images=train%s`\n",
               s->path, s->kind, unpaired ? "images" : s->kind, unpaired ? " layout=unpaired" : "",
               ls_text_quoted(s->path, word, sizeof word), s->points ? " field=cloud" : "");
    return CLI_DONE;
}

int cli_data(const cli_args *args)
{
    static const struct {
        const char *name;
        unsigned verb;
        int (*run)(const settings *s, bool json);
    } verbs[] = {{"info", READ, info}, {"verify", READ, verify}, {"make", MAKE, make}};
    ls_err err = {0};
    settings s;

    for (int i = 0; i < 3; i++) {
        if (strcmp(args->model, verbs[i].name) != 0) continue;
        if (parse(&s, args, verbs[i].verb, &err) != LS_OK) return cli_fail("data", &err);
        return verbs[i].run(&s, args->json);
    }
    ls_fail(&err, LS_INVALID, "no \"%s\"; there are info, verify and make", args->model);
    return cli_fail("data", &err);
}
