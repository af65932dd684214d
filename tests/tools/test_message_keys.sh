#!/usr/bin/env bash
# Every setting that a text of the program names exists: in strings of the sources, words such as data.crop or
# train.epochs are keys of the tables (docs/settings.md), and what a message tells to "set" is a key, an option, a
# variable of the environment or a setting of `lockstep data`.
set -euo pipefail
cd "$(dirname "$0")/../.."
keys=$(grep -oE '^\| `[a-z_.0-9]+`' docs/settings.md | tr -d '|` ' | sort -u)
groups=$(printf '%s\n' "$keys" | grep -oE '^[a-z]+\.' | tr -d . | sort -u | paste -sd'|')
failures=0
declare -A known
while read -r key; do known[$key]=yes; done <<<"$keys"

# strings FILE...: "FILE:LINE:text" of every string literal, without those of #include.
strings_of() {
    grep -nH '"' "$@" | grep -vE '^[^:]+:[0-9]+: *#include' |
        perl -ne 'my ($at, $text) = /^([^:]+:\d+):(.*)/ or next; print "$at:$1\n" while $text =~ /"((?:[^"\\]|\\.)*)"/g'
}

# Names that look like a setting and are none: streams of random numbers, files, a name of Determined, an example of a
# misspelt key, the setting of the model that `lockstep new` writes.
not_settings='^(data\.partner|data\.transform|train\.h5|model\.safetensors|data\.sample_interval|optimizer\.lrr|model\.dropout)$'
named=$(strings_of $(git ls-files --cached --others --exclude-standard 'src/*.c' 'src/*.h' 'cmd/*.c' 2>/dev/null || find src cmd -name '*.[ch]') |
    perl -ne 'my ($at, $text) = /^([^:]+:\d+):(.*)/ or next; print "$at $1\n" while $text =~ /(?<![\w.\/-])((?:'"$groups"')\.[a-z_]+[0-9]*)(?![\w(])/g')
n=0
while read -r at key; do
    n=$((n + 1))
    [[ $key =~ $not_settings ]] && continue
    [ -n "${known[$key]:-}" ] || {
        echo "$at: names \"$key\", which is no setting"
        failures=$((failures + 1))
    }
done <<<"$named"

# "set X", "change X": X is a key (or a whole sentence's object, which is not one word of small letters).
data_words=$(grep -oE '^    \{"[a-z]+", (true|false), FIELD' cmd/data.c | grep -oE '"[a-z]+"' | tr -d '"')
told=$(strings_of $(git ls-files --cached --others --exclude-standard 'src/*.c' 'cmd/*.c' 2>/dev/null || find src cmd -name '*.c') |
    perl -ne 'my ($at, $text) = /^([^:]+:\d+):(.*)/ or next; print "$at $1\n" while $text =~ /(?:[;:,] |or )(?:set|change) ([a-z_.]+)(?=[ ,;.=]|$)/g')
while read -r at word; do
    [ -n "$word" ] || continue
    case $word in the | one | it | a | an | them | of | both | another | its) continue ;; esac
    [ -n "${known[$word]:-}" ] || {
        echo "$at: tells to set \"$word\", which is no setting"
        failures=$((failures + 1))
    }
done <<<"$told"
echo "$n names of settings in texts, $failures wrong"
[ "$n" -gt 50 ] && [ "$failures" -eq 0 ]
