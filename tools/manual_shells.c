/* manual_shells.c: completion for bash, zsh and fish. */
#include <stdio.h>
#include <string.h>

#include "manual.h"

/* -- lists that all shells need ---------------------------------------------------------------------------
 */

static void put_experiments(const manual *m, const char *between)
{
    for (int i = 0; i < m->n_experiments; i++) printf("%s%s", i > 0 ? between : "", m->experiments[i]);
    for (int i = 0; ls_trials[i] != NULL; i++) {
        bool twice = false;
        for (int k = 0; k < m->n_experiments; k++)
            twice = twice || strcmp(m->experiments[k], ls_trials[i]->name) == 0;
        if (!twice) printf("%s%s", between, ls_trials[i]->name);
    }
}

static void put_options(const cli_command *c)
{
    cli_option o;

    for (int i = 0; cli_option_at(i, &o); i++) {
        if (!(o.commands & c->bit)) continue;
        printf(" %s", o.name);
        if (o.alias != NULL) printf(" %s", o.alias);
    }
}

static void put_key(void *arg, const ls_setting *s)
{
    printf("%s%s=", (const char *)arg, s->key);
}

/* -- bash -------------------------------------------------------------------------------------------------
 */

static void bash_values(void *arg, const ls_setting *s)
{
    (void)arg;
    if (manual_values(s)[0] != '\0') printf("    %s) echo \"%s\" ;;\n", s->key, manual_values(s));
}

static void bash_commands(void)
{
    printf("_lockstep_options() {\n    case $1 in\n");
    for (const cli_command *c = cli_commands; c->name != NULL; c++) {
        printf("    %s) echo \"", c->name);
        put_options(c);
        printf("\" ;;\n");
    }
    printf("    esac\n}\n\n_lockstep_first() {\n    case $1 in\n");
    for (const cli_command *c = cli_commands; c->name != NULL; c++) {
        char actions[256];
        if (manual_first(c) == FIRST_EXPERIMENT) printf("    %s) _lockstep_experiments ;;\n", c->name);
        if (manual_first(c) != FIRST_ACTION) continue;
        manual_actions(c, actions, sizeof actions);
        printf("    %s) echo \"%s\" ;;\n", c->name, actions);
    }
    printf("    esac\n}\n\n_lockstep_takes_experiment() {\n    case $1 in\n");
    for (const cli_command *c = cli_commands; c->name != NULL; c++)
        if (manual_first(c) == FIRST_EXPERIMENT) printf("    %s) return 0 ;;\n", c->name);
    printf("    *) return 1 ;;\n");
    printf("    esac\n}\n\n_lockstep_keys() {\n    case $1 in\n");
    for (const cli_command *c = cli_commands; c->name != NULL; c++)
        if (manual_takes_settings(c)) printf("    %s) echo \"$_lockstep_settings\" ;;\n", c->name);
    printf("    data) echo \"");
    for (int i = 0; cli_data_setting(i) != NULL; i++) printf("%s%s=", i > 0 ? " " : "", cli_data_setting(i));
    printf("\" ;;\n    esac\n}\n\n");
}

bool manual_bash(const manual *m)
{
    printf("# bash completion for lockstep; written by lockstep_manual from the tables of the program.\n\n"
           "_lockstep_settings=\"");
    if (!manual_settings(put_key, " ")) return false;
    printf("\"\n\n_lockstep_experiments() {\n"
           "    local file\n    echo ");
    put_experiments(m, " ");
    printf("\n    for file in \"${LOCKSTEP_EXPERIMENTS:-/nowhere}\"/*.yaml; do\n"
           "        [ -e \"$file\" ] && basename \"$file\" .yaml\n    done\n}\n\n");
    bash_commands();
    printf("_lockstep_values() {\n    case $1 in\n");
    if (!manual_settings(bash_values, NULL)) return false;
    printf("    esac\n}\n\n"
           "# bash breaks words at '='; the word under the cursor is taken from the line, and what stands "
           "before the\n"
           "# last '=' is left out of the answer where bash has cut it off.\n"
           "_lockstep() {\n"
           "    local line=${COMP_LINE:0:COMP_POINT} cur command list key word positional=0\n"
           "    local -a words\n"
           "    cur=${line##*[[:space:]]}\n"
           "    read -ra words <<<\"${line%%\"$cur\"}\"\n"
           "    COMPREPLY=()\n"
           "    if [ ${#words[@]} -le 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"");
    for (const cli_command *c = cli_commands; c->name != NULL; c++) printf("%s ", c->name);
    printf(
        "--help --version\" -- \"$cur\"))\n"
        "        return\n"
        "    fi\n"
        "    command=${words[1]}\n"
        "    for word in \"${words[@]:2}\"; do\n"
        "        case $word in -* | *=*) ;; *) positional=$((positional + 1)) ;; esac\n"
        "    done\n"
        "    case $cur in\n"
        "    -*) list=$(_lockstep_options \"$command\") ;;\n"
        "    *=*)\n"
        "        key=${cur%%%%=*}\n"
        "        list=$(_lockstep_values \"$key\")\n"
        "        COMPREPLY=($(compgen -W \"$list\" -- \"${cur#*=}\"))\n"
        "        case $COMP_WORDBREAKS in *=*) ;; *) COMPREPLY=(\"${COMPREPLY[@]/#/$key=}\") ;; esac\n"
        "        [ -n \"$list\" ] || COMPREPLY=($(compgen -f -- \"${cur#*=}\"))\n"
        "        return\n"
        "        ;;\n"
        "    *)\n"
        "        list=$(_lockstep_first \"$command\")\n"
        "        if [ $positional -eq 0 ] && [ -n \"$list\" ]; then\n"
        "            COMPREPLY=($(compgen -W \"$list\" -- \"$cur\"))\n"
        "            _lockstep_takes_experiment \"$command\" && COMPREPLY+=($(compgen -f -X "
        "'!*.y*ml' -- \"$cur\") $(compgen -f -X '!*.so' -- \"$cur\"))\n"
        "            return\n"
        "        fi\n"
        "        if [ \"$command\" = runs ]; then # a list of words would be expanded, and names be obeyed\n"
        "            COMPREPLY=($(compgen -W last -- \"$cur\") $(cd runs 2>/dev/null && compgen -d -- "
        "\"$cur\"))\n"
        "            [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$cur\"))\n"
        "            return\n"
        "        fi\n"
        "        list=$(_lockstep_keys \"$command\")\n"
        "        [ -z \"$list\" ] || [ $positional -eq 0 ] || compopt -o nospace 2>/dev/null\n"
        "        ;;\n"
        "    esac\n"
        "    COMPREPLY=($(compgen -W \"$list\" -- \"$cur\"))\n"
        "    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$cur\"))\n"
        "}\n\n"
        "complete -F _lockstep lockstep\n");
    return true;
}

/* -- zsh --------------------------------------------------------------------------------------------------
 */

/* Inside single quotes, where a colon parts a word from its description. */
static void zsh_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (*text == ':')
            fputs("\\:", stdout);
        else
            putchar(*text);
    }
}

static void zsh_key(void *arg, const ls_setting *s)
{
    (void)arg;
    printf("    '%s=:", s->key);
    zsh_text(s->help);
    printf("'\n");
}

static void zsh_command(const cli_command *c)
{
    const first_word first = manual_first(c);
    char actions[256];
    cli_option o;

    printf("    %s)\n        options=(\n", c->name);
    for (int i = 0; cli_option_at(i, &o); i++) {
        if (!(o.commands & c->bit)) continue;
        printf("            '%s:", o.name);
        zsh_text(o.help);
        printf("'\n");
    }
    printf("        )\n");
    if (first == FIRST_EXPERIMENT) printf("        first=($experiments)\n");
    if (first == FIRST_ACTION) {
        manual_actions(c, actions, sizeof actions);
        printf("        first=(%s)\n", actions);
    }
    if (manual_takes_settings(c)) printf("        keys=($settings)\n");
    printf("        ;;\n");
}

bool manual_zsh(const manual *m)
{
    printf(
        "#compdef lockstep\n# Written by lockstep_manual from the tables of the program.\n\n_lockstep() {\n"
        "  local -a commands options first keys settings experiments\n  commands=(\n");
    for (const cli_command *c = cli_commands; c->name != NULL; c++) {
        printf("    '%s:", c->name);
        zsh_text(c->about);
        printf("'\n");
    }
    printf("  )\n  experiments=(");
    put_experiments(m, " ");
    printf(")\n  settings=(\n");
    if (!manual_settings(zsh_key, NULL)) return false;
    printf("  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
           "  case $words[2] in\n");
    for (const cli_command *c = cli_commands; c->name != NULL; c++) zsh_command(c);
    printf("  esac\n"
           "  if [[ $PREFIX == -* ]]; then\n    _describe option options\n"
           "  elif (( CURRENT == 3 )); then\n    (( $#first )) && compadd -a first\n    _files\n"
           "  elif [[ $PREFIX != *=* ]] && (( $#keys )); then\n    _describe setting keys -S ''\n"
           "  else\n    _files\n  fi\n}\n\n_lockstep \"$@\"\n");
    return true;
}

/* -- fish -------------------------------------------------------------------------------------------------
 */

static void fish_text(const char *text)
{
    putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void fish_key(void *arg, const ls_setting *s)
{
    printf("complete -c lockstep -n '__fish_seen_subcommand_from%s' -a '%s=' -d ", (const char *)arg, s->key);
    fish_text(s->help);
    printf("\n");
}

static void fish_command(const manual *m, const cli_command *c)
{
    char actions[256];
    cli_option o;

    printf("complete -c lockstep -n __fish_use_subcommand -f -a %s -d ", c->name);
    fish_text(c->about);
    printf("\n");
    for (int i = 0; cli_option_at(i, &o); i++) {
        if (!(o.commands & c->bit)) continue;
        printf("complete -c lockstep -n '__fish_seen_subcommand_from %s' -l %s", c->name, o.name + 2);
        if (o.alias != NULL) printf(" -s %s", o.alias + 1);
        if (o.arg != NULL && !o.maybe) printf(" -r");
        printf(" -d ");
        fish_text(o.help);
        printf("\n");
    }
    if (manual_first(c) == FIRST_PATH || manual_first(c) == FIRST_NONE) return;
    manual_actions(c, actions, sizeof actions);
    printf("complete -c lockstep -n '__fish_seen_subcommand_from %s' -a '", c->name);
    if (manual_first(c) == FIRST_EXPERIMENT)
        put_experiments(m, " ");
    else
        printf("%s", actions);
    printf("'\n");
}

bool manual_fish(const manual *m)
{
    char with_settings[512] = "";

    printf("# fish completion for lockstep; written by lockstep_manual from the tables of the program.\n");
    for (const cli_command *c = cli_commands; c->name != NULL; c++) {
        size_t n = strlen(with_settings);
        fish_command(m, c);
        if (manual_takes_settings(c)) snprintf(with_settings + n, sizeof with_settings - n, " %s", c->name);
    }
    return manual_settings(fish_key, with_settings);
}
