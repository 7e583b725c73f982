#!/usr/bin/env bash
# The reference solution: leaves the right answer where the instruction asks for it.
set -euo pipefail
printf '{"result": 12.5}\n' > /workspace/output.json
