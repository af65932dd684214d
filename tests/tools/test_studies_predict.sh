#!/usr/bin/env bash
# bench/studies_predict.sh: the documents have the tables that are predicted today; other figures and other verdicts are found.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
: "${LOCKSTEP:?the program to test}"
export LOCKSTEP_TUNE=off
predict=$root/bench/studies_predict.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# verdict NAME CODE COMMAND...: the command ends with that code.
verdict() {
    local name=$1 want=$2 got=0
    shift 2
    "$@" >"$work/said" 2>&1 || got=$?
    if [[ $got == "$want" ]]; then
        echo "ok: $name"
    else
        printf '%s: exit code %s, expected %s:\n%s\n' "$name" "$got" "$want" "$(cat "$work/said")"
        failures=$((failures + 1))
    fi
}
# said NAME TEXT: the last command said so.
said() {
    if ! grep -qF -- "$2" "$work/said"; then
        printf '%s: expected\n%s\nin\n%s\n' "$1" "$2" "$(cat "$work/said")"
        failures=$((failures + 1))
    fi
}
# changed FROM TO: the documents in $work/docs have TO in the place of FROM.
changed() {
    rm -rf "$work/docs"
    mkdir "$work/docs"
    cp "$root"/docs/studies/*.md "$root"/docs/studies/*-16-cores.csv "$work/docs"
    sed -i "s#$1#$2#" "$work"/docs/*.md
    if cat "$work"/docs/*.md | cmp -s - <(cat "$root"/docs/studies/*.md); then
        echo "\"$1\" is in no document: this test needs another figure"
        failures=$((failures + 1))
    fi
}
check=("$predict" --check --docs "$work/docs")

verdict "documents have today's predictions" 0 "$predict" --check
changed '^| 16 | 12.673 | 13.1 |' '| 16 | 12.673 | 13.0 |'
verdict "one in the last digit is as good" 0 "${check[@]}" cosmogan
changed '^| 16 | 12.673 | 13.1 |' '| 16 | 12.673 | 13.5 |'
verdict "another figure is found" 1 "${check[@]}" cosmogan
said "another figure is found" "cosmogan-throughput.md: the table of cosmogan is not what is predicted today"
said "another figure is shown" "< | 16 | 12.673 | 13.5 |"
changed 'differs: 31 % slower than predicted' 'agrees; so would a step without exchange'
verdict "a verdict that was typed is found" 1 "${check[@]}" epochs
changed '^| 128 | 200.835 .*| not reproduced: as 64;.*$' ''
verdict "a row that is missing is found" 1 "${check[@]}" cosmogan
changed '<!-- predicted epochs -->' '<!-- elsewhere -->'
verdict "a document without a place" 2 "${check[@]}" epochs
said "a document without a place" "<!-- predicted epochs -->"

# What is measured here is read from the studies' files.
changed '^| 2 | 1.632 | 1.64 |' '| 2 | 1.632 | 1.90 |'
sed -i '/^2,/s/.*/2,2,2,5,6,7,0.4,0.33,0.5,1,0.1,1,1,1,1,no,,/' "$work/docs/cosmogan-16-cores.csv"
verdict "tables are written" 0 "$predict" --into --docs "$work/docs" cosmogan
cp "$work/docs/cosmogan-throughput.md" "$work/said"
said "the table that was written" "| 2 | 1.632 | 1.64 | 1.47 to 1.82 | 1.00 | 0.0 % | 100 % | 100 % | 33 % | agrees; so would a step without exchange |"
verdict "what was written is what is predicted" 0 "${check[@]}" cosmogan
said_before=$(grep -c . "$root/docs/studies/cosmogan-throughput.md")
[[ $(grep -c . "$work/docs/cosmogan-throughput.md") == "$said_before" ]] || {
    echo "writing a table changed other lines"
    failures=$((failures + 1))
}

# A program that says nothing must not leave its nothing in a document.
cp "$root/docs/studies/mnist-time-and-accuracy.md" "$work/docs/mnist-time-and-accuracy.md"
printf '#!/bin/sh\nexit 0\n' >"$work/silent"
chmod +x "$work/silent"
verdict "a program that says nothing" 2 "$predict" --lockstep "$work/silent" --into --docs "$work/docs" mnist
cmp "$root/docs/studies/mnist-time-and-accuracy.md" "$work/docs/mnist-time-and-accuracy.md" || failures=$((failures + 1))

verdict "no such table" 2 "$predict" nothing
said "no such table" 'no table "nothing"'
verdict "no program" 2 "$predict" --lockstep "$work/none"
said "no program" "is no program"
[ "$failures" -eq 0 ]
