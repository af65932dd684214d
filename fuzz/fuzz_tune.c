/* fuzz_tune.c: arbitrary bytes as the file of remembered kernel choices. */
#include <stdlib.h>

#include "backend/tune.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lsi_tuner *t;

    setenv("LOCKSTEP_TUNE", "off", 1); /* no file is read or written */
    if (lsi_tuner_create(&t, "cpu-1", "fuzz", NULL) != LS_OK) abort();
    lsi_tuner_parse(t, (const char *)data, size);
    lsi_tuner_destroy(t);
    return 0;
}
