#!/usr/bin/env bash
# test_casts.sh: in 16 bits no cast is a pass over memory of its own: the plans of all trials have none, on the CPU.
# And what lies between products has kernels that read and write 16 bits: none that is "wide", with copies in fp32
# around it, and none of the reference's.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
export LOCKSTEP_THREADS=1

both() { # every trial in both types
    for e in mnist mnist-keras linear resnet18-cifar vit-tiny cosmogan wgan-gp aae cyclegan experiments/vit-small.yaml; do
        echo "$e bf16"
        echo "$e fp16"
    done
}
while read -r e precision; do
    run 0 plan "$e" precision="$precision" batch.per_rank=2 --device cpu --json
    n=$((n + 1))
    casts=$(grep -o '"op": *"cast"' "$work/out" | wc -l)
    nodes=$(grep -o '"op": *"' "$work/out" | wc -l)
    low=$(grep -oE '"dtype": *"(bf16|f16)"' "$work/out" | wc -l)
    [ "$casts" -eq 0 ] || fail "$e: $casts of $nodes nodes are casts"
    n=$((n + 1))
    [ "$nodes" -gt 5 ] && [ "$low" -gt 0 ] || fail "$e: $nodes nodes, $low tensors in 16 bits: nothing to count in"
done < <(both)

# Products are wide where the processor has none of bf16 numbers, or where that is faster.
products='conv2d|conv2d_dx|conv2d_dw|conv2d_dw_pooled|matmul|attention|attention_grad|random_normal|random_uniform'
products="$products|unless|either|rescale" # of a single number
for e in resnet18-cifar vit-tiny cosmogan mnist-keras; do
    run 0 plan "$e" precision=fp16 batch.per_rank=2 --device cpu --json
    n=$((n + 1))
    slow=$(grep -oE '"op": *"[a-z0-9_]+", *"attributes": *"[^"]*", *"layer": *"[^"]*", *"impl": *"(wide_[^"]*|ref)"' "$work/out" |
        sed -E 's/"op": *"([a-z0-9_]+)".*"impl": *"([^"]*)"/\1 \2/' | grep -vE "^($products) " | sort | uniq -c)
    [ -z "$slow" ] || fail "$e: $slow"
    grep -q '"impl": *"' "$work/out" || fail "$e: no kernels in the plan"
done

# Heads are read and written where products leave them, by processors that multiply bf16 numbers.
run 0 info
if grep -qE 'amx|avx512_?bf16' "$work/out"; then
    run 0 plan vit-tiny precision=bf16 batch.per_rank=2 --device cpu --json
    n=$((n + 1))
    turned=$(grep -oE '"op": *"(transpose|concat|fill)"' "$work/out" | wc -l)
    grep -q '"op": *"self_attention_grad"' "$work/out" && [ "$turned" -lt 8 ] || fail "vit-tiny: $turned nodes around attention"
fi

[ "$failures" -eq 0 ] && echo "casts: $n checks, all as expected"
exit $((failures > 0))
