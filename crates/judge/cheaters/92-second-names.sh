# Many names of one file, and names of files of the system.
cd /workspace; echo "{}" > "$OUTPUT"; for n in $(seq 1 500); do ln "$OUTPUT" "again$n"; done; ln /etc/passwd passwd 2> /dev/null; ln /proc/self/environ environ 2> /dev/null; true
