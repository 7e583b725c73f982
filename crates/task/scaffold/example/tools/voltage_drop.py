"""Voltage drop of a balanced three-phase circuit from its mV/A.m value."""

import argparse

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--current", type=float, required=True, help="design current in A")
parser.add_argument("--length", type=float, required=True, help="route length in m")
parser.add_argument("--value", type=float, required=True, help="data-sheet value in mV per A and m")
arguments = parser.parse_args()
print(arguments.current * arguments.length * arguments.value / 1000)
