#!/usr/bin/env bash
exec python3 -I "$(dirname "$0")/verify.py"
