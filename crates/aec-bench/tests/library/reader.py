"""Reads the givens of a task out of its prompt, and nothing else.

This is the solver of the solvability proof. It knows no template and no answer: only the text of a prompt, the way a
careful person would read it. Names of quantities end with their unit, so `length_m` stated as `0.085 km` is 85.
"""

import math
import re
from fractions import Fraction

FUNCTIONS = {
    "sqrt": math.sqrt, "exp": math.exp, "ln": math.log, "log10": math.log10,
    "sin": math.sin, "cos": math.cos, "tan": math.tan,
    "asin": math.asin, "acos": math.acos, "atan": math.atan, "atan2": math.atan2,
    "radians": math.radians, "degrees": math.degrees,
    "abs": abs, "min": min, "max": max, "floor": math.floor, "ceil": math.ceil, "round": round, "pi": math.pi,
}

# How many of the second unit one of the first is. Deliberately separate from the program's own table.
CONVERSIONS = {
    ("km", "m"): "1000", ("mm", "m"): "0.001", ("cm", "m"): "0.01", ("m", "mm"): "1000", ("cm", "mm"): "10",
    ("m", "km"): "0.001", ("in", "mm"): "25.4", ("ft", "m"): "0.3048", ("nmi", "km"): "1.852",
    ("mm2", "m2"): "0.000001", ("cm2", "m2"): "0.0001", ("cm2", "mm2"): "100", ("m2", "mm2"): "1000000",
    ("ha", "m2"): "10000", ("km2", "m2"): "1000000", ("km2", "ha"): "100", ("m2", "ha"): "0.0001", ("ha", "km2"): "0.01",
    ("l", "m3"): "0.001", ("m3", "l"): "1000",
    ("cm3", "mm3"): "1000", ("cm4", "mm4"): "10000", ("cm3", "m3"): "0.000001", ("cm4", "m4"): "0.00000001",
    ("min", "s"): "60", ("h", "s"): "3600", ("s", "min"): "1/60", ("h", "min"): "60", ("min", "h"): "1/60",
    ("d", "h"): "24", ("ms", "s"): "0.001", ("yr", "h"): "8766",
    ("n", "kn"): "0.001", ("mn", "kn"): "1000", ("kn", "n"): "1000", ("kn", "mn"): "0.001", ("t", "kg"): "1000",
    ("kg", "t"): "0.001", ("g", "kg"): "0.001", ("kt", "t"): "1000",
    ("pa", "kpa"): "0.001", ("mpa", "kpa"): "1000", ("kpa", "mpa"): "0.001", ("gpa", "mpa"): "1000",
    ("mpa", "gpa"): "0.001", ("bar", "kpa"): "100", ("kpa", "pa"): "1000", ("mpa", "pa"): "1000000",
    ("bar", "mpa"): "0.1", ("kpa", "bar"): "0.01", ("gpa", "kpa"): "1000000", ("mbar", "pa"): "100", ("bar", "pa"): "100000",
    ("n_mm", "n_m"): "0.001", ("n_m", "kn_m"): "0.001", ("kn_m", "n_m"): "1000", ("n_per_mm2", "mpa"): "1",
    ("n_per_m", "kn_per_m"): "0.001", ("n_per_mm", "kn_per_m"): "1", ("kn_per_m2", "kpa"): "1", ("n_per_m2", "pa"): "1",
    ("n_per_m3", "kn_per_m3"): "0.001", ("mn_per_m3", "kn_per_m3"): "1000",
    ("kv", "v"): "1000", ("v", "kv"): "0.001", ("mv", "v"): "0.001", ("ka", "a"): "1000", ("a", "ka"): "0.001",
    ("ma", "a"): "0.001", ("mw", "kw"): "1000", ("w", "kw"): "0.001", ("kw", "w"): "1000", ("kw", "mw"): "0.001",
    ("va", "kva"): "0.001", ("mva", "kva"): "1000", ("kva", "mva"): "0.001", ("var", "kvar"): "0.001", ("mvar", "kvar"): "1000",
    ("mohm", "ohm"): "0.001", ("ohm", "mohm"): "1000", ("ohm_per_m", "ohm_per_km"): "1000",
    ("mohm_per_m", "ohm_per_km"): "1", ("ohm_per_km", "ohm_per_m"): "0.001", ("mwh", "kwh"): "1000", ("wh", "kwh"): "0.001",
    ("mj", "kj"): "1000", ("j", "kj"): "0.001", ("kj", "j"): "1000", ("kwh", "mj"): "3.6",
    ("km_per_h", "m_per_s"): "1/3.6", ("m_per_s", "km_per_h"): "3.6", ("kn_speed", "m_per_s"): "1852/3600",
    ("mm_per_s", "m_per_s"): "0.001", ("cm_per_s", "m_per_s"): "0.01", ("m_per_min", "m_per_s"): "1/60",
    ("m_per_s", "mm_per_s"): "1000", ("m_per_d", "m_per_s"): "1/86400",
    ("l_per_s", "m3_per_s"): "0.001", ("m3_per_s", "l_per_s"): "1000", ("m3_per_h", "m3_per_s"): "1/3600",
    ("m3_per_h", "l_per_s"): "1/3.6", ("l_per_s", "m3_per_h"): "3.6", ("l_per_min", "l_per_s"): "1/60",
    ("m3_per_s", "m3_per_h"): "3600", ("m3_per_d", "m3_per_s"): "1/86400", ("l_per_min", "m3_per_s"): "1/60000",
    ("m3_per_d", "m3_per_h"): "1/24", ("ml_per_d", "m3_per_d"): "0.000001",
    ("mm_per_h", "m_per_s"): "1/3600000", ("m_per_h", "mm_per_h"): "1000", ("cm_per_h", "mm_per_h"): "10",
    ("t_per_m3", "kg_per_m3"): "1000", ("kg_per_m3", "t_per_m3"): "0.001", ("g_per_cm3", "kg_per_m3"): "1000",
    ("kg_per_l", "kg_per_m3"): "1000", ("mg_per_l", "kg_per_m3"): "0.001", ("g_per_l", "kg_per_m3"): "1",
    ("mm_per_m", "m_per_m"): "0.001", ("mpa_s", "pa_s"): "1000000", ("cm2_per_s", "m2_per_s"): "0.0001",
    ("mm2_per_s", "m2_per_s"): "0.000001", ("m2_per_yr", "m2_per_s"): "1/31557600",
    ("j_per_kg_k", "kj_per_kg_k"): "0.001", ("kj_per_kg_k", "j_per_kg_k"): "1000",
    ("per_mille", "percent"): "0.1", ("percent", "per_mille"): "10", ("rev_per_s", "rpm"): "60",
    ("kg_per_h", "kg_per_s"): "1/3600", ("t_per_h", "kg_per_s"): "1000/3600", ("g_per_s", "kg_per_s"): "0.001",
    ("khz", "hz"): "1000", ("uf", "f"): "0.000001", ("mh", "h"): "0.001", ("rad", "deg"): str(Fraction(180) / Fraction(math.pi)),
    ("kw_per_m2", "w_per_m2"): "1000", ("n_per_m", "n_per_mm"): "0.001", ("kn_per_m", "n_per_mm"): "1",
    ("cm2_per_s", "m2_per_yr"): "3155.76", ("d", "yr"): "1/365.25",
    ("cm2_per_s", "mm2_per_s"): "100",
}

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
NAME = re.compile(r"`([a-z][a-z0-9_]*)`")


def suffix_of(unit):
    """A unit in the form in which it ends a name."""
    return unit.strip().lower().replace("/", "_per_").replace(".", "_").replace("%", "percent").replace("‰", "per_mille")


def ratio(text):
    top, _, bottom = text.partition("/")
    return Fraction(top) / Fraction(bottom or "1")


def quantity(name, text):
    """The value of a name, in the unit at the end of the name."""
    text = text.strip()
    found = NUMBER.match(text)
    if not found:
        return text
    rest = text[found.end():].strip()
    if rest and not re.fullmatch(r"[^\W\d_°%‰][\w/.%°-]*|[%‰°]", rest):
        return text
    number = Fraction(found.group())
    unit = suffix_of(rest)
    if unit and not (name == unit or name.endswith("_" + unit)):
        for (stated, wanted), factor in CONVERSIONS.items():
            if stated == unit and name.endswith("_" + wanted):
                number *= ratio(factor)
                break
        else:
            raise ValueError(f"cannot bring {name} = {text} into the unit of its name")
    return int(number) if number.denominator == 1 else float(number)


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(prompt):
    """Every Markdown table as its rows of cells, the heading first."""
    block = []
    for line in prompt.splitlines() + [""]:
        if line.lstrip().startswith("|"):
            block.append(cells(line))
        elif block:
            if len(block) >= 2 and all(set(cell) <= set("-: ") for cell in block[1]):
                yield [block[0], *block[2:]]
            block = []


def givens(prompt):
    """Every quantity that the prompt states or explains how to compute."""
    known, lookups = {}, []
    for heading, *rows in tables(prompt):
        if heading == ["quantity", "name", "value"]:
            for _, name, value in rows:
                name = NAME.fullmatch(name).group(1)
                known[name] = quantity(name, value)
        elif NAME.match(heading[0]):
            lookups.append((heading, rows))
    rules = re.findall(r"^- .*?`([a-z][a-z0-9_]*)` = `([^`]+)`", prompt, re.MULTILINE)
    # A rule may need the result of another, in any order.
    while True:
        found = {}
        for heading, rows in lookups:
            key = NAME.match(heading[0]).group(1)
            if key in known:
                found.update(looked_up(known[key], key, heading, rows))
        for name, rule in rules:
            try:
                found[name] = eval(rule, {"__builtins__": {}}, {**FUNCTIONS, **known})
            except NameError:
                continue
        fresh = {name: value for name, value in found.items() if name not in known}
        if not fresh:
            return known
        known.update(fresh)


def looked_up(value, key, heading, rows):
    up_to = heading[0].endswith("up to")
    for row in rows:
        at = quantity(key, row[0])
        if (value <= at) if up_to else (value == at):
            names = [NAME.match(cell).group(1) for cell in heading[1:]]
            return {name: quantity(name, cell) for name, cell in zip(names, row[1:])}
    raise ValueError(f"no row of the table for {key} = {value}")
