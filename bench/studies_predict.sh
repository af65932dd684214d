#!/usr/bin/env bash
# studies_predict.sh: what `lockstep predict` says of the published runs in docs/studies/, beside what was published and what was
# measured here.  Needs bash and awk; nothing is measured, all of it takes a second.
#
#   bench/studies_predict.sh [--lockstep BIN] [--docs DIR] [TABLE...]
#   bench/studies_predict.sh --into [--docs DIR]     writes the tables into the documents, between <!-- predicted TABLE --> and <!-- end -->
#   bench/studies_predict.sh --check [--docs DIR]    fails where a document has another table; figures may differ by 1 % or a last digit
#
# TABLE: aae cosmogan cyclegan mnist epochs, and how many rows have which verdict: overview; all of them unless some are named.
#
# The rule, which nobody applies by hand:
#   reference       the row that computing was fitted to: a rank's step without any exchange is what makes this row right.  It is
#                   always the one with the fewest ranks.
#   agrees          the published figure, with how exactly it was published, meets the band of 90 %, both as printed.  Where it is not known
#                   whether the published run computed while it exchanged, the band is that of both.
#                   "so would a step without exchange": that, too, is in the band, and the row says nothing about the network.
#   differs         it does not; by how much it is beyond the (nearer) prediction.
#   not comparable, not reproduced: the row cannot be what is predicted, for a reason that lies in how the published figure came
#                   about and stands in the table of this script; whether the figure is in the band is computed all the same.
#
# As the published programs did, every rank makes every update in the step that its gradients are of (parallel.share=never,
# parallel.carry=never), gradients travel in fp32 and by the algorithm of their library: a ring (NCCL), or what MPI does with long
# vectors (Rabenseifner).  Buckets are as large as theirs (PyTorch 25 MB, Horovod 64 MB).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
lockstep=${LOCKSTEP:-$root/build/lockstep} docs=$root/docs/studies do=print
all="aae cosmogan cyclegan mnist epochs overview"

fail() {
    echo "studies_predict.sh: $*" >&2
    exit 2
}

wanted=()
while (($# > 0)); do
    case $1 in
    --lockstep | --docs)
        (($# > 1)) || fail "$1 needs a value"
        if [[ $1 == --docs ]]; then docs=$2; else lockstep=$2; fi
        shift
        ;;
    --into) do=into ;;
    --check) do=check ;;
    -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
        exit 0
        ;;
    *)
        [[ " $all " == *" $1 "* ]] || fail "no table \"$1\"; there are: $all"
        wanted+=("$1")
        ;;
    esac
    shift
done
((${#wanted[@]} > 0)) || read -r -a wanted <<<"$all"
[[ -x $lockstep ]] || fail "$lockstep is no program; build it, or name it with --lockstep"
[[ -d $docs ]] || fail "--docs $docs: there is no such folder"
# shellcheck source=bench/studies_tables.sh
source "$root/bench/studies_tables.sh"
export LOCKSTEP_EXPERIMENTS=$root/experiments
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- asking -------------------------------------------------------------------------------------------------------------

# ask NAME STEP ARGUMENT...: predictions with a step of so many seconds, as CSV in the file NAME.
ask() {
    local name=$1 step=$2
    shift 2
    "$lockstep" predict "$@" parallel.share=never parallel.carry=never --step-time "$step" --csv >"$work/$name"
}

# fitted NAME RANKS SECONDS ARGUMENT...: what a rank computes so that a step of RANKS takes SECONDS: the predicted exchange, which is
# asked for in NAME, is taken off.
fitted() {
    local name=$1 ranks=$2 seconds=$3
    shift 3
    ask "$name" "$seconds" "$@" --ranks "$ranks"
    of "$name" "$ranks" | awk -v s="$seconds" '{ printf "%.6g\n", s - ($2 - s) }'
}

# of NAME RANKS: step lo, mid, hi, what of it is computing, samples a second.
of() {
    awk -F , -v ranks="$2" '$1 == ranks { print $4, $5, $6, $9, $7; found = 1 } END { exit !found }' "$work/$1" ||
        fail "there is no prediction for $2 ranks: $(cat "$work/$1")"
}

# row RANKS FIRST PUBLISHED LO HI TIMES WORD OVERLAPPED [NOT]: of the table that is being made.  FIRST: its first columns, but for the
# last bar.  PUBLISHED: as text; LO and HI: what it may stand for.  TIMES: steps whose seconds are meant, or 0: samples a second are.
# WORD: "reference", a reason, or "-": by the rule.  OVERLAPPED, NOT: names of predictions.
row() {
    local ranks=$1 first=$2 published=$3 lo=$4 hi=$5 times=$6 word=$7 a b
    a=$(of "$8" "$ranks")
    b=$(of "${9:-$8}" "$ranks")
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$ranks" "$first" "$published" "$lo" "$hi" "$times" "$word" "$a" "$b" >>"$work/rows"
}

# --- the table -----------------------------------------------------------------------------------------------------------

# rows_table HEADING WAYS UNIT [CSV]: the rows so far.  HEADING: first columns.  WAYS: 2 where both ways of exchanging are shown.
# UNIT: of the figures.  CSV: weak scaling as measured here.
rows_table() {
    # shellcheck disable=SC2154
    awk -F '\t' -v heading="$1" -v ways="$2" -v unit="$3" -v counts="$work/$table.counts" "$awk_json"'
    FILENAME ~ /csv$/ { if (FNR > 1) { split($0, c, ","); rate[c[1]] = c[5] / c[1]; here[c[1]] = c[8]; any = 1 } next }
    function rounded(x) { x = figure(x); gsub(",", "", x); return x + 0 }
    function value(step, rate, mid) { return times > 0 ? times * step : rate * mid / step }
    function share(compute, mid) { return sprintf("%.*f %%", 1 - compute / mid < 0.0095 ? 1 : 0, 100 * (1 - compute / mid)) }
    function spell(x, y) { x = percent(x); y = percent(y); if (x == y) return x; sub(/ %/, "", x); return x " to " y }
    {
        ranks = $1; times = $6; word = $7; split($8, a, " "); split($9, b, " ")
        pub = ($4 + $5) / 2
        one = value(a[2], a[5], a[2]); two = value(b[2], b[5], b[2]); alone = value(b[4], b[5], b[2])
        # a step takes longer: fewer samples a second, more seconds
        lo = rounded(times > 0 ? value(a[1], a[5], a[2]) : value(b[3], b[5], b[2]))
        hi = rounded(times > 0 ? value(b[3], b[5], b[2]) : value(a[1], a[5], a[2]))
        near = pub > (one > two ? one : two) ? (one > two ? one : two) : pub < (one < two ? one : two) ? (one < two ? one : two) : pub
        ratio = pub / near
        inside = rounded($5) >= lo && rounded($4) <= hi
        off = ratio > 1 ? ratio - 1 : 1 / ratio - 1
        beyond = sprintf("%s %s than predicted", percent(off), (ratio > 1) == (times > 0) ? "slower" : "faster")
        if (word == "reference") v = "reference: computing is fitted to it"
        else if (word != "-") v = word "; " (inside ? "in the band" : beyond)
        else if (inside) v = "agrees" (alone >= lo && alone <= hi ? "; so would a step without exchange" : "")
        else v = "differs: " beyond
        if (!n++) {
            first = ranks; pub1 = pub; one1 = one; two1 = two
            printf "| %s | published %s |%s band of 90 %% | published over predicted | exchange |", heading, unit, ways == 2 ? " predicted, overlapped | not overlapped |" : " predicted |"
            printf " efficiency: published | predicted |%s verdict |\n|", any ? " measured here |" : ""
            for (k = gsub(/\|/, "|", heading) + 8 + (ways == 2) + (any ? 1 : 0); k > 0; k--) printf "---|"
            print ""
        }
        e = times > 0 ? pub1 * first / (pub * ranks) : pub / ranks / (pub1 / first)
        e1 = times > 0 ? one1 * first / (one * ranks) : one / ranks / (one1 / first)
        e2 = times > 0 ? two1 * first / (two * ranks) : two / ranks / (two1 / first)
        printf "| %s | %s | %s |%s %s to %s | %s | %s |", $2, ($3 ~ /^[0-9]+$/ ? thousands($3) : $3), figure(one), ways == 2 ? " " figure(two) " |" : "", figure(lo), figure(hi), \
            (word == "reference" ? "" : sprintf("%.2f", ratio)), (ranks == 1 ? "" : ways == 2 ? share(a[4], a[2]) ", " share(b[4], b[2]) : share(b[4], b[2]))
        if (n == 1) printf " | |%s", any ? " |" : ""
        else printf " %s | %s |%s", percent(e), spell(e2, e1), !any ? "" : (ranks in rate) && (first in rate) ? " " percent(first == 1 ? here[ranks] : rate[ranks] / rate[first]) " |" : " |"
        print " " v " |"
        sub(/;.*without exchange/, " without", v); sub(/[:;].*/, "", v)
        count[v]++
    }
    END { printf "%d | %d | %d | %d | %d | %d |\n", n - 1, count["agrees"] + count["agrees without"], count["agrees without"], count["differs"], count["not comparable"], count["not reproduced"] >counts }' \
        ${4:+"$4"} "$work/rows"
    rm "$work/rows"
}

# how STEP FROM ARGUMENT...: below the table: what was asked.
how() {
    local step=$1 from=$2
    shift 2
    printf '\nA rank computes %s s in a step%s: `lockstep predict %s parallel.share=never parallel.carry=never --step-time %s`\n' "$step" "$from" "$*" "$step"
}

# --- published ------------------------------------------------------------------------------------------------------------

# Samples/s are 32 a GPU over the one figure that was measured, 0.131 s.
aae_table() {
    local args=(aae-longhorn --machine v100 --network longhorn --ranks-per-node 4 --algorithm ring parallel.bucket_mb=25) n rate
    ask with 0.131 "${args[@]}" --ranks 1..32
    ask without 0.131 "${args[@]}" --ranks 1..32 parallel.overlap=false
    while read -r n rate _; do
        row "$n" "$n" "$rate" "$(awk "BEGIN { print $n * 32 / 0.1315 }")" "$(awk "BEGIN { print $n * 32 / 0.1305 }")" 0 \
            "$( ((n == 1)) && echo reference || echo "not comparable: its ranks exchanged no gradients")" with without
    done < <(published aae)
    rows_table ranks 2 samples/s "$docs/aae-16-cores.csv"
    how 0.131 "" "${args[@]}" --ranks 1..32
    echo "Not overlapped: the same with \`parallel.overlap=false\`."
}

# 64 images a node; of the width that was published nobody knows whether it is all of it or half.
cosmogan_table() {
    local args=(cosmogan-bench --machine edison --network edison --ranks-per-node 1 --algorithm rabenseifner parallel.bucket_mb=64) n rate word step
    step=$(awk 'BEGIN { printf "%.6g\n", 64 / 0.819 }')
    ask nodes "$step" "${args[@]}" --ranks 1..128
    while read -r n rate width; do
        case $n in
        1) word=reference ;;
        64) word="not reproduced: its nodes compute in half the time, which no network makes" ;;
        128) word="not reproduced: as 64" ;;
        *) word=- ;;
        esac
        row "$n" "$n" "$rate" "$(awk "BEGIN { print $rate - 0.0005 }")" "$(awk "BEGIN { print $rate + 0.0005 }")" 0 "$word" nodes
    done < <(published cosmogan)
    rows_table nodes 1 images/s "$docs/cosmogan-16-cores.csv"
    how "$step" "" "${args[@]}" --ranks 1..128
}

# One pair a GPU takes 1 / 4.878 s; K pairs are taken to take K times as long, one after the other or at once.
cyclegan_table() {
    local args=(cyclegan-1 model.replay=0 batch.global=null --machine v100 --network ethernet-10g --ranks-per-node 8 --algorithm ring parallel.bucket_mb=64) b k step
    step=$(awk 'BEGIN { printf "%.6g\n", 1 / 4.878 }')
    for b in 1 2 4; do
        for k in 1 2 4; do
            ((b == 1 || k == 1)) || continue
            ask "with-$b-$k" "$(awk "BEGIN { print $b * $k * $step }")" "${args[@]}" --ranks 1,64 "batch.per_rank=$b" "parallel.accumulate=$k"
            ask "without-$b-$k" "$(awk "BEGIN { print $b * $k * $step }")" "${args[@]}" --ranks 1,64 "batch.per_rank=$b" "parallel.accumulate=$k" parallel.overlap=false
        done
    done
    row 1 "1 \\| 1 \\| 1" 4.878 4.8775 4.8785 0 reference with-1-1 without-1-1
    row 64 "64 \\| 64 \\| 1" "71.44 to 164.45" 71.44 164.45 0 - with-1-1 without-1-1
    row 64 "64 \\| 128 \\| 1" 232.85 232.845 232.855 0 - with-2-1 without-2-1
    row 64 "64 \\| 256 \\| 1" 299.38 299.375 299.385 0 - with-4-1 without-4-1
    row 64 "64 \\| 64 \\| 2, as it was meant" 157.18 157.175 157.185 0 "not reproduced: the setting did nothing there" with-1-2 without-1-2
    row 64 "64 \\| 64 \\| 4, as it was meant" 157.18 157.175 157.185 0 "not reproduced: as 2" with-1-4 without-1-4
    row 64 "64 \\| 64 \\| 2 and 4, as they ran: 1" 157.18 157.175 157.185 0 - without-1-1
    rows_table "GPUs | global batch | aggregation" 2 records/s | sed 's/\\|/|/g'
    how "$step" " of one pair, and as many times that as it has pairs" "${args[@]}" --ranks 1,64 batch.per_rank=1
    echo "Aggregation is \`parallel.accumulate\`. Not overlapped: the same with \`parallel.overlap=false\`."
}

# 32 epochs; the slowest rank of n has 60,000 / n images, rounded up, in batches of 64.  Seconds were read off a plot, to about 3.
mnist_steps() { awk -v n="$1" 'BEGIN { images = int((60000 + n - 1) / n); print int((images + 63) / 64) }'; }
mnist_table() {
    local args=(mnist-theta --machine knl --network theta --ranks-per-node 4 --algorithm rabenseifner parallel.bucket_mb=64 parallel.overlap=false) n s step
    step=$(fitted first 8 "$(awk -v n="$(mnist_steps 8)" 'BEGIN { print 3550 / 32 / n }')" "${args[@]}")
    ask ranks "$step" "${args[@]}" --ranks 8..256
    while read -r n s; do
        row "$n" "$n" "$s" $((s - 3)) $((s + 3)) $((32 * $(mnist_steps "$n"))) "$( ((n == 8)) && echo reference || echo -)" ranks
    done <<<$'8 3550\n16 1808\n32 907\n64 467\n128 256\n256 139'
    rows_table ranks 1 s "$docs/mnist-16-cores.csv"
    how "$step" ", fitted to 8 ranks" "${args[@]}" --ranks 8..256
}

# Seconds of an epoch with its test, which ranks share out as well.
epochs_table() {
    local args=(mnist-theta --machine v100 --network hgx-a100 --ranks-per-node 8 --algorithm ring parallel.bucket_mb=25) n s half step
    step=$(awk -v n="$(mnist_steps 1)" 'BEGIN { printf "%.6g\n", 11.7 / n }')
    ask ranks "$step" "${args[@]}" --ranks 1..32
    while read -r n s half; do
        row "$n" "$n" "$s" "$(awk "BEGIN { print $s - $half }")" "$(awk "BEGIN { print $s + $half }")" "$(mnist_steps "$n")" "$( ((n == 1)) && echo reference || echo -)" ranks
    done <<<$'1 11.7 0.05\n4 2.64 0.005\n8 1.37 0.005\n16 0.80 0.005\n32 0.49 0.005'
    rows_table GPUs 1 s
    how "$step" "" "${args[@]}" --ranks 1..32
}

overview_table() {
    local table row
    echo "| study | fitted to | network | rows predicted | agree | of these, a step without exchange would, too | differ | not comparable | not reproduced |"
    echo "|---|---|---|---|---|---|---|---|---|"
    while IFS=';' read -r table row; do
        [[ -s $work/$table.counts ]] || "${table}_table" >"$work/$table.unseen"
        echo "| $row | $(cat "$work/$table.counts")"
    done <<-'END'
	aae;[Autoencoder](aae-weak-scaling.md#predicted) | 1 GPU | `longhorn`
	cosmogan;[cosmoGAN](cosmogan-throughput.md#predicted) | 1 node | `edison`
	cyclegan;[CycleGAN](cyclegan-aggregation.md#predicted) | 1 GPU | `ethernet-10g`: none was published
	mnist;[MNIST on Theta](mnist-time-and-accuracy.md#predicted) | 8 ranks | `theta`
	epochs;[MNIST on A100s](ddp-epoch-times.md#predicted) | 1 GPU | `hgx-a100`
	END
}

# --- into the documents ---------------------------------------------------------------------------------------------------

# document_of TABLE: the document that has a place for it.
document_of() {
    grep -lxF -- "<!-- predicted $1 -->" "$docs"/*.md || fail "no document in $docs has a place for it, a line <!-- predicted $1 -->"
}

# same WANT GOT: the same words; numbers may differ by 1 %, or by one in the last digit.
same() {
    awk '
    function parts(line, words, numbers,   n) {
        n = 0
        while (match(line, /[0-9]+(,[0-9][0-9][0-9])*(\.[0-9]+)?/)) {
            words[++n] = substr(line, 1, RSTART - 1); numbers[n] = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
        }
        words[n + 1] = line
        return n
    }
    function last(x,   p) { p = index(x, "."); return p ? 10 ^ (p - length(x)) : 1 }
    function differ(x, y,   unit, far) {
        unit = last(x); gsub(",", "", x); gsub(",", "", y)
        far = x > y ? x - y : y - x
        return far > 1.001 * unit && far > 0.01 * x
    }
    FNR == NR { want[FNR] = $0; lines = FNR; next }
    {
        n = parts(want[FNR], w, a); m = parts($0, v, b); bad = n != m
        for (i = 1; i <= n && !bad; i++) bad = w[i] != v[i] || differ(a[i], b[i])
        if (bad || w[n + 1] != v[n + 1]) { print "< " want[FNR] "\n> " $0; wrong = 1 }
    }
    END { if (FNR != lines) { print "lines: " lines + 0 " and " FNR; wrong = 1 } exit wrong }' "$1" "$2"
}

wrong=0
for table in "${wanted[@]}"; do
    "${table}_table" >"$work/$table.md"
    case $do in
    print) printf '\n## %s\n\n' "$table" && cat "$work/$table.md" ;;
    into)
        doc=$(document_of "$table")
        put_block "$doc" "<!-- predicted $table -->" "$work/$table.md"
        echo "$table -> $doc"
        ;;
    check)
        doc=$(document_of "$table")
        awk -v open="<!-- predicted $table -->" '$0 == open { inside = 1; next } inside && $0 == "<!-- end -->" { exit } inside' "$doc" |
            sed -e '1{/^$/d}' -e '${/^$/d}' >"$work/there"
        if ! same "$work/there" "$work/$table.md" >"$work/said"; then
            printf '%s: the table of %s is not what is predicted today (bench/studies_predict.sh --into writes it):\n%s\n' "$doc" "$table" "$(cat "$work/said")" >&2
            wrong=1
        fi
        ;;
    esac
done
exit "$wrong"
