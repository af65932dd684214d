/* fuzz_setting.c: arbitrary text as a key=value setting of a model. */
#include <stdlib.h>
#include <string.h>

#include "lockstep/trial.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ls_trial *trial;
    ls_config *cfg;
    ls_err err = {0};
    char *text = malloc(size + 1);

    if (text == NULL || ls_trial_find(&trial, "resnet18", &err) != LS_OK ||
        ls_config_create(&cfg, trial, &err) != LS_OK)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    /* Whatever is accepted must be inside the setting's range. */
    if (ls_config_set(cfg, text, &err) == LS_OK) {
        for (int i = 0; i < ls_config_count(cfg); i++) {
            ls_setting s = ls_config_at(cfg, i);
            if (s.choices == NULL && !(s.value >= s.lo && s.value <= s.hi)) abort();
        }
    } else if (err.text[0] == '\0') {
        abort(); /* a refusal says why */
    }
    ls_config_destroy(cfg);
    free(text);
    return 0;
}
