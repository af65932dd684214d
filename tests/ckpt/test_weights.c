/* test_weights.c: weights from checkpoints and plain files: what fits, what does not, and what is said of it.
 */
#include "ckpt/weights.h"

#include <xxhash.h>

#include "ckpt_test.h"
#include "faults.h"

/* The model of `from` into `to`, by way of a file or of a checkpoint. */
static ls_status load(const char *path, ls_state *to, const ls_weights_wish *wish, ls_weights_outcome *o,
                      ls_err *err)
{
    ls_weights *w = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_weights_open(&w, path, err));
    LS_TRY(ls_weights_load(w, to, wish, o, err));
out:
    ls_weights_close(w);
    return st;
}

static void fits(const char *path)
{
    ls_state *other = ckpt_test_vars(2, false);
    const ls_weights_wish all = {0};
    ls_weights_outcome o = {0};
    ls_ckpt *c = NULL;
    ls_err err = {0};

    REQUIRE_OK(load(path, other, &all, &o, &err), &err);
    CHECK_EQ_INT(o.missing + o.extra + o.misfits + o.skipped, 0);
    CHECK(o.loaded > 0 && o.differences.length == 0);
    REQUIRE_OK(ls_ckpt_open(&c, ckpt_test_path("from"), &err), &err);
    for (int i = 0; i < ls_state_count(other); i++) {
        const ls_tensor *t = ls_state_at(other, i);
        char wanted[4096], got[4096];
        if (!lsi_is_model(ls_state_role(other, i))) continue;
        REQUIRE(t->bytes <= sizeof wanted);
        REQUIRE_OK(ls_ckpt_read(c, t->name, t->dtype, t->shape, wanted, &err), &err);
        tensor_read(t, got, t->bytes);
        CHECK(memcmp(wanted, got, t->bytes) == 0);
    }
    ls_ckpt_close(c);
    ls_weights_outcome_release(&o);
    ls_state_destroy(other);
}

/* A model with one parameter more, and one that lacks it. */
static void does_not_fit(const char *small, const char *large)
{
    ls_state *vars = ckpt_test_vars(3, true), *before = ckpt_test_vars(3, true),
             *plain = ckpt_test_vars(3, false);
    ls_weights_outcome o = {0};
    ls_err err = {0};

    CHECK(load(small, vars, &(ls_weights_wish){.remedy = "do this"}, &o, &err) == LS_INVALID);
    CHECK(strstr(err.text, "1 missing: \"z.extra\"") != NULL && strstr(err.text, "do this") != NULL);
    CHECK(ckpt_test_equal(vars, before)); /* nothing was read */
    CHECK_EQ_INT(o.missing, 1);
    err = (ls_err){0};
    CHECK(load(large, plain, &(ls_weights_wish){0}, &o, &err) == LS_INVALID);
    CHECK(strstr(err.text, "1 beyond the model's: \"z.extra\"") != NULL);
    err = (ls_err){0};
    REQUIRE_OK(load(small, vars, &(ls_weights_wish){.lenient = true}, &o, &err), &err);
    CHECK(tensor_equal(ls_state_find(vars, "z.extra"), ls_state_find(before, "z.extra")));
    REQUIRE_OK(load(small, vars, &(ls_weights_wish){.skip = "z.*"}, &o, &err), &err);
    CHECK_EQ_INT(o.skipped, 1);
    CHECK(load(small, vars, &(ls_weights_wish){.skip = "y.*"}, &o, &err) == LS_INVALID);
    ls_weights_outcome_release(&o);
    ls_state_destroy(vars);
    ls_state_destroy(before);
    ls_state_destroy(plain);
}

/* A pool is known by its two tensors; one alone is a stranger. */
static void pools_are_no_weights(void)
{
    static const char header[] =
        "{\"replay_a.images\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"replay_a.filled\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[24,32]},"
        "\"accumulated.replay_a.images\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[32,56]},"
        "\"accumulated.replay_a.slots\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[56,64]},"
        "\"lone.images\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[64,88]}}";
    const char *file = ckpt_test_path("pool.safetensors");
    char bytes[8 + sizeof header - 1 + 88] = {0};
    ls_state *vars = ckpt_test_vars(1, false);
    ls_weights_outcome o = {0};
    ls_weights *w = NULL;
    ls_err err = {0};

    for (int i = 0; i < 8; i++) bytes[i] = (char)((sizeof header - 1) >> (8 * i));
    memcpy(bytes + 8, header, sizeof header - 1);
    ckpt_test_put(file, bytes, sizeof bytes);
    REQUIRE_OK(ls_weights_open(&w, file, &err), &err);
    REQUIRE_OK(ls_weights_load(w, vars, &(ls_weights_wish){.lenient = true}, &o, &err), &err);
    CHECK_EQ_INT(o.extra, 1);
    CHECK_CONTAINS(o.differences.data, "1 beyond the model's: \"lone.images\"");
    ls_weights_outcome_release(&o);
    ls_weights_close(w);
    ls_state_destroy(vars);
}

static void has_the_hash_of_its_bytes(const char *file)
{
    size_t bytes;
    char *text = ckpt_test_get(file, &bytes);
    ls_weights *w = NULL;
    uint64_t hash = 0;
    ls_err err = {0};

    REQUIRE_OK(ls_weights_open(&w, file, &err), &err);
    REQUIRE_OK(ls_weights_hash(w, &hash, &err), &err);
    CHECK(hash == XXH3_64bits(text, bytes));
    CHECK_EQ_STR(ls_weights_path(w), file);
    ls_weights_close(w);
    ckpt_test_put(file, text, bytes - 1);
    CHECK(ls_weights_open(&w, file, &err) == LS_DATA && w == NULL);
    ckpt_test_put(file, text, bytes);
    ls_free(text);
}

/* Runs out of memory at every place. */
static ls_status all_of_it(void *arg, ls_err *err)
{
    ls_weights_outcome o = {0};
    ls_weights *w = NULL;
    uint64_t hash;
    ls_status st = LS_OK;

    LS_TRY(ls_weights_open(&w, ckpt_test_path("from.safetensors"), err));
    LS_TRY(ls_weights_load(w, arg, &(ls_weights_wish){.lenient = true, .skip = "*"}, &o, err));
    LS_TRY(ls_weights_load(w, arg, &(ls_weights_wish){.lenient = true}, &o, err));
    LS_TRY(ls_weights_hash(w, &hash, err));
out:
    ls_weights_outcome_release(&o);
    ls_weights_close(w);
    return st;
}

int main(void)
{
    ls_state *vars = ckpt_test_vars(1, false), *more = ckpt_test_vars(1, true);
    ls_err err = {0};

    REQUIRE_OK(ls_ckpt_save_state(ckpt_test_path("from"), vars, 1, NULL, &err), &err);
    REQUIRE_OK(ls_ckpt_export(ckpt_test_path("from"), ckpt_test_path("from.safetensors"), &err), &err);
    REQUIRE_OK(ls_ckpt_save_state(ckpt_test_path("more"), more, 1, NULL, &err), &err);
    fits(ckpt_test_path("from"));
    fits(ckpt_test_path("from.safetensors"));
    does_not_fit(ckpt_test_path("from.safetensors"), ckpt_test_path("more"));
    pools_are_no_weights();
    has_the_hash_of_its_bytes(ckpt_test_path("from.safetensors"));
    check_faults("weights", all_of_it, more);
    ls_state_destroy(vars);
    ls_state_destroy(more);
    ckpt_test_cleanup();
    return CHECK_DONE();
}
