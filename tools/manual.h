/* manual.h: what the parts of the generator of manual page and shell completion share.
 *
 * Everything comes from the tables of the program itself: commands, options, settings, models. */
#ifndef LS_TOOLS_MANUAL_H
#define LS_TOOLS_MANUAL_H

#include "cli.h"
#include "config/settings.h"

/* The experiments that ship. */
typedef struct manual {
    const char *const *experiments;
    int n_experiments;
} manual;

/* What the first word after a command is. */
typedef enum first_word { FIRST_NONE, FIRST_ACTION, FIRST_EXPERIMENT, FIRST_PATH } first_word;
first_word manual_first(const cli_command *c);
/* The actions of a command with FIRST_ACTION, separated by blanks. */
void manual_actions(const cli_command *c, char *buf, size_t size);
/* Whether the command takes the settings of a run. */
bool manual_takes_settings(const cli_command *c);

/* Called once for every key, of the run, of all models or of one. */
typedef void (*manual_visit)(void *arg, const ls_setting *s);
bool manual_settings(manual_visit visit, void *arg);
/* What a shell may offer as a value: the choices, "true false", or "". */
const char *manual_values(const ls_setting *s);

bool manual_page(const manual *m);
bool manual_bash(const manual *m);
bool manual_zsh(const manual *m);
bool manual_fish(const manual *m);

#endif
