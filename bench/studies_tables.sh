# studies_tables.sh: what bench/studies.sh measured, as Markdown and CSV beside the published figures, and into the documents.
# Read by bench/studies.sh, which sets `out`, `lockstep` and `root`.  Published figures stand here once, with the
# verdicts that do not depend on what is measured; the others follow from the rule in weak_verdict and are never typed.

# Awk's side of JSON: num("a.b") is the value behind "a" and then "b" in $0.  The results have one line.
awk_json='
function num(path,   k, n, i, p, s) {
    n = split(path, k, "."); s = $0
    for (i = 1; i <= n; i++) { p = index(s, "\"" k[i] "\":"); if (!p) return ""; s = substr(s, p + length(k[i]) + 3) }
    match(s, /^ *[^,}]*/)
    return substr(s, 1, RLENGTH) + 0
}
function figure(x) { return x >= 1000 ? thousands(x) : x >= 100 ? sprintf("%.0f", x) : x >= 10 ? sprintf("%.1f", x) : x >= 1 ? sprintf("%.2f", x) : sprintf("%.3f", x) }
function thousands(x,   s, t) { s = sprintf("%.0f", x); while (length(s) > 3) { t = "," substr(s, length(s) - 2) t; s = substr(s, 1, length(s) - 3) } return s t }
function percent(x) { return sprintf("%.0f %%", 100 * x) }
function median(v, n,   i, j, t) {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}'

# busy_percent: how much of the processors' time of one second is taken.
busy_percent() {
    { head -n 1 /proc/stat; sleep 1; head -n 1 /proc/stat; } |
        awk '{ all = 0; for (i = 2; i <= 9; i++) all += $i; idle = $5 + $6 } NR == 1 { a = all; b = idle } END { printf "%.0f\n", 100 * (1 - (idle - b) / (all - a)) }'
}

# note_where BUSY ARGUMENTS: on which machine, when and how a study was measured.
note_where() {
    local model version
    model=$(awk -F ': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)
    version=$("$lockstep" --version | awk '{ print $NF; exit }')
    printf 'Made on %s cores (%s), %s, version %s: `bench/studies.sh %s`\n' "$(nproc)" "$model" "$(date +%F)" "$version" "$2"
    if (($1 > 10)); then echo "**The machine was not idle (its processors were busy to $1 % when it began): these figures say little.**"; fi
}

# --- weak scaling -----------------------------------------------------------------------------------------------------

# weak_csv STUDY: a row per rank count; shares are of as many times what the smallest count has.
weak_csv() {
    awk "$awk_json"'
    FILENAME ~ /apart/ { if (r = num("samples_per_s.p50")) { sum += r; if (!apart++ || r < least) least = r } next }
    { batch = num("batch"); n = split($0, part, "{\"ranks\":") }
    END {
        print "ranks,batch_per_rank,repeats,samples_per_s_p16,samples_per_s_p50,samples_per_s_p84,efficiency_lo,efficiency,efficiency_hi,step_s,exposed_s,peak_flop_s,peak_read_b_s,arithmetic_share,memory_share,oversubscribed,apart,slowest"
        for (i = 2; i <= n; i++) {
            $0 = "\"ranks\":" part[i]; r = num("ranks"); rate = num("samples_per_s.p50")
            if (i == 2) { one = rate / r; flop = num("peak_flop_s") / r; read = num("peak_read_b_s") / r }
            printf "%d,%d,%d,%.6g,%.6g,%.6g,%.4f,%.4f,%.4f,%.6g,%.6g,%.6g,%.6g,%.4f,%.4f,%s,", r, batch, num("repeats"), num("samples_per_s.p16"), rate, num("samples_per_s.p84"),
                num("efficiency.lo"), num("efficiency.mid"), num("efficiency.hi"), num("step_s"), num("comm_exposed_s"), num("peak_flop_s"), num("peak_read_b_s"),
                num("peak_flop_s") / r / flop, num("peak_read_b_s") / r / read, (/"oversubscribed": ?true/ ? "yes" : "no")
            if (apart == r) printf "%.4f,%.4f\n", sum / r / one, least / one; else print ","
        } }' $(ls "$out/$1"/apart/*.json 2>/dev/null) "$out/$1/scale.json"
}

# published STUDY: ranks, samples/s, width of the central 68 %, verdict ("-": by the rule).
published() {
    case $1 in
    aae) cat <<-'END'
	1	244	-	not comparable: one V100 against cores; no exchange to compare
	2	488	-	not comparable: its ranks exchanged no gradients
	4	977	-	not comparable: its ranks exchanged no gradients
	8	1954	-	not comparable: its ranks exchanged no gradients
	16	3909	-	not comparable: its ranks exchanged no gradients
	32	7816	-	not comparable: its ranks exchanged no gradients
	END
        ;;
    cosmogan) cat <<-'END'
	1	0.819	0.003	-
	2	1.632	0.164	-
	4	3.233	0.319	-
	8	6.563	0.673	-
	16	12.673	1.095	-
	32	27.213	0.023	-
	64	98.861	0.355	not reproduced: a step in half the time of one node is other computing, not scaling
	128	200.835	0.996	not reproduced: as 64
	END
        ;;
    esac
}

# verdict, in awk: the published efficiency against ours, x, with the share of a step that is exposed, e, and what as many cores do at
# once of arithmetic, a, and of reading memory, m.
#   reproduced      ours is at most 5 points below the published one
#   not comparable  it is lower, but its interval, up to hi, holds the published one: too few repeats to tell ("": no interval)
#   not reproduced  it is lower; the reason is the cores where they do little better without any exchange
# apart: what as many times the slowest single rank reaches without an exchange ("": not measured).
awk_verdict='
function verdict(there, e, a, m, x, hi, apart) {
    if (x >= there - 0.05) return "reproduced"
    if (hi != "" && hi >= there - 0.05) return "not comparable: too few repeats, the interval holds the published efficiency, too"
    if (apart != "" && apart < x + 0.1) return "not reproduced: as many single ranks that exchange nothing reach " percent(apart) ", too"
    if (a < x + 0.1 && a <= m) return "not reproduced: these cores, all at once, do " percent(a) " of the arithmetic"
    if (m < x + 0.1) return "not reproduced: these cores, all at once, read memory at " percent(m)
    return "not reproduced: exchange and waiting take " percent(e) " of a step"
}'

weak_table() {
    local csv=$out/tables/$1.csv
    weak_csv "$1" >"$csv"
    published "$1" | awk -F '\t' "$awk_json$awk_verdict"'
    FNR == NR { if (FNR > 1) { split($0, c, ","); n = c[1] + 0; here[n] = 1; if (!first) first = n; last = n; batch = c[2]; repeats = c[3]
                lo[n] = c[4]; mid[n] = c[5]; hi[n] = c[6]; least[n] = c[7]; x[n] = c[8]; best[n] = c[9]; e[n] = c[11] / c[10]; a[n] = c[14]; m[n] = c[15]
                over[n] = c[16] == "yes"; apart = c[17]; slowest = c[18] } next }
    { n = $1 + 0; there[n] = 1; rate[n] = $2; width[n] = $3; word[n] = $4; any = 1; if (!base) base = $2 / n }
    function ours(n) {
        if (!here[n]) return "| | | | | |"
        return "| " figure(mid[n]) " (" figure(lo[n]) " to " figure(hi[n]) ") | " \
            (over[n] ? "oversubscribed" : n == first ? "" : percent(x[n]) (best[n] > 0 ? " (" sprintf("%.0f", 100 * least[n]) " to " sprintf("%.0f", 100 * best[n]) ")" : "")) \
            " | " (n == 1 ? "" : percent(e[n])) " | " (n == first ? "" : percent(a[n])) " | " (n == first ? "" : percent(m[n])) " |"
    }
    END {
        if (any) {
            print "| ranks | published samples/s | its efficiency | ours (central 68 %) | our efficiency (95 %) | exchange and waiting | arithmetic | memory | verdict |\n|---|---|---|---|---|---|---|---|---|"
            for (n = 1; n <= 128; n++) if (there[n] || here[n]) {
                if (!there[n]) { print "| " n " | | " ours(n) " |"; continue }
                p = rate[n] / n / base
                if (word[n] != "-") v = word[n]
                else if (!here[n]) v = "not comparable: not measured on this machine"
                else if (over[n]) v = "not comparable: more ranks than cores"
                else if (n == first) v = "not comparable: another machine; efficiencies are compared"
                else v = verdict(p, e[n], a[n], m[n], x[n], best[n] > 0 ? best[n] : "", n == last ? slowest : "")
                print "| " n " | " rate[n] (width[n] == "-" ? "" : " (" width[n] ")") " | " (n == 1 ? "" : percent(p)) " " ours(n) " " v " |"
            }
        } else {
            print "| ranks | samples/s (central 68 %) | efficiency (95 %) | exchange and waiting | arithmetic | memory |\n|---|---|---|---|---|---|"
            for (n = first; n <= last; n++) if (here[n]) print "| " n " " ours(n)
        }
        printf "\nBatch %d a rank, 1 thread a rank, %d %s.", batch, repeats, repeats == 1 ? "measurement" : "measurements"
        if (last > first && !over[last]) {
            printf " On %d ranks the efficiency is %s; exchange and waiting that computing does not hide take %s of a step.", last, percent(x[last]), percent(e[last])
            if (apart != "") printf " %d single ranks at once, which exchange nothing, reach %s together, and %d times the slowest of them %s: that is what ranks that wait for one another can have on these cores.", last, percent(apart), last, percent(slowest)
            if (x[last] < 0.85) printf " Asked for nothing but multiply-adds, all cores at once do %s of %d times what one does alone; reading memory, %s.", percent(a[last]), last, percent(m[last])
        }
        print ""
    }' "$csv" -
}

# overview DIR: all weak scaling studies that were measured, in one table, DIR/weak.md: efficiencies, and what the cores allow at the largest count.
overview() {
    local study measured=()
    for study in cosmogan aae cyclegan resnet18 mnist; do
        if [[ -s $out/tables/$study.csv ]]; then measured+=("$study"); fi
    done
    ((${#measured[@]} > 0)) || return 0
    {
        sed '1s/^/study,/;q' "$out/tables/${measured[0]}.csv"
        for study in "${measured[@]}"; do sed "1d;s/^/$study,/" "$out/tables/$study.csv"; done
    } >"$1/weak.csv"
    {
        awk -F , "$awk_json"'
        FNR == 1 { next }
        { if (!($1 in one)) { name[++names] = $1; one[$1] = $6 }
          if (!($2 in seen)) { seen[$2] = 1; count[++counts] = $2 }
          x[$1, $2] = $9; over[$1, $2] = $17 == "yes"; batch[$1] = $3; last[$1] = $2; e[$1] = $12 / $11; a[$1] = $15; m[$1] = $16; apart[$1] = $18; slow[$1] = $19 }
        END {
            printf "| study | batch a rank | samples/s of one rank"; for (i = 2; i <= counts; i++) printf " | %d ranks", count[i]
            printf " | exchange and waiting | apart | slowest | arithmetic | memory |\n|---|---|---"; for (i = 2; i <= counts; i++) printf "|---"
            print "|---|---|---|---|---|"
            for (k = 1; k <= names; k++) { s = name[k]; printf "| `%s` | %d | %s", s, batch[s], figure(one[s])
                for (i = 2; i <= counts; i++) printf " | %s", !((s, count[i]) in x) ? "" : over[s, count[i]] ? "oversubscribed" : percent(x[s, count[i]])
                printf " | %s | %s | %s | %s | %s |\n", percent(e[s]), apart[s] == "" ? "" : percent(apart[s]), slow[s] == "" ? "" : percent(slow[s]), percent(a[s]), percent(m[s]) }
            print "\nEfficiencies against one rank. The last five columns are of the largest count: the share of a step that is exchange and waiting; what as many single ranks reach at once that exchange nothing, together (*apart*) and as many times the slowest of them, which is what ranks that wait for one another can have (*slowest*); and what as many cores do at once of nothing but multiply-adds (*arithmetic*) and of reading memory."
        }' "$1/weak.csv"
        echo
        for study in "${measured[@]}"; do sed "s/ $study\`\$/\`/" "$out/$study/where.txt"; done | sort -u
    } >"$1/weak.md"
}

# --- the others ---------------------------------------------------------------------------------------------------------

# MNIST on Theta (PyTorch, Horovod) and on A100s, 32 epochs: ranks, seconds on Theta, seconds on A100s.
mnist_time_table() {
    awk "$awk_json"'
    { n = split($0, part, "{\"ranks\":"); print "ranks,seconds,samples_per_s_p50"
      for (i = 2; i <= n; i++) { $0 = "\"ranks\":" part[i]; printf "%d,%.3f,%.6g\n", num("ranks"), num("time_to_solution_s.mid"), num("samples_per_s.p50") } }' \
        "$out/mnist-time/scale.json" >"$out/tables/mnist-time.csv"
    # The cores' shares are those that weak scaling of the same network has measured, where it has.
    awk -F , "$awk_json$awk_verdict"'
    FNR == NR { if (FNR > 1) { n = $1; here[n] = 1; t[n] = $2; if (!ref || n == 8) ref = n } next }
    FNR > 1 { a[$1] = $14; m[$1] = $15; e[$1] = $11 / $10 }
    END {
        split("8 16 32 64 128 256", r, " "); split("3550 1808 907 467 256 139", s, " ")
        for (i = 1; i <= 6; i++) theta[r[i]] = s[i]
        split("1 2 4 8 16 32", r, " "); split("499.8 283.9 100.4 58.8 63.8 55.7", s, " ")
        for (i = 1; i <= 6; i++) gpu[r[i]] = s[i]
        print "| ranks | Theta s | its efficiency | A100 s | ours s | our efficiency | verdict |\n|---|---|---|---|---|---|---|"
        for (n = 1; n <= 256; n *= 2) {
            p = (n in theta) ? theta[8] * 8 / (theta[n] * n) : 0
            x = here[n] ? t[ref] * ref / (t[n] * n) : 0
            if (!here[n]) v = "not comparable: not measured on this machine"
            else if (n == ref) v = "not comparable: another machine; the reference of our efficiencies"
            else if (!(n in theta)) v = "not comparable: no such row on Theta, and a GPU is no core"
            else if (a[ref] > 0) v = verdict(p, e[n], a[n] / a[ref], m[n] / m[ref], x, "", "")
            else v = x >= p - 0.05 ? "reproduced" : "not reproduced"
            print "| " n " | " ((n in theta) ? thousands(theta[n]) : "") " | " (p ? percent(p) : "") " | " ((n in gpu) ? gpu[n] : "") \
                " | " (here[n] ? sprintf("%.1f", t[n]) : "") " | " (here[n] ? percent(x) : "") " | " v " |"
        }
        print "\nSeconds of 32 epochs of 60,000 images, 64 a rank, with a test of 10,000 after every epoch. Our efficiency is against " ref (ref == 1 ? " rank" : " ranks") ", that of Theta against 8."
    }' "$out/tables/mnist-time.csv" "$([[ -s $out/tables/mnist.csv ]] && echo "$out/tables/mnist.csv" || echo /dev/null)"
}

aggregation_table() {
    local f
    for f in "$out"/aggregation/ranks-*.json; do
        awk -v name="${f##*/}" "$awk_json"'{ split(name, p, "[-.]"); printf "%d,%d,%d,%.6g,%.6g,%.6g,%.6g,%.6g\n", p[2], p[4], p[6],
            num("samples_per_s.p16"), num("samples_per_s.p50"), num("samples_per_s.p84"), num("step_s.p50"), num("comm_exposed_s") }' "$f"
    done | sort -t , -k 1n -k 2n -k 3n >"$out/tables/aggregation.rows"
    {
        echo "ranks,batch_per_rank,aggregation,records_per_s_p16,records_per_s_p50,records_per_s_p84,update_s,exposed_s"
        cat "$out/tables/aggregation.rows"
    } >"$out/tables/aggregation.csv"
    awk -F , "$awk_json"'
    { key = $1 "," $2 "," $3; here[key] = 1; lo[key] = $4; mid[key] = $5; hi[key] = $6; share[key] = $8 / $7; if ($1 > most) most = $1 }
    function say(batch, k, text, plain, word,   key, x) {
        key = most "," batch "," k
        if (!here[key]) return
        x = mid[key] / mid[most ",1,1"]
        if (word == "") word = plain == "" ? "" : x > 1.05 ? "reproduced in its direction: more is faster" : "not reproduced: here a larger batch gains " sprintf("%.0f", 100 * x - 100) " %"
        print "| " most " | " batch " | " k " | " text " | " plain " | " figure(mid[key]) " (" figure(lo[key]) " to " figure(hi[key]) ") | " sprintf("%.2f", x) " | " (most == 1 ? "" : percent(share[key])) " | " word " |"
    }
    END {
        print "| ranks | batch a rank | aggregation | published records/s, 64 V100 | over its first row | ours (central 68 %) | over our first row | exchange | verdict |\n|---|---|---|---|---|---|---|---|---|"
        say(1, 1, "71.44 to 164.45", "1", "not comparable: published is a range of a factor of 2.3")
        say(1, 2, "157.18", "0.96 to 2.20", "not reproduced: its optimisers did not wait for the second batch")
        say(1, 4, "157.18", "0.96 to 2.20", "not reproduced: as 2")
        say(2, 1, "232.85", "1.42 to 3.26", "")
        say(4, 1, "299.38", "1.82 to 4.19", "")
        if (most > 1) {
            print ""
            print "| batch, one rank | ours (central 68 %) | over its first row | a rank of " most ": its share |\n|---|---|---|---|"
            for (b = 1; b <= 4; b *= 2) { key = "1," b ",1"; other = most "," b ",1"
                if (here[key] && here[other]) print "| " b " | " figure(mid[key]) " (" figure(lo[key]) " to " figure(hi[key]) ") | " sprintf("%.2f", mid[key] / mid["1,1,1"]) " | " percent(mid[other] / most / mid[key]) " |" }
        }
    }' "$out/tables/aggregation.rows"
    rm "$out/tables/aggregation.rows"
}

# Seconds of an epoch: the mean of the last 5 of 6 (from one validation to the next), or the only one without its set-up.
epoch_seconds() {
    awk -v setup="$(tr -d ' \n' <"$1/summary.json" | awk "$awk_json"'{ print num("ledger_s.setup") }')" "$awk_json"'
    /"val\// { t[++n] = num("time_s") }
    END { print (n > 5 ? (t[n] - t[n - 5]) / 5 : t[1] - setup) }' "$1/metrics.jsonl"
}

epochs_table() {
    local d name n
    {
        echo "network,ranks,epoch_s"
        for name in mnist resnet18; do
            for d in "$out/epochs/$name"-*; do echo "$name,${d##*-},$(epoch_seconds "$d")"; done | sort -t , -k 2n
        done
    } >"$out/tables/epochs.csv"
    awk -F , "$awk_json"'
    FNR > 1 { s[$1, $2] = $3; ranks[$2] = 1; if ($2 + 0 > most) most = $2 + 0 }
    END {
        split("1 4 8 16 32", r, " "); split("11.7 2.64 1.37 0.80 0.49", m, " "); split("13.6 2.66 1.43 0.82 0.50", c, " ")
        for (i = 1; i <= 5; i++) { mnist[r[i]] = m[i]; cifar[r[i]] = c[i]; ranks[r[i]] = 1 }
        print "| ranks | MNIST, A100s | MNIST, ours | CIFAR-10, A100s | CIFAR-10 with ResNet-18, one GPU | the same, ours | verdict |\n|---|---|---|---|---|---|---|"
        for (n = 1; n <= 32; n *= 2) if (ranks[n])
            print "| " n " | " mnist[n] " | " (s["mnist", n] ? sprintf("%.2f", s["mnist", n]) : "") " | " cifar[n] " | " (n == 1 ? "34" : "") " | " \
                (s["resnet18", n] ? sprintf("%.1f", s["resnet18", n]) : "") " | not comparable: " \
                (!s["mnist", n] && !s["resnet18", n] ? "not measured on this machine" : mnist[n] != "" ? "a core against a GPU" : "no published row") " |"
        print "\nSeconds of an epoch with its test: MNIST 60,000 and 10,000 images, the mean of the last 5 of 6 epochs; CIFAR-10 50,000 and 10,000, one epoch. 64 images a rank. The network of the A100 column for CIFAR-10 is another one."
    }' "$out/tables/epochs.csv"
}

# full_table STUDY NOTE: points at full size.
full_table() {
    {
        echo "ranks,batch_per_rank,steps,samples_per_s_p50,step_s_p16,step_s_p50,step_s_p84,exposed_s,flop_s"
        cat "$out/$1"/ranks-*.json | awk "$awk_json"'{ printf "%d,%d,%d,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n", num("ranks"), num("batch_per_rank"), num("steps"), num("samples_per_s.p50"),
            num("step_s.p16"), num("step_s.p50"), num("step_s.p84"), num("comm_exposed_s"), num("flop_s") }' | sort -n
    } >"$out/tables/$1.csv"
    awk -F , "$awk_json"'
    BEGIN { print "| ranks | batch a rank | samples/s | s/batch (central 68 %) | exchange | GFLOP/s |\n|---|---|---|---|---|---|" }
    FNR > 1 { print "| " $1 " | " $2 " | " figure($4) " | " figure($6) " (" figure($5) " to " figure($7) ") | " ($1 == 1 ? "" : percent($8 / $6)) " | " figure($9 / 1e9) " |" }' "$out/tables/$1.csv"
}

write_table() {
    {
        case $1 in
        mnist-time) mnist_time_table ;;
        aggregation) aggregation_table ;;
        epochs) epochs_table ;;
        aae-3375) full_table aae-3375 ;;
        vit)
            full_table vit
            awk -F , 'FNR == 2 { printf "\nAn epoch of 50,000 images would take %.1f hours at this rate; it was not run.\n", 50000 / $4 / 3600 }' "$out/tables/vit.csv"
            ;;
        *) weak_table "$1" ;;
        esac
        echo
        cat "$out/$1/where.txt"
    } >"$out/tables/$1.md"
}

# --- into the documents -------------------------------------------------------------------------------------------------

# charts_of STUDY DOCS PLACE: copies the charts that documents show, and prints the lines that show them.
charts_of() {
    local chart charts="throughput efficiency"
    if [[ -e $out/$1/time.svg ]]; then charts=time; fi
    for chart in $charts; do
        [[ -e $out/$1/$chart.svg ]] || continue
        cat "$out/$1/$chart.svg" >"$2/$1-$3-$chart.svg"
        printf '\n![%s of %s](%s-%s-%s.svg)\n' "$chart" "$1" "$1" "$3" "$chart"
    done
}

# put_block DOCUMENT LINE FILE: what stands between LINE and "<!-- end -->" becomes what is in FILE.
put_block() {
    local changed
    changed=$(awk -v open="$2" -v block="$3" '
        $0 == open { print; print ""; while ((getline line < block) > 0) print line; print ""; inside = 1; next }
        inside && $0 == "<!-- end -->" { inside = 0 }
        !inside' "$1")
    printf '%s\n' "$changed" >"$1"
}

# install_tables DOCS PLACE: the lines between "<!-- STUDY PLACE -->" and "<!-- end -->" of every document become the table of
# STUDY and its charts; the CSV file is copied as STUDY-PLACE.csv.  The results are only read.
install_tables() {
    local work table study doc n=0
    work=$(mktemp -d)
    overview "$work"
    for table in "$out"/tables/*.md "$work"/weak.md; do
        [[ -e $table ]] || continue
        study=$(basename "$table" .md)
        for doc in "$1"/*.md; do
            grep -qF "<!-- $study $2 -->" "$doc" || continue
            cat "${table%.md}.csv" >"$1/$study-$2.csv"
            {
                cat "$table"
                printf '\nAll figures: [%s-%s.csv](%s-%s.csv).\n' "$study" "$2" "$study" "$2"
                charts_of "$study" "$1" "$2"
            } >"$work/block"
            put_block "$doc" "<!-- $study $2 -->" "$work/block"
            echo "$study -> $doc"
            n=$((n + 1))
        done
    done
    rm -r "$work"
    ((n > 0)) || fail "nothing was copied: $out/tables has no table that a document in $1 has a place for as \"$2\" (a line <!-- STUDY $2 -->)"
}
