#!/usr/bin/env bash
# What `lockstep new` and the loading of plug-ins refuse: exit code 2, one message that names the thing, nothing created.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
if ! command -v cc >/dev/null; then
    echo "skipped: no C compiler"
    exit 77
fi
cd "$work" || exit 1
mkdir empty

# --- names and folders ----------------------------------------------------------------------------------------------
# new_refused PART ARGUMENT...: nothing is made in an empty folder, and the message says PART
new_refused() {
    local part=$1
    shift
    n=$((n + 1))
    (cd empty && "$LOCKSTEP" new "$@") >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] || fail "new $*: not exit code 2: $(cat "$work/err")"
    says err "$part"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "new $*: not one message: $(cat "$work/err")"
    [ -z "$(ls -A empty)" ] || fail "new $*: a refusal left $(ls -A empty)"
}
new_refused 'lockstep new NAME'
for name in '' Blobs 1st -x.y ../up a/b 'a b' a.so 'ä' "$(printf 'x%.0s' $(seq 65))"; do
    [ "${name:0:1}" = - ] || new_refused 'cannot be the name of a model' "$name"
done
for name in mnist resnet18-cifar resnet18_cifar mnist_net_p; do
    new_refused 'is a model that comes with Lockstep' "$name"
done
new_refused 'one word too many' blobs more
new_refused 'one word too many' blobs model.width=3
new_refused 'did you mean "--dir"' blobs --dri x
new_refused 'the folder cannot be made' blobs --dir /dev/null/b
run 0 new blobs
cp blobs/blobs.c before.c
run 2 new blobs
says err 'blobs/blobs.c is there already'
rm blobs/blobs.c
run 2 new blobs
says err 'blobs/blobs.yaml is there already'
[ ! -e blobs/blobs.c ] || fail "a refused new wrote a part of its files"
mkdir given && run 0 new blobs --dir given # an empty folder is welcome
run 0 new blobs --dir deep/er
touch file && run 2 new blobs --dir file
says err 'file is no folder'
run 0 new --help
says out '--dir DIR'

# --- files that are no plug-ins ----------------------------------------------------------------------------------------
read -ra headers < <("$LOCKSTEP" info --cflags)
# code NAME: makes NAME.so of the C on standard input, after what every plug-in needs
code() {
    { echo '#include <lockstep/trial.h>' && cat; } >"$1.c"
    cc -std=c17 -shared -fPIC "${headers[@]}" -o "$1.so" "$1.c" 2>"$work/cc" || fail "$1.c does not compile: $(head -3 "$work/cc")"
}
# refused PART FILE: as model.trial in a file, and alone
refused() {
    printf 'model:\n  trial: %s\n' "$2" >e.yaml
    run 2 train e.yaml --quiet
    says err "$1"
    says err 'e.yaml:2:10: '
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$2: not one message: $(cat "$work/err")"
    [ ! -e runs ] || fail "$2: a refused plug-in left a run"
    run 2 plan "$2"
    says err "$1"
}
refused './none.so: there is no such file' ./none.so
refused 'none.so: there is no such file; build it (make)' none.so
mkdir folder.so
refused 'folder.so: is no file' ./folder.so
echo 'model: {trial: mnist}' >text.so
refused 'text.so: is no shared object' ./text.so
: >zero.so
refused 'zero.so: is no shared object' ./zero.so
printf '\177ELF and no more' >torn.so
refused 'torn.so: cannot be loaded: ' ./torn.so
code bare </dev/null
refused 'bare.so: is no trial: it has no lockstep_trial_plugin; end its source with LS_TRIAL_PLUGIN(trial)' bare.so
code lost <<<'ls_value ls_from_the_future(ls_value x);
static void build(ls_step *s, ls_config *c) { (void)c; ls_from_the_future(ls_constant(s, LS_SHAPE_SCALAR, 1)); }
static const ls_trial t = {.name = "t", .about = "", .batch = 1, .build = build}; LS_TRIAL_PLUGIN(t);'
refused 'undefined symbol: ls_from_the_future' lost.so
mkdir sub && printf 'model: {trial: ./none.so}\n' >sub/e.yaml
run 2 plan sub/e.yaml
says err 'sub/e.yaml:1:16: ./none.so: there is no such file in sub/ or in the working directory'

# --- other versions ------------------------------------------------------------------------------------------------------
trial='static void build(ls_step *s, ls_config *c) { (void)s; (void)c; }
static const ls_trial t = {.name = "t", .about = "", .batch = 1, .build = build};'
api=$(sed -n 's/^#define LS_TRIAL_API //p' "$OLDPWD/include/lockstep/trial.h")
code newer <<<"$trial const ls_trial_plugin lockstep_trial_plugin = {LS_TRIAL_API + 1, LS_TRIAL_LAYOUT, &t};"
refused "newer.so: was built for version $((api + 1)) of the trial API, and lockstep" newer.so
says err "has version $api; build it again with this program's headers (make -B)"
code wider <<<"$trial const ls_trial_plugin lockstep_trial_plugin = {LS_TRIAL_API, LS_TRIAL_LAYOUT + 8, &t};"
refused 'wider.so: was built with headers of another lockstep (API' wider.so
code none <<<'const ls_trial_plugin lockstep_trial_plugin = {LS_TRIAL_API, LS_TRIAL_LAYOUT, NULL};'
refused 'LS_TRIAL_PLUGIN names no trial' none.so

# --- trials with mistakes --------------------------------------------------------------------------------------------------
# mistaken PART FIELDS [SETTINGS]: a trial with these fields and settings
mistaken() {
    code wrong <<<"static void build(ls_step *s, ls_config *c) { (void)s; (void)c; }
static const ls_setting settings[] = {${3:-}${3:+,} ls_settings_end};
static const ls_trial t = {.settings = settings, $2}; LS_TRIAL_PLUGIN(t);"
    refused "$1" ./wrong.so
}
fine='.name = "t", .about = "", .batch = 1, .build = build'
mistaken 'no name that a folder can have' '.about = "", .batch = 1, .build = build'
mistaken 'no name that a folder can have' '.name = "a/b", .about = "", .batch = 1, .build = build'
mistaken 'trial "t" lacks .about or .build' '.name = "t", .about = "", .batch = 1'
mistaken '.batch is 0, not 1 to 1000000' '.name = "t", .about = "", .build = build'
mistaken 'unknown rule' "$fine, .optimiser = {.rule = (ls_optimiser_rule)9}"
mistaken 'setting "seed" is no key for a trial' "$fine" 'ls_int_setting("seed", 1, 0, 9, "x")'
mistaken 'setting "model.trial" is no key for a trial' "$fine" 'ls_text_setting("model.trial", "", "x")'
mistaken 'setting "model.a" is there twice' "$fine" 'ls_int_setting("model.a", 1, 0, 9, "x"), ls_bool_setting("model.a", 1, "x")'
mistaken 'model.a: 10 is outside 0 to 9' "$fine" 'ls_int_setting("model.a", 10, 0, 9, "x")'
mistaken 'model.a: "1.5" is no whole number' "$fine" 'ls_int_setting("model.a", 1.5, 0, 9, "x")'
mistaken 'model.a: "soon" is no period' "$fine" 'ls_period_setting("model.a", "soon", "x")'
mistaken 'setting "model.a" has no text for its default' "$fine" 'ls_text_setting("model.a", NULL, "x")'
mistaken 'setting "model.a" has no choices' "$fine" 'ls_choice_setting("model.a", NULL, "x")'
mistaken 'setting "model.a" has a default beyond its choices' "$fine" 'ls_choice_setting("model.a", "", "x")'
mistaken 'setting "model.a" has no help' "$fine" 'ls_int_setting("model.a", 1, 0, 9, NULL)'
mistaken 'setting "model.a" is of an unknown kind' "$fine" '{"model.a", (ls_setting_kind)77, 0, 0, 0, NULL, "x", NULL}'
mistaken 'more than 128 settings' "$fine" "$(for i in $(seq 130); do printf '%sls_bool_setting("model.a%d", 0, "x")' "${sep-}" "$i" && sep=,; done)"

# A mistake in the step is reported with its line in the plug-in.
code shapes <<<'static void build(ls_step *s, ls_config *c)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE(-1, 3)), y = ls_input(s, "y", LS_F32, LS_SHAPE(-1, 4));
    ls_minimise(s, ls_mse_loss(x, y), "*", ls_config_optimiser(c));
}
static const ls_trial t = {.name = "shapes", .about = "", .batch = 1, .build = build}; LS_TRIAL_PLUGIN(t);'
run 2 plan ./shapes.so
says err 'model "shapes": shapes.c:5: '

[ $failures -eq 0 ] && echo "test_plugin_refusals: $n checks passed"
exit $((failures > 0))
