# Files that are large and take no space, until somebody copies them.
cd /workspace; for n in 1 2 3; do truncate -s 64M "hole$n"; done; truncate -s 60M "$OUTPUT"
