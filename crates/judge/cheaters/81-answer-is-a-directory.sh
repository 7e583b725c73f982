# A directory with a thousand files where the answer belongs.
rm -rf "$OUTPUT"; mkdir -p "$OUTPUT"; cd "$OUTPUT" && seq 1 1000 | xargs touch
