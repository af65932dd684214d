/* test_memory.c: every allocation of writing and reading a checkpoint fails once. */
#include <math.h>

#include "base/log.h"
#include "ckpt_test.h"
#include "faults.h"

static ls_status save_and_load(void *arg, ls_err *err)
{
    const char *dir = ckpt_test_path("save");
    ls_ckpt *c = NULL;
    ls_status st = LS_OK;
    int bad;

    LS_TRY(ls_ckpt_save_state(dir, arg, 1, NULL, err));
    LS_TRY(ls_ckpt_verify(dir, &bad, NULL, NULL, err));
    LS_TRY(ls_ckpt_open(&c, dir, err));
    LS_TRY(ls_ckpt_load_state(c, arg, err));
out:
    ls_ckpt_close(c);
    return st;
}

static ls_status convert(void *arg, ls_err *err)
{
    const char *dir = ckpt_test_path("from"), *file = ckpt_test_path("plain.safetensors");
    const char *back = ckpt_test_path("back");
    ls_status st = LS_OK;

    LS_TRY(ls_ckpt_save_state(dir, arg, 1, NULL, err));
    LS_TRY(ls_ckpt_export(dir, file, err));
    LS_TRY(ls_ckpt_import(file, back, NULL, err));
out:
    lsi_io_remove(back);
    return st;
}

static ls_status write_beside(void *arg, ls_err *err)
{
    ls_ckpt_writer *w = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_ckpt_writer_create(&w, ckpt_test_path("folder"),
                                 (ls_ckpt_keep){.last = 1, .best = 1, .larger_is_better = false},
                                 CKPT_TEST_SIZE, err));
    LS_TRY(ls_ckpt_writer_submit(w, 1, arg, 1, NULL, 0.5, err));
    LS_TRY(ls_ckpt_writer_wait(w, err));
out:
    ls_ckpt_writer_destroy(w);
    return st;
}

int main(void)
{
    ls_state *vars = ckpt_test_vars(1, false);

    ls_log_set_level(LS_LOG_ERROR); /* failed writes warn */
    check_faults("save and load", save_and_load, vars);
    check_faults("convert", convert, vars);
    check_faults("write beside", write_beside, vars);
    ls_state_destroy(vars);
    ckpt_test_cleanup();
    return CHECK_DONE();
}
