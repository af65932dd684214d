/* make_hdf5.c: synthetic samples as HDF5 files: images, and clouds of points along a chain. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hdf5_internal.h"
#include "make_internal.h"

/* -- images -----------------------------------------------------------------------------------------------
 */

/* Reading a synthetic set does not fail. */
static void image_sample(void *arg, int64_t i, void *out)
{
    const lsi_make_part *p = arg;
    const ls_status st = lsi_make_load(p, p->first + i, out, NULL, NULL);

    LS_BUG_IF(st != LS_OK);
}

static void label_sample(void *arg, int64_t i, void *out)
{
    const lsi_make_part *p = arg;
    int32_t label = 0;
    const ls_status st = lsi_make_load(p, p->first + i, NULL, &label, NULL);

    LS_BUG_IF(st != LS_OK);
    *(uint8_t *)out = (uint8_t)label;
}

/* -- clouds -----------------------------------------------------------------------------------------------
 */

/* A class is a coil: its radius and its number of windings.  The noise is small beside both. */
static void cloud_sample(void *arg, int64_t i, void *out)
{
    const lsi_make_part *p = arg;
    const int64_t n = p->options->points;
    const ls_rng_key key = {.seed_lo = (uint32_t)p->options->seed,
                            .seed_hi = (uint32_t)(p->options->seed >> 32)};
    const uint32_t stream = ls_rng_stream("make.cloud");
    float *x = out;
    uint8_t class;

    label_sample(arg, i, &class);
    for (int64_t k = 0; k < n; k++) {
        const double along = (double)k / (double)n, angle = 6.2831853071795862 * (3 + class) * along;
        const double at[3] = {(10 + class) * cos(angle), (10 + class) * sin(angle), 40 * along - 20};
        for (int c = 0; c < 3; c++) {
            float noise =
                ls_rng_uniform(ls_rng_word(&key, stream, (uint32_t)(p->first + i), (uint64_t)(3 * k + c)));
            x[c * n + k] = (float)at[c] + noise - 0.5f;
        }
    }
}

/* -- files ------------------------------------------------------------------------------------------------
 */

ls_status lsi_make_hdf5(const lsi_make_part *p, ls_err *err)
{
    const ls_data_make_options *o = p->options;
    const int64_t n = p->end - p->first, *dim = o->shape.dim;
    const bool cloud = o->points > 0;
    char path[4096];
    int64_t image_chunk[] = {1, dim[0], dim[1], dim[2]}, cloud_chunk[] = {1, 3, o->points};
    lsi_h5_content contents[] = {{.name = "images",
                                  .element = H5_U1,
                                  .shape = LS_SHAPE(n, dim[0], dim[1], dim[2]),
                                  .chunk = o->gzip ? image_chunk : NULL,
                                  .deflate = o->gzip ? 6 : 0,
                                  .sample = image_sample,
                                  .arg = (void *)(uintptr_t)p},
                                 {.name = "labels",
                                  .element = H5_U1,
                                  .shape = LS_SHAPE(n),
                                  .sample = label_sample,
                                  .arg = (void *)(uintptr_t)p}};

    /* As published sets of clouds are stored: a chunk for each, with a checksum. */
    if (cloud)
        contents[0] = (lsi_h5_content){.name = "point_cloud",
                                       .element = H5_F4,
                                       .shape = LS_SHAPE(n, 3, o->points),
                                       .chunk = cloud_chunk,
                                       .deflate = o->gzip ? 6 : 0,
                                       .shuffle = o->gzip,
                                       .fletcher32 = true,
                                       .sample = cloud_sample,
                                       .arg = (void *)(uintptr_t)p};
    snprintf(path, sizeof path, "%s/%s.h5", o->path, p->test ? "test" : "train");
    return lsi_h5_write(path, contents, 2, err);
}
