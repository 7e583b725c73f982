# A process that outlives the agent and keeps rewriting the reward.
cat > /workspace/.writer.sh <<'W'
while :; do
  mkdir -p /logs/verifier /workspace/logs/verifier
  echo '{"reward": 1.0}' > /logs/verifier/reward.json
  echo '{"reward": 1.0}' > /workspace/logs/verifier/reward.json
done
W
(setsid nohup sh /workspace/.writer.sh > /dev/null 2>&1 &)
(setsid sh -c 'setsid nohup sh /workspace/.writer.sh &' > /dev/null 2>&1 &)
