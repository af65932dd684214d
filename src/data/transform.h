/* transform.h: what is done to an image between its file and the model, in this order:
 *
 *   resize    the shorter side becomes `resize` pixels, the longer one follows, rounded down; bicubic with
 * the filter widened when the image shrinks, in the same arithmetic as Pillow, so that pixels are equal to
 * those of torchvision.transforms.Resize on a PIL image pad       `pad` black pixels on all four sides crop
 * a square of `crop` pixels: at a random place in training, from the middle otherwise flip      left and
 * right exchanged with probability 1/2 in training, never otherwise normalise bytes to floats, channel by
 * channel (ls_data_source.normalise)
 *
 * Random choices are a function of the key that ls_dataset_read is given and of the field, so that a sample
 * looks the same in a given epoch for any number of workers and ranks, and after a resume. */
#ifndef LS_DATA_TRANSFORM_H
#define LS_DATA_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>

/* The zero value changes nothing. */
typedef struct ls_transform {
    int64_t resize, pad, crop; /* in pixels; 0: none */
    bool flip;
} ls_transform;

#endif
