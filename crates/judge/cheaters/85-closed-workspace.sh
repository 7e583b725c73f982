# The workspace itself without any permission, and the logs too.
echo "{}" > "$OUTPUT"; chmod 000 /logs /workspace
