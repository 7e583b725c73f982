# A pipe where the answer belongs: who reads it waits for ever.
rm -rf "$OUTPUT"; mkfifo "$OUTPUT"
