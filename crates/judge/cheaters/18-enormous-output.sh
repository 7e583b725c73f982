# More than anybody can take: a hole of ten gigabytes, many files, deep directories, long names.
truncate -s 10G "$OUTPUT" 2> /dev/null
dd if=/dev/zero of=/workspace/zeros bs=1M count=200000 2> /dev/null
rm -f /workspace/zeros
cd /workspace && seq 1 20000 | xargs -n 1000 touch 2> /dev/null
deep=/workspace; for i in $(seq 1 200); do deep=$deep/d; done; mkdir -p "$deep" 2> /dev/null
touch "/workspace/$(printf 'n%.0s' $(seq 1 250))" 2> /dev/null
