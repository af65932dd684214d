/* Memory runs out at every allocation of the data layer in turn. */
#include <stdio.h>
#include <unistd.h>

#include "check.h"
#include "data/loader.h"
#include "data/make.h"
#include "data_files.h"
#include "faults.h"
#include "hdf5_files.h"
#include "image_files.h"

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

static void npy(void)
{
    const unsigned char bytes[10] = {1, 2, 3};

    data_write_npy("x.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (5, 2), }", bytes, 10);
    data_write_npy("y.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }", bytes, 5);
    check_faults(
        "npy", load,
        &(ls_data_source){.kind = "npy", .path = data_folder(), .images = "x.npy", .labels = "y.npy"});
}

static void cifar(void)
{
    static unsigned char record[2 * 3073];

    data_write("data_batch_1.bin", record, sizeof record, false);
    check_faults("cifar", load, &(ls_data_source){.kind = "cifar", .path = data_folder()});
    check_faults("a split", load, &(ls_data_source){.kind = "cifar", .path = data_folder(), .split = 0.5});
}

static void hdf5(void)
{
    static const int64_t chunk[] = {3, 2, 4};
    lsi_h5_content c[] = {{.name = "point_cloud",
                           .element = H5_F8,
                           .shape = LS_SHAPE(10, 3, 4),
                           .chunk = chunk,
                           .deflate = 1,
                           .sample = hdf5_sample},
                          {.name = "labels", .element = H5_U1, .shape = LS_SHAPE(10), .sample = hdf5_label}};

    c[0].arg = &c[0];
    c[1].arg = &c[1];
#ifdef LS_HAVE_HDF5
    hdf5_write("train.h5", c, 2);
    check_faults("hdf5", load,
                 &(ls_data_source){
                     .kind = "hdf5", .path = data_folder(), .field = "cloud", .points = 2, .box = "auto"});
#endif
}

/* libjpeg takes its memory by itself; libpng asks us. */
static void images(void)
{
    for (int png = 0; png < 2; png++) {
        ls_data_make_options o = {
            .kind = "images", .train = 6, .test = 1, .classes = 2, .png = png, .shape = LS_SHAPE(3, 8, 12)};
        check_faults(png ? "png" : "jpeg", load,
                     &(ls_data_source){
                         .kind = "images", .path = image_folder(&o), .transform = {.resize = 10, .crop = 6}});
    }
}

/* Files are never overwritten: each try gets rid of what the one before has written. */
static ls_status make(void *arg, ls_err *err)
{
    char path[1024], file[1200];
    const char *const names[] = {"data_batch_1.bin", "test_batch.bin"};

    (void)arg;
    snprintf(path, sizeof path, "%s/made", data_folder());
    ls_status st =
        ls_data_make(&(ls_data_make_options){.kind = "cifar", .path = path, .train = 2, .test = 1}, err);
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        unlink(file);
    }
    rmdir(path);
    return st;
}

static void made(void)
{
    check_faults("make", make, NULL);
}

int main(void)
{
    CHECK_RUN(idx);
    CHECK_RUN(idx_gzip);
    CHECK_RUN(synthetic);
    CHECK_RUN(npy);
    CHECK_RUN(cifar);
    CHECK_RUN(hdf5);
    CHECK_RUN(images);
    CHECK_RUN(made);
    data_clean();
    image_clean();
    return CHECK_DONE();
}
