# As many files as a submission may have.
mkdir -p /workspace/m && cd /workspace/m && for n in $(seq 1 9900); do echo "$n" > "$n"; done
