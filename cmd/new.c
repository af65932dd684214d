/* new.c: `lockstep new NAME`: a folder with a model of one's own to begin with.
 *
 * The files are those of cmd/skeleton, which the build turns into texts (skeleton.h), with the name put in.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/program.h"
#include "base/text.h"
#include "cli.h"
#include "skeleton.h"

enum { NAME_LONGEST = 64 };

static const struct {
    const char *name; /* @NAME@ is the model's */
    const char *text, *about;
} files[] = {
    {"@NAME@.c", skeleton_trial_c, "the model"},
    {"@NAME@.yaml", skeleton_experiment_yaml, "the experiment that trains it"},
    {"Makefile", skeleton_Makefile, "builds the plug-in"},
    {"README.md", skeleton_README_md, "how to build and train it"},
};

#define N_FILES (sizeof files / sizeof files[0])

/* Adds `text` with what stands between two @ replaced. */
static void fill_in(ls_text *out, const char *text, const char *name, const char *program)
{
    while (*text != '\0') {
        const size_t plain = strcspn(text, "@");
        ls_text_add(out, "%.*s", (int)plain, text);
        text += plain;
        if (strncmp(text, "@NAME@", 6) == 0) {
            ls_text_add(out, "%s", name);
            text += 6;
        } else if (strncmp(text, "@PROGRAM@", 9) == 0) {
            ls_text_add(out, "%s", program);
            text += 9;
        } else if (*text != '\0') {
            ls_text_add(out, "%c", *text++);
        }
    }
}

/* The name is that of files, of a target of make, and of run directories. */
static ls_status check_name(const char *name, ls_err *err)
{
    const ls_trial *known;

    if (name[0] < 'a' || name[0] > 'z' || strlen(name) > NAME_LONGEST ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_")] != '\0')
        return ls_fail(
            err, LS_INVALID,
            "\"%.100s\" cannot be the name of a model; use a small letter, then up to %d of a-z, 0-9, - "
            "and _",
            name, NAME_LONGEST - 1);
    if (ls_experiment_trial(&known, name, NULL) == LS_OK)
        return ls_fail(err, LS_INVALID,
                       "\"%s\" is a model that comes with Lockstep (%s); choose another name", name,
                       known->name);
    return LS_OK;
}

/* DIR/FILE of file i. */
static ls_status path_of(size_t i, const char *dir, const char *name, char path[PATH_MAX], ls_err *err)
{
    ls_text file = {0};
    ls_status st = LS_OK;

    fill_in(&file, files[i].name, name, "");
    if (file.failed)
        st = ls_fail(err, LS_NOMEM, "no memory");
    else if (snprintf(path, PATH_MAX, "%s/%s", dir, file.data) >= PATH_MAX)
        st = ls_fail(err, LS_INVALID, "%.100s...: the path is too long", dir);
    ls_text_release(&file);
    return st;
}

/* Nothing is written where one of the files is there already. */
static ls_status check_free(const char *dir, const char *name, ls_err *err)
{
    char path[PATH_MAX];
    ls_status st = LS_OK;

    for (size_t i = 0; i < N_FILES; i++) {
        LS_TRY(path_of(i, dir, name, path, err));
        if (access(path, F_OK) != 0) continue;
        st = ls_fail(err, LS_INVALID, "%s is there already; choose another name or --dir", path);
        goto out;
    }
out:
    return st;
}

/* Where there can be no folder, the command line is to blame. */
static ls_status make_folder(const char *dir, ls_err *err)
{
    struct stat info;
    ls_err why = {0};

    if (ls_folders_make(dir, &why) != LS_OK) return ls_fail(err, LS_INVALID, "%s", why.text);
    if (stat(dir, &info) == 0 && S_ISDIR(info.st_mode)) return LS_OK;
    return ls_fail(err, LS_INVALID, "%s is no folder", dir);
}

static ls_status write_file(size_t i, const char *dir, const char *name, ls_err *err)
{
    char path[PATH_MAX], program[PATH_MAX];
    ls_text text = {0};
    FILE *f = NULL;
    ls_status st = LS_OK;

    LS_TRY(path_of(i, dir, name, path, err));
    (void)ls_program_path(program, sizeof program);
    fill_in(&text, files[i].text, name, program);
    /* Exclusively: somebody else may have come in between. */
    f = text.failed ? NULL : fopen(path, "wx");
    if (f == NULL || fwrite(text.data, 1, text.length, f) != text.length)
        st = ls_fail(err, LS_IO, "%s: %s", path, strerror(errno));
out:
    if (f != NULL && fclose(f) != 0 && st == LS_OK) st = ls_fail(err, LS_IO, "%s: %s", path, strerror(errno));
    ls_text_release(&text);
    return st;
}

static void print_json(const char *dir, const char *name)
{
    json_t *list = json_array();

    for (size_t i = 0; i < N_FILES; i++) {
        ls_text file = {0};
        fill_in(&file, files[i].name, name, "");
        json_array_append_new(list, json_string(file.data));
        ls_text_release(&file);
    }
    cli_print_json_take(
        json_pack("{s:s, s:s, s:s, s:o}", "event", "new", "name", name, "path", dir, "files", list));
}

static void print_text(const char *dir, const char *name)
{
    char word[PATH_MAX];

    for (size_t i = 0; i < N_FILES; i++) {
        ls_text file = {0};
        fill_in(&file, files[i].name, name, "");
        printf("%s/%-*s %s\n", dir, NAME_LONGEST / 4 + 4, file.data, files[i].about);
        ls_text_release(&file);
    }
    printf("\nNext: cd %s%s && make && lockstep train %s.yaml\n", dir[0] == '-' ? "./" : "",
           ls_text_quoted(dir, word, sizeof word), name);
}

int cli_new(const cli_args *args)
{
    const char *name = args->model, *dir = args->dir != NULL ? args->dir : name;
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(check_name(name, &err));
    LS_TRY(check_free(dir, name, &err));
    LS_TRY(make_folder(dir, &err));
    for (size_t i = 0; i < N_FILES; i++) LS_TRY(write_file(i, dir, name, &err));
    if (args->json)
        print_json(dir, name);
    else
        print_text(dir, name);
out:
    return st == LS_OK ? CLI_DONE : cli_fail("new", &err);
}
