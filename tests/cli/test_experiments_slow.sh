#!/usr/bin/env bash
# The experiments that ship: each can be read, says what it is, and stands in the table of docs/experiments.md; those on
# made-up data train on what `data make` writes, by the commands in their comments.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
export LOCKSTEP_THREADS=1
root=$(pwd)

for file in experiments/*.yaml; do
    name=$(basename "$file" .yaml)
    run 0 plan "$name" --settings
    n=$((n + 2))
    [ "$(head -c 2 "$file")" = "# " ] || fail "$file does not begin with a comment that says what it is"
    grep -q "^| \`$name\` |" docs/experiments.md || fail "the table of docs/experiments.md lacks $name"
done
for name in $(sed -n 's/^| `\([a-z0-9-]*\)` |.*/\1/p' docs/experiments.md); do
    n=$((n + 1))
    [ -f "experiments/$name.yaml" ] || fail "docs/experiments.md has $name, which does not exist"
done

# --- made-up data: the commands of the comments, on fewer samples ---------------------------------------------
cd "$work" || exit 1
mkdir data
names="linear resnet18 vit mnist cosmogan cyclegan"
if "$LOCKSTEP" data make kind=hdf5 path=probe train=1 test=1 2>&1 | grep -q 'built without HDF5'; then
    echo "aae-small is left out: built without HDF5"
else
    names+=" aae"
fi
for name in $names; do
    make=$(sed -n 's/^#   lockstep \(data make .*\)/\1/p' "$root/experiments/$name-small.yaml")
    folder=$(sed 's/.*path=\([^ ]*\).*/\1/' <<<"$make")
    # shellcheck disable=SC2086  # words of a command
    [ -d "$folder" ] || run 0 $make train=128 test=32
    run 0 train "$name-small" train.steps=2 --run-dir "run-$name" --quiet
    n=$((n + 1))
    grep -q '"state": "completed"' "run-$name/summary.json" || fail "$name-small: $(cat "run-$name/summary.json")"
done

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
