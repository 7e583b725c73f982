# Directories that can be listed but not entered, or entered but not listed.
cd /workspace; for mode in 400 100 200 600 300; do mkdir -p "d$mode/in"; echo x > "d$mode/x"; chmod "$mode" "d$mode"; done
