/* nn_train.h: trains trials on both devices and compares what they report. */
#ifndef LS_TESTS_NN_NN_TRAIN_H
#define LS_TESTS_NN_NN_TRAIN_H

#include <stddef.h>

typedef struct nn_train_case {
    const char *trial;
    const char *settings[4]; /* ended by NULL */
    double tolerance;        /* relative: fp32 against double, through two updates */
} nn_train_case;

/* Two steps of each on "ref" and "cpu" from the same start: all metrics are finite and agree. */
void nn_devices_agree(const nn_train_case *cases, size_t n);

#endif
