#!/usr/bin/env bash
# bench/studies.sh: tables and verdicts follow from results of known numbers, and come into the documents as a whole.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
failures=0

# expect NAME FILE TEXT: a line of the file has the text.
expect() {
    if grep -qF -- "$3" "$2"; then
        echo "ok: $1"
    else
        printf '%s: expected a line with\n%s\nin\n%s\n' "$1" "$3" "$(cat "$2")"
        failures=$((failures + 1))
    fi
}

# row RANKS RATE EFFICIENCY FLOP READ [OVERSUBSCRIBED]: of a study with steps of 1 s, a tenth of it exposed.
row() {
    printf '{"ranks":%d,"threads":1,"repeats":2,"samples_per_s":{"p16":%s,"p50":%s,"p84":%s},"efficiency":{"lo":%s,"mid":%s,"hi":%s},"oversubscribed":%s,"step_s":1.0,"comm_exposed_s":0.1,"peak_flop_s":%s,"peak_read_b_s":%s}' \
        "$1" "$2" "$2" "$2" "$3" "$3" "${7:-$3}" "${6:-false}" "$4" "$5"
}
study() {
    local name=$1
    shift
    mkdir -p "$out/$name" "$out/tables"
    printf '{"event":"scale","batch":2,"points":[%s]}\n' "$(IFS=, && echo "$*")" >"$out/$name/scale.json"
    echo "made here" >"$out/$name/where.txt"
    write_table "$name"
}
fail() {
    echo "studies.sh: $*" >&2
    exit 2
}

out=$work/out
# shellcheck source=bench/studies_tables.sh
source "$root/bench/studies_tables.sh"

rows=("$(row 1 100 1.0 1e9 1e9)" "$(row 2 196 0.98 2e9 2e9)" "$(row 4 240 0.60 2.6e9 4e9)" "$(row 8 400 0.50 8e9 4.4e9)" "$(row 16 800 0.50 16e9 16e9)"
    "$(row 32 900 0.28 32e9 32e9 true)")
study cosmogan "${rows[@]}"
table=$out/tables/cosmogan.md
expect "rates and shares" "$table" "| 4 | 3.233 (0.319) | 99 % | 240 (240 to 240) | 60 % (60 to 60) | 10 % | 65 % | 100 % |"
expect "as good as published" "$table" "| 10 % | 100 % | 100 % | reproduced |"
expect "lost by arithmetic" "$table" "not reproduced: these cores, all at once, do 65 % of the arithmetic"
expect "lost by memory" "$table" "not reproduced: these cores, all at once, read memory at 55 %"
expect "lost by the exchange" "$table" "not reproduced: exchange and waiting take 10 % of a step"
expect "more ranks than cores" "$table" "| oversubscribed | 10 % | 100 % | 100 % | not comparable: more ranks than cores |"
expect "a change of computing" "$table" "| 128 | 200.835 (0.996) | 192 % | | | | | | not reproduced: as 64 |"

study cosmogan "$(row 1 100 1.0 1e9 1e9)" "$(row 2 160 0.80 2e9 2e9 false 1.10)"
expect "a wide interval" "$table" "| 80 % (80 to 110) | 10 % | 100 % | 100 % | not comparable: too few repeats, the interval holds the published efficiency, too |"
study cosmogan "${rows[@]}"

mkdir -p "$out/mnist/apart"
for r in 0 1; do echo "{\"event\":\"bench\",\"samples_per_s\":{\"p16\":1,\"p50\":$((70 + r * 10)),\"p84\":1}}" >"$out/mnist/apart/$r.json"; done
study mnist "$(row 1 100 1.0 1e9 1e9)" "$(row 2 150 0.75 2e9 2e9)"
expect "without an exchange" "$out/tables/mnist.md" "2 single ranks at once, which exchange nothing, reach 75 % together, and 2 times the slowest of them 70 %"

mkdir "$work/docs"
printf '<!-- weak here -->\n<!-- end -->\n' >"$work/docs/all.md"
printf 'before\n<!-- cosmogan here -->\n\nold\n\n<!-- end -->\nafter\n' >"$work/docs/study.md"
chmod -R a-w "$out"
for again in 1 2; do "$root/bench/studies.sh" --out "$out" --into "$work/docs" --as here >/dev/null; done
expect "table in the document" "$work/docs/study.md" "not reproduced: as 64"
expect "all weak scaling in one" "$work/docs/all.md" '| `mnist` | 2 | 100 | 75 % |  |  |  |  | 10 % | 75 % | 70 % | 100 % | 100 % |'
expect "oversubscribed in it, too" "$work/docs/all.md" '| `cosmogan` | 2 | 100 | 98 % | 60 % | 50 % | 50 % | oversubscribed | 10 % |'
expect "CSV beside it" "$work/docs/cosmogan-here.csv" "2,2,2,196,196,196,0.9800"
grep -q old "$work/docs/study.md" && expect "the old table is gone" "$work/docs/study.md" "no old"
[[ $(grep -c 'not reproduced: as 64' "$work/docs/study.md") == 1 ]] || expect "copied twice, there once" "$work/docs/study.md" "one table"
[[ $(head -n 1 "$work/docs/study.md") == before && $(tail -n 1 "$work/docs/study.md") == after ]] || expect "the rest stays" "$work/docs/study.md" "before ... after"
if "$root/bench/studies.sh" --out "$out" --into "$work/docs" --as elsewhere 2>"$work/said"; then
    echo "a place that no document has: expected an error"
    failures=$((failures + 1))
fi
expect "a place that no document has" "$work/said" 'has a place for as "elsewhere"'
[ "$failures" -eq 0 ]
