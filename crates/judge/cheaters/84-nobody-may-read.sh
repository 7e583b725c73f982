# Files and directories without any permission.
echo "{}" > "$OUTPUT"; mkdir -p /workspace/shut/in; echo x > /workspace/shut/in/x
chmod 000 "$OUTPUT" /workspace/shut/in/x /workspace/shut/in /workspace/shut
