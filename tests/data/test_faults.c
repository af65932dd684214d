/* Memory runs out at every allocation of the data layer in turn. */
#include "check.h"
#include "data/loader.h"
#include "data_files.h"
#include "faults.h"

static ls_status load(void *arg, ls_err *err)
{
    const ls_data_source *src = arg;
    ls_status st = LS_OK;
    ls_dataset *d = NULL;
    ls_loader *l = NULL;
    ls_batch b;

    LS_TRY(ls_dataset_open(&d, src, err));
    LS_TRY(ls_loader_create(&l, d, &(ls_loader_options){.batch = 4, .n_workers = 2, .depth = 2}, err));
    for (int i = 0; i < 5; i++) LS_TRY(ls_loader_next(l, &b, err));
out:
    ls_loader_destroy(l);
    ls_dataset_close(d);
    return st;
}

static void idx(void)
{
    data_write_idx("train", 10, 4, 4, false);
    check_faults("idx", load, &(ls_data_source){.kind = "idx", .path = data_folder()});
}

static void idx_gzip(void)
{
    data_write_idx("t10k", 10, 4, 4, true);
    check_faults("idx.gz", load, &(ls_data_source){.kind = "idx", .path = data_folder(), .images = "test"});
}

static void synthetic(void)
{
    check_faults("synthetic", load, &(ls_data_source){.kind = "synthetic", .count = 10});
}

int main(void)
{
    CHECK_RUN(idx);
    CHECK_RUN(idx_gzip);
    CHECK_RUN(synthetic);
    data_clean();
    return CHECK_DONE();
}
