/* Denormal numbers are zero on the thread that has opened a device, on all threads of its regions, whether
 * these were there before or not, and on those it starts; a moment that decays ends. */
#include <pthread.h>
#include <stdatomic.h>

#include "backend/backend.h"
#include "base/denormals.h"
#include "base/parallel.h"
#include "check.h"

enum { THREADS = 3 };

/* 2^-127, half of the least float that is not denormal; the compiler is not to know. */
static bool has_denormals(void)
{
    volatile float least = 0x1p-126f, half = 0.5f;
    volatile float result = least * half, given = 0x1p-130f, large = 0x1p20f;

    return result > 0 || given * large > 0;
}

static void look(int thread, int n_threads, void *arg)
{
    (void)thread;
    (void)n_threads;
    if (has_denormals()) atomic_fetch_add((atomic_int *)arg, 1);
}

static int threads_with_denormals(void)
{
    atomic_int n = 0;

    ls_parallel_run(THREADS, look, &n);
    return atomic_load(&n);
}

static void *look_there(void *arg)
{
    *(bool *)arg = has_denormals();
    return NULL;
}

static bool a_new_thread_has_them(void)
{
    pthread_t thread;
    bool has = false;

    CHECK(pthread_create(&thread, NULL, look_there, &has) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return has;
}

/* Adam's first moment where the gradient is zero. */
static float decayed(int steps)
{
    volatile float m = 1e-3f;

    for (int i = 0; i < steps; i++) m = 0.9f * m;
    return m;
}

static void a_device_flushes(const char *name)
{
    const unsigned long before = ls_denormals_mode();
    ls_device *dev;
    ls_err err = {0};

    CHECK_EQ_INT(threads_with_denormals(), THREADS); /* these threads are there when the device is opened */
    CHECK(a_new_thread_has_them());
    CHECK(decayed(5000) > 0);
    CHECK_OK(ls_device_open(&dev, name, THREADS, &err), &err);
    CHECK(!has_denormals());
    CHECK_EQ_INT(threads_with_denormals(), 0);
    CHECK(!a_new_thread_has_them());
    CHECK(decayed(5000) == 0);
    ls_device_close(dev);
    ls_denormals_take(before);
    CHECK_EQ_INT(threads_with_denormals(), THREADS);
}

static void on_cpu(void)
{
    a_device_flushes("cpu");
}

static void on_ref(void)
{
    a_device_flushes("ref");
}

static void on_far(void)
{
    a_device_flushes("far");
}

int main(void)
{
#if !defined(__x86_64__) && !defined(__aarch64__)
    CHECK_SKIP("this processor computes with denormal numbers");
#endif
    CHECK_RUN(on_cpu);
    CHECK_RUN(on_ref);
    CHECK_RUN(on_far);
    return CHECK_DONE();
}
