"""Scores the calculation report: reads its Markdown tables and compares them with the instance.

Everything that the report states about a quantity counts: a quantity is right only if every value given for it is
right. Verdicts must agree with the report's own utilisations, the list of failing columns with its verdicts.
"""

import argparse
import html
import json
import math
import os
import re
import stat
import sys

LARGEST = 1 << 20
HEADINGS = {
    "basis": "basis of calculation",
    "loads": "design axial loads",
    "resistance": "buckling resistance",
    "verdicts": "utilisation and verdicts",
    "summary": "summary",
}
LEAST_TEXT = 30  # characters below a heading that make it a section
LONGEST_NAME = 200  # characters of a heading, a label or a mark

FORCE = {"kn": 1.0, "n": 0.001, "mn": 1000.0}
MASS = {"t": 1.0, "tonne": 1.0, "tonnes": 1.0, "mg": 1.0, "kg": 0.001}
RATIO = {"": 1.0, "-": 1.0, "%": 0.01}

# Weight, relative and absolute tolerance, units, and the names of the table column.
NUMBERS = {
    "permanent_load_kn": (
        0.10, 0.005, 0.05, FORCE,
        {"gk", "permanentload", "permanentloadgk", "gkpermanentload", "characteristicpermanentloadgk"},
    ),
    "design_load_kn": (
        0.21, 0.005, 0.05, FORCE,
        {"ned", "designaxialload", "designaxialloadned", "neddesignaxialload", "designloadned"},
    ),
    "slenderness_y": (0.08, 0.005, 0.002, RATIO, {"slendernessy", "slendernessyy", "lambday", "slendernesslambday"}),
    "slenderness_z": (0.08, 0.005, 0.002, RATIO, {"slendernessz", "slendernesszz", "lambdaz", "slendernesslambdaz"}),
    "buckling_resistance_kn": (
        0.20, 0.005, 0.05, FORCE,
        {"nbrd", "bucklingresistance", "bucklingresistancenbrd", "nbrdbucklingresistance"},
    ),
    "utilisation": (
        0.09, 0.005, 0.002, RATIO,
        {"utilisation", "utilization", "utilisationnednbrd", "utilizationnednbrd", "utilisationu", "nednbrd"},
    ),
}
SECTION_WEIGHT, SECTION_NAMES = 0.06, {"section", "sectioninforce", "sectionsize"}
VERDICT_WEIGHT, VERDICT_NAMES = 0.04, {"verdict", "verdictpassfail", "result"}
KEY_NAMES = {"column", "mark", "columnmark", "columnno", "member"}
HEADING_WEIGHT = 0.04
SUMMARY_WEIGHTS = {
    "columns_checked": 0.01,
    "governing_column": 0.02,
    "highest_utilisation": 0.01,
    "failing_columns": 0.03,
    "total_steel_mass_t": 0.03,
}
SUMMARY_LABELS = {
    "columnschecked": "columns_checked",
    "numberofcolumnschecked": "columns_checked",
    "governingcolumn": "governing_column",
    "highestutilisation": "highest_utilisation",
    "highestutilization": "highest_utilisation",
    "failingcolumns": "failing_columns",
    "columnsthatfail": "failing_columns",
    "totalsteelmass": "total_steel_mass_t",
}
# A verdict is no evidence where the utilisation beside it is out of the air.
NEAR_ENOUGH = 0.1

DASHES = str.maketrans({dash: "-" for dash in "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d"})
SPACES = str.maketrans({space: " " for space in "\u00a0\u2007\u2008\u2009\u200a\u202f\u3000\t"})
UNSEEN = str.maketrans("", "", "\u200b\u200c\u200d\u2060\ufeff\u00ad")
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})([^<>]{0,400})>")
HIDING = re.compile(
    r"\bhidden\b|display\s{0,9}:\s{0,9}none|(?:opacity|font-size)\s{0,9}:\s{0,9}0"
    r"|color\s{0,9}:\s{0,9}(?:white|#fff|transparent)",
    re.IGNORECASE,
)
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}  # elements without an end
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`]*)$")
DIGITS = re.compile(
    r"([+-]?)(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:[ ']\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)((?:[eE][+-]?\d{1,3})?)"
)
MARK = re.compile(r"(?<![A-Z0-9])C[ -]?(\d{1,4})(?![A-Z0-9.])")


def plain(text):
    """A cell or heading without its markup."""
    text = html.unescape(text.translate(UNSEEN)).translate(DASHES).translate(SPACES)
    text = re.sub(r"<[^<>]{1,60}>", "", text)
    text = re.sub(r"\\(?:text|mathrm|mathit|mathbf|bar|overline|left|right)(?![a-zA-Z])", "", text)
    text = text.replace("\\lambda", "\u03bb").replace("\\,", " ").replace("\\%", "%")
    return re.sub(r"[*`$\\{}]", "", text).strip()


def letters(text):
    """What tells names apart: letters and digits, Greek written out."""
    text = plain(text).lower().replace("\u03bb", "lambda").replace("\u03c7", "chi")
    return re.sub(r"[^a-z0-9]", "", text)


def unfenced(lines):
    """The lines outside code blocks; a block that is marked as Markdown is a wrapper and is opened."""
    kept, fence, wrapper = [], "", False
    filled = [line.strip() for line in lines if line.strip()]
    # A whole report inside one plain block is a wrapper too.
    whole = len(filled) > 2 and FENCE.match(filled[0]) and filled[-1] in ("```", "~~~")
    inner = filled[1:-1] if whole else []
    whole = bool(whole) and not any(FENCE.match(line) for line in inner)
    for line in lines:
        found = FENCE.match(line)
        if not fence and found:
            fence = found.group(1)
            wrapper = whole or found.group(2).strip().lower() in ("markdown", "md")
        elif fence and found and found.group(1).startswith(fence) and not found.group(2).strip():
            fence = ""
        elif not fence or wrapper:
            kept.append(line)
    return kept


def seen(text):
    """The text without comments and without elements that a reader would not see."""
    parts, at = [], 0
    while True:
        start = text.find("<!--", at)
        if start < 0:
            parts.append(text[at:])
            break
        parts.append(text[at:start])
        end = text.find("-->", start + 4)
        if end < 0:
            break
        at = end + 3
    text = "".join(parts)
    parts, at, name, depth = [], 0, "", 0
    for tag in TAG.finditer(text):
        closing, element = tag.group(1), tag.group(2).lower()
        if depth:
            if element == name:
                depth += -1 if closing else 1
                if depth == 0:
                    at = tag.end()
        elif closing or element in VOID:
            continue
        elif element in ("script", "style", "template") or HIDING.search(tag.group(3)):
            parts.append(text[at : tag.start()])
            name, depth = element, 1
    if not depth:
        parts.append(text[at:])
    return "".join(parts)


def cells_of(line):
    line = line.strip().replace("\\|", "\0")
    if line.startswith("|"):
        line = line[1:]
    if line.endswith("|"):
        line = line[:-1]
    return [cell.strip().replace("\0", "|") for cell in line.split("|")]


def is_delimiter(line):
    cells = cells_of(line.translate(DASHES))
    return "|" in line and all(re.fullmatch(r":?-+:?", cell.replace(" ", "")) for cell in cells)


def tables_of(lines):
    """Header and rows of every pipe table."""
    tables, at = [], 0
    while at + 1 < len(lines):
        if "|" not in lines[at] or not is_delimiter(lines[at + 1]):
            at += 1
            continue
        header, rows = cells_of(lines[at]), []
        at += 2
        while at < len(lines) and "|" in lines[at]:
            rows.append(cells_of(lines[at]))
            at += 1
        tables.append((header, rows))
    return tables


def heading_of(line):
    """The words of a heading line, without level, number and markup."""
    line = line.strip()
    is_bold = line.startswith("**") and line.rstrip(":").endswith("**")
    if len(line) > LONGEST_NAME or not (is_bold or re.match(r"#{1,6}\s", line)):
        return None
    text = re.sub(r"^(?:section\s+)?\d{0,3}(?:\.\d{1,3})*\s*[.):-]?\s*", "", plain(line.strip("#")).lower())
    return " ".join(text.strip(" :.").split())


def sections_of(lines):
    """The text below each of the prescribed headings."""
    texts, current = {}, None
    for at, line in enumerate(lines):
        title = heading_of(line)
        if title is None and at + 1 < len(lines) and re.fullmatch(r" {0,3}(=+|-+)\s*", lines[at + 1]):
            title = heading_of("# " + line.strip()) if line.strip() and "|" not in line else None
        known = [name for name, words in HEADINGS.items() if words == title]
        if known:
            current = known[0]
            texts.setdefault(current, [])
        elif current:
            texts[current].append(line)
    return texts


def name_and_unit(header):
    """`N_Ed (kN)` is the name `ned` and the unit `kn`."""
    if len(header) > LONGEST_NAME:
        return "", ""
    text = plain(header)
    known = {unit for units in (FORCE, MASS, RATIO) for unit in units if unit}
    found = re.fullmatch(r"(.*?)\s*[(\[]\s*([^()\[\]]*?)\s*[)\]]", text) or re.fullmatch(
        r"(.*?)(?:\s*[,/]\s*|\s+in\s+)([a-zA-Z%]+)", text
    )
    if found and found.group(2).lower() in known | {""}:
        return letters(found.group(1)), found.group(2).lower()
    return letters(text), ""


def is_empty(cell):
    return plain(cell).lower().strip(" .") in ("", "-", "--", "---", "n/a", "na", "none")


def number(cell, unit, units):
    """The number of a cell in the expected unit; None if it is not exactly one number with a fitting unit."""
    text = plain(cell)
    text = text[1:].strip() if text[:1] == "\u2248" else text
    if len(text) > 60:
        return None
    found = DIGITS.match(text)
    if not found:
        return None
    own = text[found.end() :].strip().lower().strip("[]()")
    unit = own or unit
    factor = units.get(unit) if unit else 1.0
    if factor is None:
        return None
    digits = re.sub(r"[, ']", "", found.group(2))
    value = float(found.group(1) + digits + found.group(3)) * factor
    return value if math.isfinite(value) else None


def mark_of(cell):
    """The mark that a cell names, if it names one and nothing else."""
    if len(cell) > LONGEST_NAME:
        return None
    text = re.sub(r"^COLUMN\s*", "", plain(cell).upper())
    found = MARK.fullmatch(text.split("(")[0].strip(" .:"))
    return f"C{int(found.group(1)):02d}" if found else None


def section_of(cell):
    text = plain(cell).upper().replace("\u00d7", "X").replace(" ", "").replace("-", "")
    text = re.sub(r"^HE(\d+)([AB])$", r"HE\2\1", text)
    return re.sub(r"^SHS(\d+)X\1X", r"SHS\1X", text)


def verdict_of(cell):
    word = letters(cell)
    if word in ("pass", "passes", "passed", "ok"):
        return "PASS"
    return "FAIL" if word in ("fail", "fails", "failed", "notok") else None


def is_close(value, expected, relative, absolute):
    return value is not None and abs(value - expected) <= max(relative * abs(expected), absolute)


def read_columns(tables):
    """All that the tables say: quantity -> mark -> values, a value that cannot be read being None."""
    said = {name: {} for name in [*NUMBERS, "section", "verdict"]}
    for header, rows in tables:
        keys = [at for at, cell in enumerate(header) if name_and_unit(cell)[0] in KEY_NAMES]
        if not keys:
            continue
        readers = []
        for at, cell in enumerate(header):
            name, unit = name_and_unit(cell)
            for quantity, (_, _, _, units, names) in NUMBERS.items():
                if name in names:
                    readers.append((at, quantity, lambda text, unit=unit, units=units: number(text, unit, units)))
            if name in SECTION_NAMES:
                readers.append((at, "section", section_of))
            if name in VERDICT_NAMES:
                readers.append((at, "verdict", verdict_of))
        for row in rows:
            mark = mark_of(row[keys[0]]) if keys[0] < len(row) else None
            if mark is None:
                continue
            for at, quantity, read in readers:
                if at < len(row) and not is_empty(row[at]):
                    said[quantity].setdefault(mark, []).append(read(row[at]))
    return said


def read_summary(tables, lines):
    """All values that are given for each item of the summary, as written, with the unit of the label."""
    pairs = []
    for header, rows in tables:
        if not any(name_and_unit(cell)[0] in KEY_NAMES for cell in header):
            pairs += [(row[0], row[1]) for row in [header, *rows] if len(row) > 1]
    listed = [line.strip().lstrip("-*+ ").partition(":") for line in lines if ":" in line and "|" not in line]

    def items(pairs):
        said = {name: [] for name in SUMMARY_WEIGHTS}
        for label, value in pairs:
            name, unit = name_and_unit(label.strip().rstrip(":"))
            if name in SUMMARY_LABELS:
                said[SUMMARY_LABELS[name]].append((value, unit))
        return said

    # A list takes the place of the table; beside a table it is prose.
    tabled, told = items(pairs), items((label, value) for label, _, value in listed)
    return {name: tabled[name] or told[name] for name in SUMMARY_WEIGHTS}


def score_columns(said, rows):
    """The share of right values of each quantity, and what was found for each column."""
    truth = {row["column"]: row for row in rows}
    shares, status = {}, {mark: {} for mark in truth}

    def share(quantity, is_right):
        given = said[quantity]
        right = 0
        for mark, row in truth.items():
            values = given.get(mark)
            good = bool(values) and is_right(row, values)
            status[mark][quantity] = "right" if good else "wrong" if values else "missing"
            right += good
        # Columns that are not to be calculated cost as much as columns that are left out.
        shares[quantity] = right / max(len(truth), len(given))

    for quantity, (_, relative, absolute, _, _) in NUMBERS.items():
        share(
            quantity,
            lambda row, values: all(is_close(value, row[quantity], relative, absolute) for value in values),
        )
    share("section", lambda row, values: all(value == section_of(row["section"]) for value in values))

    def verdict_is_right(row, values):
        own = said["utilisation"].get(row["column"]) or [None]
        near = all(is_close(value, row["utilisation"], NEAR_ENOUGH, 0) for value in own)
        return near and all(
            value == row["verdict"] and all((use <= 1) == (value == "PASS") for use in own) for value in values
        )

    share("verdict", verdict_is_right)
    return shares, status


def score_summary(said, verdicts, truth):
    """Scores of the items of the summary."""
    scores = dict.fromkeys(SUMMARY_WEIGHTS, 0.0)

    def every(name, is_right):
        scores[name] = float(bool(said[name]) and all(is_right(value, unit) for value, unit in said[name]))

    every("columns_checked", lambda value, unit: number(value, unit, RATIO) == truth["columns_checked"])
    every("governing_column", lambda value, unit: mark_of(value) == truth["governing_column"])
    every(
        "highest_utilisation",
        lambda value, unit: is_close(number(value, unit, RATIO), truth["highest_utilisation"], 0.005, 0.002),
    )
    every(
        "total_steel_mass_t",
        lambda value, unit: is_close(number(value, unit, MASS), truth["total_steel_mass_t"], 0.004, 0.005),
    )
    lists = {
        frozenset(f"C{int(digits):02d}" for digits in MARK.findall(plain(value).upper()))
        for value, _ in said["failing_columns"]
    }
    if len(lists) == 1:
        listed = set(next(iter(lists)))
        own = {mark for mark, values in verdicts.items() if "FAIL" in values}
        expected = set(truth["failing_columns"])
        if listed == own and listed:
            scores["failing_columns"] = len(listed & expected) / len(listed | expected)
    return scores


def decoded(data):
    """The text of a submission, or nothing if it is none."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def score(data, instance):
    """The verdict on a report, given as bytes (or None if there is no file)."""
    truth = instance["ground_truth"]
    problem = None
    text = ""
    if data is None:
        problem = "there is no report that can be read"
    elif len(data) > LARGEST:
        problem = "the report is larger than 1 MiB"
    else:
        text = decoded(data)
        if text is None or not text.strip():
            problem = "the report is empty or not text"
            text = ""
    lines = seen("\n".join(unfenced(re.split(r"\r\n|\r|\n", text)))).split("\n")
    tables = tables_of(lines)
    texts = sections_of(lines)
    headings = {name: len("".join(texts.get(name, [])).strip()) >= LEAST_TEXT for name in HEADINGS}
    said = read_columns(tables)
    shares, status = score_columns(said, truth["columns"])
    summary = score_summary(read_summary(tables, texts.get("summary", [])), said["verdict"], truth)

    parts = {"headings": (HEADING_WEIGHT, sum(headings.values()) / len(headings))}
    parts.update({name: (spec[0], shares[name]) for name, spec in NUMBERS.items()})
    parts["section"] = (SECTION_WEIGHT, shares["section"])
    parts["verdict"] = (VERDICT_WEIGHT, shares["verdict"])
    parts.update({name: (weight, summary[name]) for name, weight in SUMMARY_WEIGHTS.items()})
    total = sum(weight for weight, _ in parts.values())
    reward = sum(weight * value for weight, value in parts.values()) / total
    reward = round(min(max(reward, 0.0), 1.0), 6)
    if reward == 1.0 and any(value < 1 for _, value in parts.values()):
        reward = 0.999999
    return {
        "reward": reward,
        "problem": problem,
        "parts": {name: {"weight": weight, "score": round(value, 6)} for name, (weight, value) in parts.items()},
        "headings": headings,
        "columns": status,
    }


def read(path):
    """The bytes of a regular file, one more than is allowed at most; None for anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        parts, left = [], LARGEST + 1
        while left > 0 and (part := os.read(handle, left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(handle)


def main():
    parser = argparse.ArgumentParser(description="Scores a calculation report.")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--instance", default=os.path.join(here, "instance.json"))
    parser.add_argument("--submission", default="/workspace/report.md")
    parser.add_argument("--logs", default="/logs/verifier")
    options = parser.parse_args()
    try:
        with open(options.instance, encoding="utf-8") as file:
            instance = json.load(file)
        score(None, instance)
    except (OSError, ValueError, KeyError, TypeError) as error:
        # Nobody is scored by a broken task.
        print(f"instance.json cannot be used: {error}", file=sys.stderr)
        return 2
    details = score(read(options.submission), instance)
    os.makedirs(options.logs, exist_ok=True)
    with open(os.path.join(options.logs, "details.json"), "w", encoding="utf-8") as file:
        json.dump(details, file, indent=1, sort_keys=True)
    with open(os.path.join(options.logs, "reward.json"), "w", encoding="utf-8") as file:
        json.dump({"reward": details["reward"]}, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
