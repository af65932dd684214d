/* test_ckpt.c: a checkpoint gives back the bits it was given, and no damage to it goes unnoticed. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "backend/buffer.h"
#include "base/log.h"
#include "ckpt_test.h"

static const char *save(const char *name, const ls_state *vars)
{
    const char *dir = ckpt_test_path(name);
    json_t *state =
        json_pack("{s:i, s:f, s:{s:s}}", "step", 42, "loss", 0.1, "nested", "text", "\"\xc3\xa9\n");
    ls_err err = {0};

    REQUIRE_OK(ls_ckpt_save_state(dir, vars, 0x0123456789abcdefULL, state, &err), &err);
    json_decref(state);
    return dir;
}

static void gives_back_every_bit(void)
{
    ls_state *vars = ckpt_test_vars(1, false), *other = ckpt_test_vars(2, false);
    const char *dir = save("round", vars);
    ls_ckpt *c = NULL;
    ls_err err = {0};

    CHECK(!ckpt_test_equal(vars, other));
    CHECK(ckpt_test_hash(vars) != ckpt_test_hash(other));
    REQUIRE_OK(ls_ckpt_open(&c, dir, &err), &err);
    CHECK_OK(ls_ckpt_load_state(c, other, &err), &err);
    CHECK(ckpt_test_equal(vars, other));
    CHECK(ckpt_test_hash(vars) == ckpt_test_hash(other));
    CHECK(ls_ckpt_plan_hash(c) == 0x0123456789abcdefULL);
    CHECK(isnan(ls_ckpt_metric(c)));
    CHECK_EQ_INT(ls_ckpt_count(c), 5);
    CHECK_EQ_INT(json_integer_value(json_object_get(ls_ckpt_state(c), "step")), 42);
    CHECK(json_real_value(json_object_get(ls_ckpt_state(c), "loss")) == 0.1);
    CHECK_EQ_STR(json_string_value(json_object_get(json_object_get(ls_ckpt_state(c), "nested"), "text")),
                 "\"\xc3\xa9\n");
    CHECK_EQ_INT(ckpt_test_entries(dir), 2);
    ls_ckpt_close(c);
    ls_state_destroy(vars);
    ls_state_destroy(other);
}

static void optimiser_state_is_no_weight(void)
{
    ls_state *vars = ckpt_test_vars(1, false);
    uint64_t before = ckpt_test_hash(vars);
    const ls_tensor *mean = ls_state_find(vars, "bn.running_mean"),
                    *t = ls_state_find(vars, "fc.weight.adam.t");

    tensor_put(t, 0, tensor_get(t, 0) + 1);
    CHECK(ckpt_test_hash(vars) == before);
    tensor_put(mean, 6, tensor_get(mean, 6) + 1);
    CHECK(ckpt_test_hash(vars) != before);
    ls_state_destroy(vars);
}

static void replaces_an_older_one(void)
{
    ls_state *a = ckpt_test_vars(1, false), *b = ckpt_test_vars(2, false), *got = ckpt_test_vars(3, false);
    ls_ckpt *c = NULL;
    ls_err err = {0};
    int before;

    save("twice", a);
    before = ckpt_test_entries(ckpt_test_folder());
    REQUIRE_OK(ls_ckpt_open(&c, save("twice/", b), &err), &err);
    CHECK_OK(ls_ckpt_load_state(c, got, &err), &err);
    CHECK(ckpt_test_equal(b, got));
    CHECK_EQ_INT(ckpt_test_entries(ckpt_test_folder()), before);
    ls_ckpt_close(c);
    ls_state_destroy(a);
    ls_state_destroy(b);
    ls_state_destroy(got);
}

/* -- damage -----------------------------------------------------------------------------------------------
 */

typedef struct seen {
    int n;
    char file[64], tensor[64];
} seen;

static void note(void *arg, const char *file, const char *tensor, const char *text)
{
    seen *s = arg;

    s->n++;
    snprintf(s->file, sizeof s->file, "%s", file);
    snprintf(s->tensor, sizeof s->tensor, "%s", tensor != NULL ? tensor : "");
    CHECK_CONTAINS(text, file);
}

/* The tensor that byte `at` of the safetensors file belongs to; "" for the header. */
static const char *owner(const lsi_table *t, size_t header, size_t at)
{
    for (int i = 0; i < t->n; i++)
        if (at >= header + t->items[i].begin && at < header + t->items[i].begin + t->items[i].bytes)
            return t->items[i].name;
    return "";
}

/* `words` must stand in the error, beside the file and the tensor. */
static bool expect_damage_with(const char *dir, const char *file, const char *tensor, const char *words)
{
    seen s = {0};
    ls_err err = {0};
    int bad = 0;

    return CHECK_STATUS(ls_ckpt_verify(dir, &bad, note, &s, &err), LS_DATA, &err) && CHECK_EQ_INT(bad, 1) &&
           CHECK_EQ_INT(s.n, 1) && CHECK_EQ_STR(s.file, file) && CHECK_EQ_STR(s.tensor, tensor) &&
           CHECK_CONTAINS(err.text, file) && CHECK_CONTAINS(err.text, tensor) &&
           CHECK_CONTAINS(err.text, words);
}

static bool expect_damage(const char *dir, const char *file, const char *tensor)
{
    return expect_damage_with(dir, file, tensor, "");
}

/* The header of a safetensors file; returns its size with the length before it. */
static size_t read_header(lsi_table *t, const char *data, size_t n)
{
    size_t length = 0;
    ls_err err = {0};

    REQUIRE_OK(lsi_st_header_length((const unsigned char *)data, n, &length, &err), &err);
    REQUIRE_OK(lsi_st_parse(t, data + 8, length, n - 8 - length, &err), &err);
    return length + 8;
}

static void every_flipped_byte_is_noticed(void)
{
    static const char *const files[] = {LSI_CKPT_TENSORS, LSI_CKPT_MANIFEST};
    ls_state *vars = ckpt_test_vars(1, false);
    const char *dir = save("flip", vars);
    lsi_table t = {0};
    ls_err err = {0};
    size_t header = 0, total = 0;

    for (int k = 0; k < 2; k++) {
        char path[512];
        size_t n;
        char *data;
        snprintf(path, sizeof path, "%s/%s", dir, files[k]);
        data = ckpt_test_get(path, &n);
        if (k == 0) header = read_header(&t, data, n);
        for (size_t i = 0; i < n; i++) {
            data[i] = (char)(data[i] ^ (1 << i % 8));
            ckpt_test_put(path, data, n);
            data[i] = (char)(data[i] ^ (1 << i % 8));
            if (!expect_damage(dir, files[k], k == 0 ? owner(&t, header, i) : "")) {
                printf("  byte %zu of %s\n", i, files[k]);
                break;
            }
        }
        ckpt_test_put(path, data, n);
        total += n;
        ls_free(data);
    }
    printf("  %zu bytes flipped\n", total);
    int bad = -1;
    CHECK_OK(ls_ckpt_verify(dir, &bad, NULL, NULL, &err), &err);
    CHECK_EQ_INT(bad, 0);
    lsi_table_release(&t);
    ls_state_destroy(vars);
}

static void every_cut_is_noticed(void)
{
    static const char *const files[] = {LSI_CKPT_TENSORS, LSI_CKPT_MANIFEST};
    ls_state *vars = ckpt_test_vars(1, false);
    const char *dir = save("cut", vars);
    lsi_table t = {0};
    size_t header = 0;

    for (int k = 0; k < 2; k++) {
        char path[512];
        size_t n;
        char *data;
        snprintf(path, sizeof path, "%s/%s", dir, files[k]);
        data = ckpt_test_get(path, &n);
        if (k == 0) header = read_header(&t, data, n);
        for (size_t i = 0; i < n; i++) {
            ckpt_test_put(path, data, i);
            if (!expect_damage_with(dir, files[k], "", k == 0 ? owner(&t, header, i) : "")) break;
        }
        data[n] = '\n'; /* one byte too many, which ckpt_test_get has room for */
        ckpt_test_put(path, data, n + 1);
        expect_damage(dir, files[k], "");
        unlink(path);
        expect_damage(dir, files[k], "");
        ckpt_test_put(path, data, n);
        ls_free(data);
    }
    lsi_table_release(&t);
    ls_state_destroy(vars);
}

static void a_torn_page_names_its_tensor(void)
{
    ls_state *vars = ckpt_test_vars(1, false);
    const char *dir = save("torn", vars);
    char path[512];
    size_t n;
    char *data;

    snprintf(path, sizeof path, "%s/%s", dir, LSI_CKPT_TENSORS);
    data = ckpt_test_get(path, &n);
    memset(data + n - 3, 0, 3); /* of "fc.bias", the last by element width */
    ckpt_test_put(path, data, n);
    expect_damage(dir, LSI_CKPT_TENSORS, "fc.bias");
    ls_free(data);
    ls_state_destroy(vars);
}

static void a_swapped_file_is_noticed(void)
{
    ls_state *a = ckpt_test_vars(1, false), *b = ckpt_test_vars(1, true);
    char from[512], to[512];

    snprintf(from, sizeof from, "%s/%s", save("swap-b", b), LSI_CKPT_TENSORS);
    snprintf(to, sizeof to, "%s/%s", save("swap-a", a), LSI_CKPT_TENSORS);
    REQUIRE(rename(from, to) == 0);
    expect_damage(ckpt_test_path("swap-a"), LSI_CKPT_TENSORS, "");
    ls_state_destroy(a);
    ls_state_destroy(b);
}

/* -- the wrong model --------------------------------------------------------------------------------------
 */

static void other_models_are_refused(void)
{
    ls_state *small = ckpt_test_vars(1, false), *large = ckpt_test_vars(2, true),
             *was = ckpt_test_vars(2, true);
    ls_ckpt *c = NULL;
    ls_err err = {0};
    float got[15];

    REQUIRE_OK(ls_ckpt_open(&c, save("small", small), &err), &err);
    CHECK_STATUS(ls_ckpt_load_state(c, large, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "lacks \"z.extra\"");
    CHECK(ckpt_test_equal(large, was));
    err = (ls_err){0};
    CHECK_STATUS(ls_ckpt_read(c, "fc.weight", LS_F32, LS_SHAPE(5, 3), got, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "\"fc.weight\" is f32 (3, 5), not f32 (5, 3)");
    err = (ls_err){0};
    CHECK_STATUS(ls_ckpt_read(c, "fc.weight", LS_I32, LS_SHAPE(3, 5), got, &err), LS_INVALID, &err);
    err = (ls_err){0};
    CHECK_STATUS(ls_ckpt_read(c, "nobody", LS_F32, LS_SHAPE(3, 5), got, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "\"nobody\"");
    ls_ckpt_close(c);

    err = (ls_err){0};
    REQUIRE_OK(ls_ckpt_open(&c, save("large", large), &err), &err);
    CHECK_STATUS(ls_ckpt_load_state(c, small, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "beyond the model's: \"z.extra\"");
    ls_ckpt_close(c);
    ls_state_destroy(small);
    ls_state_destroy(large);
    ls_state_destroy(was);
}

static void the_same_name_twice_is_refused(void)
{
    float x = 1;
    ls_buffer memory = ls_buffer_of_host(&x, sizeof x);
    ls_tensor t = {"a", LS_F32, LS_SHAPE(1), sizeof x, &memory, 0};
    const ls_tensor *both[] = {&t, &t};
    ls_err err = {0};
    int before = ckpt_test_entries(ckpt_test_folder());

    CHECK_STATUS(ls_ckpt_save(ckpt_test_path("double"), both, 2, 0, NULL, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "\"a\"");
    CHECK_EQ_INT(ckpt_test_entries(ckpt_test_folder()), before);
}

static void a_model_travels_by_plain_file(void)
{
    ls_state *vars = ckpt_test_vars(1, false), *got = ckpt_test_vars(2, false);
    const char *dir = save("export", vars), *file = ckpt_test_path("plain.safetensors");
    const char *back = ckpt_test_path("import");
    ls_ckpt *c = NULL;
    ls_err err = {0};
    int left_out = -1;

    CHECK_OK(ls_ckpt_export(dir, file, &err), &err);
    CHECK_OK(ls_ckpt_import(file, back, &left_out, &err), &err);
    CHECK_EQ_INT(left_out, 0);
    REQUIRE_OK(ls_ckpt_open(&c, back, &err), &err);
    CHECK_EQ_INT(ls_ckpt_count(c), 4);
    CHECK_STATUS(ls_ckpt_load_state(c, got, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "lacks \"fc.weight.adam.t\"");
    err = (ls_err){0};
    CHECK_OK(ls_ckpt_load_model(c, got, &err), &err);
    CHECK(ckpt_test_hash(got) == ckpt_test_hash(vars));
    ls_ckpt_close(c);
    ls_state_destroy(vars);
    ls_state_destroy(got);
}

static void damaged_ones_are_passed_over(void)
{
    const char *folder = ckpt_test_folder();
    ls_state *vars = ckpt_test_vars(1, false);
    char path[512], file[600];
    ls_err err = {0};

    ls_log_set_level(LS_LOG_ERROR);
    CHECK_STATUS(ls_ckpt_find_newest(folder, path, sizeof path, &err), LS_DATA, &err);
    save("step-00000009", vars);
    save("step-99999999", vars);
    save("step-99999999.partial", vars);
    save("step-7", vars); /* none of ours */
    err = (ls_err){0};
    CHECK_OK(ls_ckpt_find_newest(folder, path, sizeof path, &err), &err);
    CHECK_CONTAINS(path, "step-99999999");
    snprintf(file, sizeof file, "%s/%s", path, LSI_CKPT_TENSORS);
    REQUIRE(truncate(file, 700) == 0);
    CHECK_OK(ls_ckpt_find_newest(folder, path, sizeof path, &err), &err);
    CHECK_CONTAINS(path, "step-00000009");
    snprintf(file, sizeof file, "%s/%s", path, LSI_CKPT_MANIFEST);
    REQUIRE(unlink(file) == 0);
    CHECK_STATUS(ls_ckpt_find_newest(folder, path, sizeof path, &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, "step-99999999");
    ls_log_set_level(LS_LOG_WARN);
    ls_state_destroy(vars);
}

int main(void)
{
    CHECK_RUN(gives_back_every_bit);
    CHECK_RUN(optimiser_state_is_no_weight);
    CHECK_RUN(replaces_an_older_one);
    CHECK_RUN(every_flipped_byte_is_noticed);
    CHECK_RUN(every_cut_is_noticed);
    CHECK_RUN(a_torn_page_names_its_tensor);
    CHECK_RUN(a_swapped_file_is_noticed);
    CHECK_RUN(other_models_are_refused);
    CHECK_RUN(the_same_name_twice_is_refused);
    CHECK_RUN(a_model_travels_by_plain_file);
    CHECK_RUN(damaged_ones_are_passed_over);
    ckpt_test_cleanup();
    return CHECK_DONE();
}
