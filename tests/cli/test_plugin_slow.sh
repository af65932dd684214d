#!/usr/bin/env bash
# A model of one's own: `lockstep new` writes it, make builds it, and every command treats it as one of its own.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
if ! command -v make >/dev/null || ! command -v cc >/dev/null; then
    echo "skipped: make or cc is not installed"
    exit 77
fi
enter_work

# built FOLDER: make succeeds there and says nothing but its command
built() {
    n=$((n + 1))
    make -C "$1" --no-print-directory -B LOCKSTEP="$LOCKSTEP" >"$work/make" 2>&1 || fail "make in $1: $(cat "$work/make")"
    grep -q warning "$work/make" && fail "$1 does not compile without warnings: $(cat "$work/make")"
}

run 0 new blobs
says out 'cd blobs && make && lockstep train blobs.yaml'
built blobs
run 0 new other_one --dir elsewhere --json
is event new path elsewhere files '["other_one.c", "other_one.yaml", "Makefile", "README.md"]'
grep -q '@' elsewhere/other_one.c elsewhere/other_one.yaml elsewhere/README.md && fail "a mark was left in a file of other_one"

# --- it trains, and the experiment finds it from any folder -----------------------------------------------------------
short=(train.steps=24 train.report_every=1st)
run 0 train blobs/blobs.yaml "${short[@]}" train.steps=64 --run-dir long --quiet
n=$((n + 1))
losses long | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(NR == 64 && first > 2 && last < first / 4) }' ||
    fail "the loss does not fall: $(losses long | sed -n '1p;$p' | tr '\n' ' ')"
grep -q "trial: \"$(readlink -f blobs)/blobs.so\"" long/config.yaml || fail "config.yaml does not name the plug-in: $(grep trial long/config.yaml)"
(cd blobs && "$LOCKSTEP" plan blobs.yaml >"$work/out" 2>"$work/err") || fail "plan in the model's own folder: $(cat "$work/err")"
says out 'model         blobs: a small convolution network'
(cd elsewhere && "$LOCKSTEP" eval ../long --json >"$work/out" 2>"$work/err") || fail "eval: $(cat "$work/err")"
holds 'o["samples"] == 512 and o["acc"] > 0.8'
run 0 plan ./blobs/blobs.so model.width=4 --json
is parameters.total 4266
run 0 plan mnist model.trial=blobs/blobs.so --json
run 0 bench blobs/blobs.so --steps 3 --json
is experiment blobs allocs_per_step 0.0
run 0 info
says out "trial API $(sed -n 's/^#define LS_TRIAL_API //p' "$OLDPWD/include/lockstep/trial.h")"

# --- its settings are settings -----------------------------------------------------------------------------------------
run 0 plan blobs/blobs.yaml --settings
says out 'model.dropout'
run 0 train blobs/blobs.yaml --help
says out 'Model blobs: a small convolution network for grey images'
says out 'model.dropout'
run 2 train blobs/blobs.yaml model.widht=4
says err 'did you mean "model.width"'
run 2 train blobs/blobs.yaml model.dropout=1
says err 'model.dropout: 1 is outside 0 to 0.9'
run 2 train blobs/blobs.yaml model.size=3
says err 'model.size: 3 is outside 4 to 1024'

# --- ranks, accumulation, the reproducible mode, resume ------------------------------------------------------------------
run 0 train blobs/blobs.yaml "${short[@]}" --run-dir one --quiet
run 0 train blobs/blobs.yaml "${short[@]}" -n 2 --run-dir two --quiet
same_losses one two 24
run 0 train blobs/blobs.yaml "${short[@]}" parallel.accumulate=2 --run-dir added --quiet
same_losses one added 24
run 0 train blobs/blobs.yaml "${short[@]}" reproducible=true --run-dir bits-1 --quiet
run 0 train blobs/blobs.yaml "${short[@]}" reproducible=true -n 2 --run-dir bits-2 --quiet
n=$((n + 1))
[ "$(hash bits-1)" = "$(hash bits-2)" ] || fail "reproducible: $(hash bits-1) on one rank, $(hash bits-2) on two"
run 75 train blobs/blobs.yaml "${short[@]}" train.pause_after=9st --run-dir paused --quiet
cp -r paused changed
cp -r paused renamed
run 0 train blobs/blobs.yaml "${short[@]}" --resume=paused --quiet
n=$((n + 1))
[ "$(hash paused)" = "$(hash one)" ] || fail "after a pause $(hash paused), without $(hash one)"
says_nothing() { [ ! -s "$work/err" ] || fail "$1: $(cat "$work/err")"; }
says_nothing "resuming with the same plug-in"

# A plug-in that is another model now is told from one that was only built again.
cp -r blobs again && sed -i 's/ls_relu(ls_conv(s, x, "conv2"/ls_tanh(ls_conv(s, x, "conv2"/' again/blobs.c && built again
run 0 train again/blobs.yaml "${short[@]}" --resume=changed --quiet
says err 'again/blobs.so was changed since the checkpoint, and its step is another one now'
built elsewhere
run 2 train elsewhere/other_one.yaml "${short[@]}" --resume=renamed --quiet
says err 'the checkpoint is of model "blobs", not "other_one"'

# A run that names a plug-in gets the one it was trained with, and no other unless it is named by hand: loading one runs
# its code.
grep -q "plugin_xxh3: \"[0-9a-f]\{16\}\"" long/config.yaml || fail "no hash in config.yaml: $(grep -n plugin long/config.yaml)"
cp -r long forged
sed -i "s#trial: .*#trial: \"$PWD/again/blobs.so\"#" forged/config.yaml
run 2 eval forged
says err 'again/blobs.so: is not the file that the run was trained with: its hash is'
says err "name it by hand: model.trial=$PWD/again/blobs.so"
sed -i '/plugin_xxh3/d' forged/config.yaml
run 2 eval forged
says err 'the run names it without its hash'
run 0 eval forged model.trial=blobs/blobs.so --json
holds 'o["acc"] > 0.8'
if [ "$(id -u)" -eq 0 ]; then
    cp -r blobs theirs && chown -R 65534 theirs
    cp -r long foreign && sed -i "s#trial: .*#trial: \"$PWD/theirs/blobs.so\"#" foreign/config.yaml
    run 2 eval foreign
    says err 'belongs to another user'
fi

# Ranks that were started apart notice that they have different ones.
. "$here/../tools/mpi_here.sh"
if ! no_mpi >/dev/null && ! slow_build; then
    n=$((n + 1))
    timeout 60 "${mpi[@]}" -n 1 "$LOCKSTEP" train blobs/blobs.yaml "${short[@]}" --run-dir apart --quiet : \
        -n 1 "$LOCKSTEP" train again/blobs.yaml "${short[@]}" --run-dir apart --quiet >"$work/out" 2>"$work/err"
    [ $? -eq 5 ] || fail "two plug-ins in one run: not exit code 5: $(cat "$work/err")"
    says err 'xxh3 of the plug-in='
fi

[ $failures -eq 0 ] && echo "test_plugin: $n checks passed"
exit $((failures > 0))
