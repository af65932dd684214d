/* test_full_disk.c: a disk without room, before the first checkpoint and in the middle of a run. */
#include <math.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "ckpt_test.h"

static void a_full_disk_keeps_the_last_good_one(void)
{
    const char *disk = ckpt_test_path("disk"), *folder = ckpt_test_path("disk/ckpt");
    char filler[600];
    ls_state *vars = ckpt_test_vars(1, false);
    ls_ckpt_writer *w = NULL;
    ls_err err = {0};
    FILE *f;

    REQUIRE(mkdir(disk, 0777) == 0);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=512k") != 0) {
        ckpt_test_cleanup();
        CHECK_SKIP("a small tmpfs cannot be mounted here (root can)");
    }
    CHECK_STATUS(ls_ckpt_writer_create(&w, folder,
                                       (ls_ckpt_keep){.last = 8, .best = 0, .larger_is_better = false},
                                       CKPT_TEST_SIZE, &err),
                 LS_IO, &err);
    CHECK_CONTAINS(err.text, "are missing");
    CHECK_CONTAINS(err.text, "make room there, keep fewer of them (train.keep=");
    err = (ls_err){0};
    REQUIRE_OK(ls_ckpt_writer_create(&w, folder,
                                     (ls_ckpt_keep){.last = 2, .best = 0, .larger_is_better = false},
                                     CKPT_TEST_SIZE, &err),
               &err);
    REQUIRE_OK(ls_ckpt_writer_submit(w, 1, vars, 0, NULL, NAN, &err), &err);
    CHECK_OK(ls_ckpt_writer_wait(w, &err), &err);

    /* Somebody else takes all that is not reserved: the next one still has its place. */
    snprintf(filler, sizeof filler, "%s/filler", disk);
    f = fopen(filler, "wb");
    REQUIRE(f != NULL);
    setvbuf(f, NULL, _IONBF, 0);
    while (fputc(0, f) != EOF) {
    }
    REQUIRE_OK(ls_ckpt_writer_submit(w, 2, vars, 0, NULL, NAN, &err), &err);
    CHECK_OK(ls_ckpt_writer_wait(w, &err), &err);
    ckpt_test_link_is(ckpt_test_path("disk/ckpt"), "last", "step-00000002");

    /* And then also what the writer reserves. */
    clearerr(f);
    unlink(ckpt_test_path("disk/ckpt/.reserve"));
    while (fputc(0, f) != EOF) {
    }
    ls_log_set_level(LS_LOG_ERROR);
    REQUIRE_OK(ls_ckpt_writer_submit(w, 3, vars, 0, NULL, NAN, &err), &err);
    CHECK_STATUS(ls_ckpt_writer_wait(w, &err), LS_IO, &err);
    ls_log_set_level(LS_LOG_WARN);
    CHECK_CONTAINS(err.text, "are missing");
    ckpt_test_link_is(ckpt_test_path("disk/ckpt"), "last", "step-00000002");
    ckpt_test_whole(ckpt_test_path("disk/ckpt"), "last");
    CHECK_EQ_INT(ls_ckpt_writer_stats_of(w).failed, 1);

    /* Space comes back, and so do checkpoints. */
    fclose(f);
    unlink(filler);
    err = (ls_err){0};
    REQUIRE_OK(ls_ckpt_writer_submit(w, 4, vars, 0, NULL, NAN, &err), &err);
    CHECK_OK(ls_ckpt_writer_wait(w, &err), &err);
    ls_ckpt_writer_destroy(w);
    ckpt_test_link_is(ckpt_test_path("disk/ckpt"), "last", "step-00000004");
    CHECK_EQ_INT(ckpt_test_entries(ckpt_test_path("disk/ckpt")), 3);
    CHECK(umount(disk) == 0);
    ls_state_destroy(vars);
}

int main(void)
{
    CHECK_RUN(a_full_disk_keeps_the_last_good_one);
    ckpt_test_cleanup();
    return CHECK_DONE();
}
