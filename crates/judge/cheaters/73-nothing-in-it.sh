# An empty answer.
: > "$OUTPUT"
