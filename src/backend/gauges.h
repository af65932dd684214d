/* gauges.h: what a device shows of itself while it works: load, memory, power, temperature; and what it can
 * do at most.
 *
 * Of a GPU that is what NVIDIA's management library says (nvml.h), whoever uses the GPU. */
#ifndef LS_BACKEND_GAUGES_H
#define LS_BACKEND_GAUGES_H

enum { LS_GAUGES_MOST = 32 }; /* devices of a machine that are looked at */

/* One look at one device; NaN for what it does not say. */
typedef struct ls_gauge {
    int device;          /* its number among those that may be used */
    double utilization;  /* share of the last moment (up to a second) in which it computed, 0 to 1 */
    double memory_bytes; /* in use, of all programs together */
    double memory_of;    /* bytes that there are */
    double power_w;
    double temperature_c;
} ls_gauge;

/* What a device can do at most, measured. */
typedef struct ls_yardstick {
    double flop_s;   /* operations per second in a large matrix product */
    double copy_b_s; /* bytes per second copied within its memory, each read and written: counted twice */
    int devices;     /* that ranks of this machine may have, each as fast */
    char what[32];   /* which products: "bf16 products" */
} ls_yardstick;

#endif
