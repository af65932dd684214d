#!/usr/bin/env bash
# Commands that are shown to be copied do what they say, whatever a run is called: they are taken from the output and given to a shell.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
mkdir bin && ln -s "$(realpath "$LOCKSTEP")" bin/lockstep
PATH=$work/bin:$PATH
odd="a b's \$(touch hurt)"
small=(mnist data.kind=synthetic data.train_range=0:64 data.test_range=64:80 batch.per_rank=16 train.steps=2 --quiet)

# copy out|err PATTERN: the command that the last output shows, where PATTERN has it between \( and \); run by a shell
copy() {
    local command
    n=$((n + 1))
    command=$(sed -n "s/.*$2.*/\1/p" "$work/$1" | head -1)
    [ -n "$command" ] || fail "no command in: $(cat "$work/$1")"
    bash -c "$command" >copied 2>&1 || fail "$command: $(cat copied)"
}

run 0 train "${small[@]}" --run-dir "$odd"
run 0 train --resume="$odd"
copy out 'to go on: \(.*\)'
n=$((n + 1))
grep -q '"steps": 4' "$odd/summary.json" || fail "the copied command did not go on: $(cat copied)"
run 2 train "${small[@]}" --run-dir "$odd"
says err "--resume='a b'\"'\"'s \$(touch hurt)'"
sed -i 's/runs rm /runs rm --yes /' "$work/err"
copy err '(\(lockstep runs rm [^)]*)[^)]*\))'
n=$((n + 1))
[ ! -e "$odd" ] || fail "the copied command did not remove it: $(cat copied)"
run 0 new own --dir "$odd"
says out "Next: cd 'a b'"
run 0 data make kind=npy train=8 test=8 path="$odd data"
copy out 'try `\(.*\)`'
n=$((n + 1))
[ ! -e hurt ] || fail "a name was taken for a command"

[ "$failures" -eq 0 ] && echo "$n checks of odd names: all as expected"
exit $((failures > 0))
