#!/usr/bin/env bash
# Entry of the verifier. Reads /workspace, writes /logs/verifier/reward.json.
set -euo pipefail
exec python3 -I "$(dirname "$0")/verify.py"
