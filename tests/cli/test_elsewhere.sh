#!/usr/bin/env bash
# A run holds wherever one stands: names of files are absolute in its settings, which is no change of them.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
mkdir elsewhere
run 0 data make kind=npy path=set train=48 test=16
settings=(data.kind=npy data.path=./set data.train_images=train-images.npy data.train_labels=train-labels.npy
    data.test_images=test-images.npy data.test_labels=test-labels.npy)
small=(mnist "${settings[@]}" batch.per_rank=8 train.steps=3 --quiet)
run 0 train "${small[@]}" --run-dir first
n=$((n + 1))
grep -q "path: \"\{0,1\}$work/set\"\{0,1\}$" first/config.yaml || fail "data.path is $(grep path: first/config.yaml)"
run 0 train "${small[@]}" train.init=first --run-dir second
for command in "eval ../second" "infer ../second" "train --resume=../second train.steps=4"; do
    (cd elsewhere && run 0 $command; exit $failures) || failures=$((failures + 1))
done
# The same again is no change: not in another folder, not with the words of the beginning.
(cd elsewhere && "$LOCKSTEP" train --resume=../second train.steps=5 >../said 2>&1) || fail "$(cat said)"
run 0 train "${small[@]}" train.init=first train.steps=6 --resume=second
cat "$work/out" "$work/err" >>said
n=$((n + 1))
grep -q "data.path\|train.init" said && fail "said to be changed: $(grep "data.path\|train.init" said)"
# Files named without a folder.
(cd set && run 0 train mnist "${settings[@]}" data.path= batch.per_rank=8 train.steps=2 --quiet --run-dir ../third; exit $failures) ||
    failures=$((failures + 1))
run 0 eval third
# A run of before, whose settings are relative, says where it looks.
sed -i "s|path: .*/set.*|path: set|" third/config.yaml
(cd elsewhere && run 3 eval ../third && says err "\"set\" is looked for in the working directory, $work/elsewhere"; exit $failures) ||
    failures=$((failures + 1))

[ "$failures" -eq 0 ] && echo "$n checks of a run seen from elsewhere: all as expected"
exit $((failures > 0))
