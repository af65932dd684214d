/* machine_presets.c: machines that come with the program.
 *
 * Each is a file of the format in machines/, which the build makes a text; its "source" says where peaks and
 * rates of ops are from. */
#include <string.h>

#include "machines.h"
#include "predict/machine_internal.h"

typedef struct preset {
    const char *name, *about, *text;
} preset;

static const preset presets[] = {
    {"v100", "one NVIDIA V100 (SXM2, 16 GB), as Longhorn of TACC has four a machine", machines_v100_json},
    {"t4", "one NVIDIA T4", machines_t4_json},
    {"m60", "one of the two GPUs of an NVIDIA M60", machines_m60_json},
    {"h200", "one NVIDIA H200", machines_h200_json},
    {"knl", "one node of Theta (ALCF): Xeon Phi 7230, one rank of 64 threads", machines_knl_json},
    {"edison", "one node of Edison (NERSC): two Xeon E5-2695 v2, one rank of 24 threads",
     machines_edison_json},
    {NULL, NULL, NULL},
};

const char *ls_machine_preset(int i, const char **about)
{
    if (about != NULL) *about = presets[i].about;
    return presets[i].name;
}

const char *lsi_machine_preset_text(const char *name)
{
    for (int i = 0; presets[i].name != NULL; i++)
        if (strcmp(presets[i].name, name) == 0) return presets[i].text;
    return NULL;
}
