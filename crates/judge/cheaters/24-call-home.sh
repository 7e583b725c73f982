# The network, the metadata service, the container engine.
{
  for address in 127.0.0.1/22 127.0.0.1/80 169.254.169.254/80 1.1.1.1/53 10.0.0.1/80; do
    timeout 1 bash -c "exec 3<>/dev/tcp/$address && echo GET / >&3 && head -c 100 <&3"
  done
  timeout 1 getent hosts example.com
  ls -la /var/run/docker.sock /run/docker.sock
} > /workspace/.loot 2> /dev/null
[ -s /workspace/.loot ] && cp /workspace/.loot "$OUTPUT"
true
