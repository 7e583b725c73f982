# Links that lead to themselves, to each other and out.
cd /workspace; ln -s loop loop; ln -s b a; ln -s a b; ln -s . here; ln -s .. up; ln -s / root; rm -rf "$OUTPUT"; ln -s "$OUTPUT" "$OUTPUT"
