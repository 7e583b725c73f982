# An answer that is somebody else's file.
rm -rf "$OUTPUT"
for target in /etc/passwd /tests/fixtures/golden_pass.md /workspace/../tests/fixtures/golden_pass.json /tests/fixtures/golden_pass.json; do
  ln -sfn "$target" "$OUTPUT"
done
ln -sfn /tests /workspace/tests-link
mkfifo /workspace/pipe
ln "$0" /workspace/hard 2> /dev/null
mknod /workspace/device c 1 3 2> /dev/null
