# Directories as deep, and names as long, as they may be.
cd /workspace; name=$(printf "n%.0s" $(seq 1 250)); for n in $(seq 1 15); do mkdir -p "$name" && cd "$name" || break; done; echo x > x 2> /dev/null; echo y > "$name" 2> /dev/null; true
