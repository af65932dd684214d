/* fuzz_run_settings.c: arbitrary bytes as the config.yaml of two runs, cut in the middle. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runs/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const size_t half = size / 2;
    ls_run_settings runs[2] = {{0}};
    ls_run_keys keys = {0};
    ls_err err = {0};

    if (ls_run_settings_parse(&runs[0], text, half, &err) == LS_OK &&
        ls_run_settings_parse(&runs[1], text + half, size - half, &err) == LS_OK &&
        ls_run_keys_of(&keys, runs, 2, &err) == LS_OK) {
        for (int i = 0; i < keys.n; i++) {
            const char *a = ls_run_setting_value(&runs[0], keys.keys[i], i);
            const char *b = ls_run_setting_value(&runs[1], keys.keys[i], i);
            if (a == NULL && b == NULL) abort(); /* a key is somebody's */
            if (keys.differs[i] != (a == NULL || b == NULL || strcmp(a, b) != 0)) abort();
        }
    } else if (err.text[0] == '\0') {
        abort(); /* a refusal says why */
    }
    ls_run_keys_release(&keys);
    ls_run_settings_release(&runs[0]);
    ls_run_settings_release(&runs[1]);
    return 0;
}
