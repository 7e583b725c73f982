#!/usr/bin/env python3
"""Standard scorer of aec-bench: typed answers against what an agent wrote.

Reads `answers.json` beside this file and the submission below /workspace, writes `details.json` and `reward.json`
to /logs/verifier. Generous about format, strict about substance; docs/answers.md in aec-bench is the contract.

    python3 -I -S verify.py [--answers FILE] [--submission FILE] [--logs DIR]

Exit code 0: scored, whatever the reward. Exit code 2: the answers file is broken, nothing was written.

aec-bench has a native twin of this script and uses it when a task carries exactly these bytes, so every decision is
made here by hand instead of by a library: no `json.loads`, no regular expressions, no Unicode tables that differ
between Python versions. All scanning is linear in the size of the submission.
"""

import json
import math
import os
import stat
import sys

REVISION = 2  # of these rules, stated in details.json; docs/answers.md lists the revisions
MAX_BYTES = 1 << 20  # of a submission
MAX_DEPTH = 64  # of nested lists and objects
MAX_BLOCKS = 64  # objects with expected keys, values for one key
MAX_ITEMS = 200  # expected items of a list, rows of a table
MAX_NUMERAL = 256  # characters of a number with its unit
MAX_FORM = 256  # characters of a value in which marks and remarks are looked for
MAX_REMARK = 120  # characters of a remark behind a value
MAX_SAID = 5  # words of an option that is looked for in a remark
MAX_KEY = 100  # characters of a key in which a unit is looked for
MAX_SUFFIX = 18  # characters of such a unit
MAX_SHOWN = 200  # characters of a value repeated in the details
WORKSPACE = "/workspace"
LOGS = "/logs/verifier"


class AnswersError(Exception):
    """The answers file is broken: the task's fault, never the agent's."""


class Unread(Exception):
    """The submission as a whole cannot be scored; `status` is what its fields get."""

    def __init__(self, problem, status="missing"):
        super().__init__(problem)
        self.status = status


# ---- text ------------------------------------------------------------------------------------------------------------

SPACES = "\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
PUNCTUATION = " .,;:!?'\"`*()[]{}"
BEFORE_VALUE, BEHIND_VALUE = PUNCTUATION.replace("!", "").replace("?", ""), PUNCTUATION.replace("?", "")
DIGITS = "0123456789"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
MINUS = "-\u2212\u2013\u2011"
KEY_CHARACTERS = frozenset(LETTERS + DIGITS + "_-.")


def fold_table():
    """Lower case for Latin, Greek and Cyrillic, one kind of quote, dash and space, nothing invisible."""
    table = {code: code + 32 for start, end in ((0x41, 0x5A), (0xC0, 0xDE), (0x391, 0x3A9), (0x410, 0x42F))
             for code in range(start, end + 1) if code not in (0xD7, 0x3A2)}
    table.update({code: code + 80 for code in range(0x400, 0x410)})
    for start, end in ((0x100, 0x12E), (0x132, 0x136), (0x139, 0x147), (0x14A, 0x176), (0x179, 0x17D)):
        table.update({code: code + 1 for code in range(start, end + 1, 2)})
    table.update({0x178: 0xFF, 0x3C2: 0x3C3, 0xB5: 0x3BC, 0xDF: "ss"})
    table.update({code: 0x27 for code in (0x2018, 0x2019, 0x201B, 0x2032)})
    table.update({code: 0x22 for code in (0x201C, 0x201D, 0x2033)})
    table.update({code: 0x2D for code in (0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2015, 0x2212)})
    table.update({code: 0x30 + code - 0x2080 for code in range(0x2080, 0x208A)})
    table.update({code: None for code in (0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF)})
    table.update({ord(space): 0x20 for space in SPACES})
    return table


FOLD = fold_table()


def squeeze(text, before=PUNCTUATION, behind=PUNCTUATION):
    """Text for comparing texts: folded, single spaces, no punctuation around it; the point of `.5` stays."""
    single = " ".join(part for part in text.translate(FOLD).split(" ") if part)
    bare = single.lstrip(before)
    point = bare[:1] and bare[0] in DIGITS and single[:-len(bare)].endswith(".")
    return ("." + bare if point else bare).rstrip(behind)


def stated(text):
    """A squeezed value. `!` before it negates and `?` casts doubt, so these stay: "pass?" is not "pass"."""
    return squeeze(text, BEFORE_VALUE, BEHIND_VALUE)


def compact(text):
    """Text for comparing keys: squeezed, then without spaces, hyphens and underscores.

    A leading hyphen stays and so does a gap between digits: -5 is not 5 and 1-2 is not 12.
    """
    return joined(squeeze(text)) if not is_simple(text) else joined(lower(text))


def word(text):
    """Text for comparing choices and other words: a stated value without spaces, hyphens and underscores."""
    return joined(stated(text)) if not is_simple(text) else joined(lower(text))


def is_simple(text):
    """Whether a text is one that folding only turns into lower case; most keys and words are."""
    return text.isascii() and text.replace("_", "").isalnum()


def joined(squeezed):
    parts = ["-"] if squeezed[:1] == "-" else [""]
    for part in squeezed.replace("-", " ").replace("_", " ").split(" "):
        if part:
            parts.append(gap(parts[-1], part) + part)
    return "".join(parts)


def gap(front, behind):
    """What stands between two parts of a joined text."""
    return "-" if front[-1:] and front[-1] in DIGITS and behind[0] in DIGITS else ""


def lower(text):
    """ASCII lower case."""
    return text.lower() if text.isascii() else "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def shorten(text):
    """Text for the details, cut to a bearable length."""
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "\u2026"


# ---- words -----------------------------------------------------------------------------------------------------------

# A list and its words; `_` in a word is a space. Words for about, before a number and behind it; what may follow a
# count; words of a passed and a failed check, compared without spaces; words that negate a name; words in a remark that
# offer a second answer, doubt the first one or take it back, and those that may multiply a number; words that may stand
# alone in brackets behind a number without a unit, where another word could be a unit; words before a number, and
# behind it, that make it no second value; texts that hold the place of a value; LaTeX commands that only change how
# their argument looks.
WORD_LISTS = """
approximately approximately approx about around roughly circa ca
nearly approximately approx
counters no nos nr off pc pcs piece pieces item items each ea total
passed pass passed passes ok o.k okay compliant complies complying conforms conforming adequate satisfactory satisfied
passed satisfies acceptable sufficient safe
failed fail failed fails ng notok noncompliant notcompliant doesnotcomply inadequate notadequate unsatisfactory
failed notsatisfactory notsatisfied unacceptable notacceptable insufficient notsufficient unsafe notsafe notpassed
failed doesnotpass doesn'tpass doesn'tcomply failstocomply noncomplying notcomplying nonconforming notconforming
failed doesnotconform doesnotsatisfy failure failing n.g
negations not non no never cannot without
hedges or and/or either alternatively alternative alternatives maybe perhaps possibly unsure uncertain guess vs versus
hedges between range not never no none nor neither cannot wrong incorrect instead otherwise unless if else except but
hedges without was may might could would probably likely unlikely unclear doubtful previously formerly subject
hedges conditional conditionally assuming assumed plus minus negative x
multipliers times per each both every unit units thousand thousands hundred hundreds million millions billion billions
multipliers dozen dozens pair pairs percent half double doubled twice triple quarter zero one two three four five six
multipliers seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty
multipliers thirty forty fifty sixty seventy eighty ninety
remarks hogging sagging tension compression tensile compressive governing governs critical controls controlling max
remarks maximum rounded approx approximately about exact final answer result calculated computed design factored
remarks ultimate serviceability uls sls ok pass upward upwards downward downwards required provided total overall
references as as/nzs nzs bs en iso aci aisc astm din cl clause table eq eqn equation section sec sect fig figure part
references step grade class note article annex appendix chapter page §
rounding d.p dp s.f sf sig significant decimal decimals
placeholders tbd tbc todo n/a placeholder value number text string your_answer your_answer_here to_be_determined
placeholders to_be_confirmed to_be_calculated to_be_filled_in
wrappers text textrm textbf textit texttt mathrm mathbf mathit mathsf mathtt boldsymbol operatorname boxed unit si
wrappers underline emph
"""


def word_list(wanted):
    """The words of one list in their order."""
    lines = [line.split(" ") for line in WORD_LISTS.split("\n")]
    return [part.replace("_", " ") for line in lines if line[0] == wanted for part in line[1:]]


APPROXIMATELY, NEARLY, COUNTERS = word_list("approximately"), word_list("nearly"), frozenset(word_list("counters"))
PASSED, FAILED, NEGATIONS = word_list("passed"), word_list("failed"), frozenset(word_list("negations"))
HEDGES, MULTIPLIERS = frozenset(word_list("hedges")), frozenset(word_list("multipliers"))
REMARKS = frozenset(word_list("remarks"))
REFERENCES, ROUNDING = frozenset(word_list("references")), frozenset(word_list("rounding"))
PLACEHOLDERS, WRAPPERS = frozenset(word_list("placeholders")), frozenset(word_list("wrappers"))


# ---- relaxed JSON ----------------------------------------------------------------------------------------------------


class Bare(str):
    """An unquoted value: a number, perhaps with a unit, or a word such as true and null."""


class Obj:
    """An object: its pairs in the order written, repeated keys included."""

    def __init__(self, pairs):
        self.pairs = pairs


class Fail(Exception):
    """Not an object at this place."""


BARE_ENDS, BARE_NEVER = frozenset(",}]\n\r#/"), frozenset("\"'`{[:<=>;|$")
WORDS = ("true", "false", "null", "none", "nan", "inf", "infinity")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}


class Parser:
    """JSON and its common slips; `strict` allows no slips. `i` stands where reading stopped, also after a failure."""

    def __init__(self, text, strict=False):
        self.text = text
        self.strict = strict
        self.blank = " \t\r\n" if strict else SPACES
        self.blanks = frozenset(self.blank)
        self.i = 0

    def peek(self):
        return self.text[self.i] if self.i < len(self.text) else ""

    def space(self):
        """Skips white space and comments."""
        text = self.text
        while self.i < len(text):
            c = text[self.i]
            if c in self.blanks:
                self.i += 1
            elif self.strict:
                return
            elif c == "#" or (c == "/" and text.startswith("//", self.i)):
                end = text.find("\n", self.i)
                self.i = len(text) if end < 0 else end
            elif c == "/" and text.startswith("/*", self.i):
                end = text.find("*/", self.i + 2)
                if end < 0:
                    self.i = len(text)
                    raise Fail
                self.i = end + 2
            else:
                return

    def value(self, depth):
        c = self.peek()
        if c == "{":
            return self.object(depth + 1)
        if c == "[":
            return self.array(depth + 1)
        if c == '"' or (c == "'" and not self.strict):
            return self.string()
        return self.bare()

    def object(self, depth):
        if depth > MAX_DEPTH:
            raise Fail
        pairs = []
        self.i += 1
        self.space()
        while self.peek() != "}":
            key = self.key()
            self.space()
            if self.peek() != ":":
                raise Fail
            self.i += 1
            self.space()
            pairs.append((key, self.value(depth)))
            self.separator("}")
        self.i += 1
        return Obj(pairs)

    def array(self, depth):
        if depth > MAX_DEPTH:
            raise Fail
        items = []
        self.i += 1
        self.space()
        while self.peek() != "]":
            items.append(self.value(depth))
            self.separator("]")
        self.i += 1
        return items

    def separator(self, close):
        """A comma, or nothing before the closing bracket."""
        self.space()
        if self.peek() == close:
            return
        if self.peek() != ",":
            raise Fail
        self.i += 1
        self.space()
        if self.strict and self.peek() == close:
            raise Fail

    def key(self):
        c = self.peek()
        if c == '"' or (c == "'" and not self.strict):
            return self.string()
        start = self.i
        while not self.strict and self.peek() in KEY_CHARACTERS:
            self.i += 1
        if self.i == start:
            raise Fail
        return self.text[start:self.i]

    def string(self):
        text, quote, parts = self.text, self.text[self.i], []
        i = self.i + 1
        end = -1
        while True:
            if end < i:
                end = text.find(quote, i)
                if end < 0:
                    self.i = len(text)
                    raise Fail
            slash = text.find("\\", i, end)
            part = text[i:end if slash < 0 else slash]
            if self.strict and any(c < " " for c in part):
                raise Fail
            parts.append(part)
            if slash < 0:
                self.i = end + 1
                return "".join(parts)
            i = self.escape(slash, parts)

    def escape(self, slash, parts):
        """Adds what the escape at `slash` stands for; where to read on."""
        c = self.text[slash + 1:slash + 2]
        if c in ESCAPES and not (self.strict and c == "'"):
            parts.append(ESCAPES[c])
            return slash + 2
        width = 4 if c == "u" else 2 if c == "x" and not self.strict else 0
        code = self.hexadecimal(slash + 2, width)
        if code is None:
            if self.strict:
                raise Fail
            parts.append("\\")
            return slash + 1
        end = slash + 2 + width
        if 0xD800 <= code < 0xDC00 and self.text.startswith("\\u", end):
            low = self.hexadecimal(end + 2, 4)
            if low is not None and 0xDC00 <= low < 0xE000:
                parts.append(chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)))
                return end + 6
        parts.append("\ufffd" if 0xD800 <= code < 0xE000 else chr(code))
        return end

    def hexadecimal(self, start, width):
        digits = self.text[start:start + width]
        if width == 0 or len(digits) < width or any(c not in "0123456789abcdefABCDEF" for c in digits):
            return None
        return int(digits, 16)

    def bare(self):
        text, start = self.text, self.i
        for i in range(start, len(text)):
            c = text[i]
            if c in BARE_ENDS and (c != "/" or text[i + 1:i + 2] in ("/", "*")):
                self.i = i
                break
            if c in BARE_NEVER:
                self.i = i
                raise Fail
        else:
            self.i = len(text)
        token = text[start:self.i].rstrip(self.blank)
        token = strict_token(token) if self.strict else relaxed_token(token)
        if token is None:
            raise Fail
        return Bare(token)


def strict_token(token):
    """A literal or number of JSON itself, else None."""
    if token in ("true", "false", "null"):
        return token
    i = 1 if token[:1] == "-" else 0
    first, i = i, digits_end(token, i)
    if i == first or len(token) > 128 or (token[first] == "0" and i > first + 1):
        return None
    if token[i:i + 1] == ".":
        start, i = i + 1, digits_end(token, i + 1)
        if i == start:
            return None
    if token[i:i + 1] in ("e", "E"):
        i += 2 if token[i + 1:i + 2] in ("+", "-") else 1
        start, i = i, digits_end(token, i)
        if i == start:
            return None
    return token if i == len(token) else None


def relaxed_token(token):
    """A word such as true, or anything that begins like a number; scalars as NumPy prints them are unwrapped."""
    if token.startswith("np."):
        bracket = token.find("(")
        if token in ("np.True_", "np.False_"):
            token = token[3:-1]
        elif bracket > 0 and token.endswith(")"):
            token = token[bracket + 1:-1].strip(SPACES)
    unsigned = token[1:].lstrip(SPACES) if token[:1] and token[0] in MINUS + "+~\u2248" else token
    if len(unsigned) < 9 and (lower(token) in WORDS or lower(unsigned) in ("inf", "infinity", "nan")):
        return token
    begins = unsigned[1:2] if unsigned[:1] == "." else unsigned[:1]
    return token if begins and begins in DIGITS else None


def digits_end(text, i):
    """Where the run of ASCII digits that begins at `i` ends."""
    while i < len(text) and text[i] in DIGITS:
        i += 1
    return i


def show(value):
    """A submitted value on one line."""
    if isinstance(value, list):
        return "[" + ", ".join(map(show, value)) + "]"
    if isinstance(value, Obj):
        return "{" + ", ".join(key + ": " + show(item) for key, item in value.pairs) + "}"
    return str(value)


# ---- numbers ---------------------------------------------------------------------------------------------------------

RAISED = {"\u2070": "0", "\xb9": "1", "\xb2": "2", "\xb3": "3", "\u2074": "4", "\u2075": "5", "\u2076": "6",
          "\u2077": "7", "\u2078": "8", "\u2079": "9", "\u207b": "-", "\u207a": "+"}


def numeral(text):
    """(negative, digits, exponent of ten, rest) of a text that begins with one number, else None."""
    text = text.strip(SPACES)
    if len(text) > MAX_NUMERAL:
        return None
    i = skip(text, 1) if text[:1] in ("\u2248", "~") else 0
    negative = text[i:i + 1] != "" and text[i] in MINUS
    if negative or text[i:i + 1] == "+":
        i = skip(text, i + 1)
    start, i = i, digits_end(text, i)
    digits = text[start:i]
    mark = text[i:i + 1]
    if 1 <= len(digits) <= 3 and digits[0] != "0" and mark and mark in ", _\xa0\u2009\u202f\u2007":
        while text[i:i + 1] == mark and digits_end(text, i + 1) == i + 4:
            digits += text[i + 1:i + 4]
            i += 4
    exponent = 0
    if text[i:i + 1] == ".":
        start, i = i + 1, digits_end(text, i + 1)
        digits += text[start:i]
        exponent = start - i
    if not digits:
        return None
    power, i = power_of_ten(text, i)
    if power is None:
        return None
    rest = text[i:].strip(SPACES)
    if rest[:1] and rest[0] in DIGITS + ".," and rest[:2] != "1/":
        rest = rest.rstrip(".,")
        if rest:
            return None
    if any(c in DIGITS and before in SPACES for before, c in zip(rest, rest[1:])):
        return None  # "12 or 13"
    range_end = rest[2:3] if rest[:2] == "1/" else rest[1:2] if rest[:1] and rest[0] in MINUS + "/" else ""
    if range_end and range_end in DIGITS + ".":
        return None  # "12-13", "1/2"
    return negative, digits.lstrip("0"), exponent + power, rest


def skip(text, i):
    while i < len(text) and text[i] in SPACES:
        i += 1
    return i


def power_of_ten(text, i):
    """(exponent, end) of e3, x10^3 and their kin at `i`; (0, i) if there is none, (None, i) if it is absurd."""
    if text[i:i + 1] in ("e", "E"):
        start = i + 2 if text[i + 1:i + 2] and text[i + 1] in MINUS + "+" else i + 1
        end = digits_end(text, start)
        return (whole(text[i + 1:start], text[start:end]), end) if end > start else (0, i)
    k = skip(text, i)
    if not text[k:k + 1] or text[k] not in "xX*\xd7\xb7\u22c5\u2219":
        return 0, i
    k = skip(text, k + 1)
    if text[k:k + 2] != "10":
        return 0, i
    k += 2
    if text[k:k + 1] and text[k] in RAISED:
        end = k + 1
        while end < len(text) and text[end] in RAISED:
            end += 1
        plain = "".join(RAISED[c] for c in text[k:end])
        sign = plain[:1] if plain[0] in "+-" else ""
        return (whole(sign, plain[len(sign):]), end) if digits_end(plain, len(sign)) == len(plain) > len(sign) \
            else (0, i)
    if text[k:k + 1] != "^" and text[k:k + 2] != "**":
        return 0, i
    k += 1 if text[k] == "^" else 2
    close = {"(": ")", "{": "}"}.get(text[k:k + 1], "")
    k += len(close)
    start = k + 1 if text[k:k + 1] and text[k] in MINUS + "+" else k
    end = digits_end(text, start)
    if end == start or text[end:end + len(close)] != close:
        return 0, i
    return whole(text[k:start], text[start:end]), end + len(close)


def whole(sign, digits):
    """The small whole number, None if it is not small."""
    digits = digits.lstrip("0")
    if len(digits) > 5:
        return None
    return -int(digits or "0") if sign and sign in MINUS else int(digits or "0")


def decimal(negative, digits, exponent):
    """One form for every way to write a decimal number."""
    short = digits.rstrip("0")
    return (negative, short, exponent + len(digits) - len(short)) if short else (False, "", 0)


def real(negative, digits, exponent):
    return float(("-" if negative else "") + (digits or "0") + "e" + str(exponent))


# ---- units -----------------------------------------------------------------------------------------------------------

# Flag, factor to SI, dimension (@ offset, ! energy or power), names. Flags: + takes prefixes, . does not, ? is a second
# reading that is tried when the first has the wrong dimension. Dimensions: Length Mass Time I current K temperature
# Angle J luminous flux, B decibel, P apparent and Q reactive power (so that kVA is not kW). `_` in a name is a space.
# A unit with `!` does not measure what is expected in a unit without one: kJ is no moment, though kN.m may be energy.
UNITS = """
+ 1 L1 m metre metres meter meters
. 0.0254 L1 in inch inches
. 0.3048 L1 ft foot feet
. 0.9144 L1 yd yard yards
. 1609.344 L1 mi mile miles
. 1852 L1 nmi
. 0.001 L1 millimetre millimetres millimeter millimeters
. 0.01 L1 centimetre centimetres centimeter centimeters
. 1000 L1 kilometre kilometres kilometer kilometers Km KM
. 10000 L2 ha hectare hectares
. 4046.8564224 L2 acre acres
. 1 L2 sqm sq_m sq.m
. 0.09290304 L2 sqft sq_ft sq.ft
. 1 L3 cum cu_m cu.m
. 0.028316846592 L3 cuft cu_ft cu.ft
+ 0.001 L3 L l litre litres liter liters
. 0.003785411784 L3 gal gals gallon gallons USgal
+ 0.001 M1 g gram grams
. 1 M1 kilogram kilograms kgs Kg KG
. 1000 M1 t tonne tonnes
. 1000000 M1 kt
. 1000000000 M1 Mt
. 0.45359237 M1 lb lbs lbm pound pounds
? 4.4482216152605 L1M1T-2 lb lbs pound pounds
+ 1 T1 s sec secs second seconds
. 60 T1 min mins minute minutes
. 3600 T1 h hr hrs hour hours
. 86400 T1 d day days
. 31557600 T1 yr year years
+ 1 L1M1T-2 N newton newtons
. 1000 L1M1T-2 KN kilonewton kilonewtons
. 4.4482216152605 L1M1T-2 lbf
. 4448.2216152605 L1M1T-2 kip kips Kip Kips
. 9.80665 L1M1T-2 kgf
. 9806.65 L1M1T-2 tf
+ 1 L2M1T-2 Nm
+ 1 L2M1T-2! J joule joules
+ 0.001 L2M1T-2 Nmm
. 1000 L2M1T-2 KNm
+ 1 L-1M1T-2 Pa pascal pascals
. 1000 L-1M1T-2 kpa Kpa KPa KPA
. 1000000 L-1M1T-2 Mpa MPA megapascal megapascals
. 1000000000 L-1M1T-2 Gpa GPA
+ 100000 L-1M1T-2 bar bars Bar
. 101325 L-1M1T-2 atm
. 6894.757293168362 L-1M1T-2 psi PSI Psi
. 6894757.293168361 L-1M1T-2 ksi KSI Ksi
. 47.880258980335846 L-1M1T-2 psf PSF
. 47880.25898033584 L-1M1T-2 ksf KSF
. 9806.65 L-1M1T-2 m_H2O mH2O m_water
. 9.80665 L-1M1T-2 mm_H2O mmH2O
. 133.322387415 L-1M1T-2 mmHg mm_Hg
. 14.593902937206364 M1T-2 plf PLF
. 14593.902937206365 M1T-2 klf KLF
. 16.018463373960138 L-3M1 pcf PCF
? 157.0874638462462 L-2M1T-2 pcf PCF
+ 3600 L2M1T-2! Wh
. 3600000 L2M1T-2! kwh KWh KWH Kwh
. 1055.05585262 L2M1T-2! Btu BTU
+ 4.184 L2M1T-2! cal
+ 1 L2M1T-3! W watt watts
. 1000 L2M1T-3! kw KW Kw kilowatt kilowatts
. 745.6998715822702 L2M1T-3! hp HP
+ 1 L2M1T-3P1 VA V.A
. 1000 L2M1T-3P1 kva KVA Kva
+ 1 L2M1T-3Q1 var VAr VAR vars
. 1000 L2M1T-3Q1 KVAR KVAr Kvar
+ 1 L2M1T-3I-1 V volt volts
. 1000 L2M1T-3I-1 kv KV Kv
+ 1 I1 A amp amps ampere amperes
+ 3600 T1I1 Ah
+ 1 L2M1T-3I-2 ohm ohms Ohm Ohms OHM
+ 1 L-2M-1T4I2 F farad farads
+ 1 L2M1T-2I-2 H henry
+ 1 L-2M-1T3I2 S siemens
+ 1 T-1 Hz hz HZ hertz
. 1000 T-1 khz KHz KHZ
. 0.5144444444444445 L1T-1 kn kts knot knots
? 0.5144444444444445 L1T-1 kt
. 0.2777777777777778 L1T-1 kmh kph
. 0.44704 L1T-1 mph
. 0.3048 L1T-1 fps
. 9.80665 L1T-2 gn
? 9.80665 L1T-2 g
. 1 L3T-1 cumec cumecs
. 0.001 L3T-1 lps LPS
. 0.000016666666666666667 L3T-1 lpm LPM
. 0.0000630901964 L3T-1 gpm GPM
. 0.0004719474432 L3T-1 cfm CFM
. 0.028316846592 L3T-1 cfs CFS
. 0.04381263638888889 L3T-1 mgd MGD
+ 1 A1 rad radian radians
. 0.017453292519943295 A1 deg ° degree degrees
. 6.283185307179586 A1 rev revs
. 0.10471975511965977 A1T-1 rpm RPM
+ 1 K1 K kelvin
. 1 K1@273.15 °C C degC celsius deg_C °_C degree_C degrees_C degrees_celsius
. 0.5555555555555556 K1@459.67 °F degF fahrenheit deg_F °_F degree_F degrees_F degrees_fahrenheit
? 0.5555555555555556 K1@459.67 F
+ 1 J1 lm lumen lumens
+ 1 L-2J1 lx lux
. 1 B1 dB
. 1 0 - 1 ratio dimensionless unitless none
. 0.01 0 % percent pct per_cent
. 0.001 0 ‰
. 0.000001 0 ppm
"""
DIMENSIONS = "LMTIKAJBPQ"
PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "h": 1e2, "d": 1e-1, "c": 1e-2, "m": 1e-3, "u": 1e-6, "n": 1e-9,
            "p": 1e-12}
UNIT_CHARS = {ord(key): value for keys, value in (
    ("\xb5\u03bc", "u"), ("\u2126\u03a9", "ohm"), ("\xb7\u22c5\u2219\u2022\xd7", "."), ("\u2215\u2044", "/"),
    ("\xba\u02da", "\xb0"), ("\u2103", "\xb0C"), ("\u2109", "\xb0F"), ("\u2212\u2013\u2011", "-"), ("{}", None),
    (SPACES, " ")) for key in keys}
UNIT_CHARS.update({ord(key): value for key, value in RAISED.items()})


def unit_tables():
    """({name: unit}, {name: second reading}, names that take prefixes).

    A unit is (factor, dimension, offset, whether it is one of energy or power).
    """
    first, second, prefixed = {}, {}, set()
    for line in UNITS.split("\n"):
        if line:
            flag, factor, dimension, names = line.split(" ", 3)
            dimension, _, offset = dimension.partition("@")
            unit = (float(factor), powers(dimension), float(offset or "0"), dimension[-1] == "!")
            for name in names.split(" "):
                (second if flag == "?" else first)[name] = unit
                if flag == "+":
                    prefixed.add(name)
    return first, second, prefixed


def powers(text):
    """`L1M1T-2` as one exponent per dimension."""
    found = [0] * len(DIMENSIONS)
    for at, c in enumerate(text):
        if c in DIMENSIONS:
            found[DIMENSIONS.index(c)] = -int(text[at + 2]) if text[at + 1] == "-" else int(text[at + 1])
    return tuple(found)


FIRST, SECOND, PREFIXED = unit_tables()
ATOM_CHARACTERS = frozenset(LETTERS + "%\xb0_")
PLAIN = (1.0, powers(""), 0.0, False)
KELVIN = powers("K1")


def unit_of(text, again=False):
    """(factor, dimension, offset, energy) of a unit, None if it is not known. `again` prefers second readings."""
    text = " ".join(part for part in text.translate(UNIT_CHARS).split(" ") if part)
    if text[:1] + text[-1:] in ("()", "[]"):
        text = text[1:-1].strip(" ")
    if text[-1:] == "." and len(text) > 1:
        text = text[:-1]
    if not text or len(text) > 40:
        return None
    return atom(text.replace(" ", "_"), again) or compound(text.replace(" per ", "/"), again)


def atom(name, again):
    if again and name in SECOND:
        return SECOND[name]
    if name in FIRST:
        return FIRST[name]
    if name[:1] in PREFIXES and name[1:] in PREFIXED:
        factor, dimension, _, energy = FIRST[name[1:]]
        return PREFIXES[name[0]] * factor, dimension, 0.0, energy
    return FIRST.get(lower(name)) if len(name) >= 4 else None


def compound(text, again):
    """Products, quotients and powers; everything behind a slash divides, as engineers write kJ/kg.K."""
    text = ungrouped(text)
    if text is None:
        return None
    factor, dimension, energy, atoms = 1.0, [0] * len(DIMENSIONS), False, 0
    i = 2 if text[:2] == "1/" else 1 if text[:1] == "/" else 0
    below = i > 0
    while True:
        start = i
        while i < len(text) and text[i] in ATOM_CHARACTERS:
            i += 1
        unit = atom(text[start:i], again) if i > start else None
        atoms += 1
        if unit is None or atoms > 8:
            return None
        power, after = exponent(text, i)
        if power is None:
            return None
        energy = energy or unit[3]
        for _ in range(abs(power)):
            factor = factor / unit[0] if below != (power < 0) else factor * unit[0]
        sign = -power if below else power
        dimension = [total + sign * one for total, one in zip(dimension, unit[1])]
        if after == len(text):
            return (factor, tuple(dimension), 0.0, energy) if 0.0 < factor < math.inf else None
        raised, i = after > i, after
        while i < len(text) and text[i] == " ":
            i += 1
        if text[i:i + 1] and text[i] in "./*-":
            below = below or text[i] == "/"
            i += 1
        elif i == after and not raised:
            return None
        while i < len(text) and text[i] == " ":
            i += 1


def ungrouped(text):
    """Without the brackets of a/(b.c) or (a.b)/c; None if there are any others."""
    if "(" not in text and ")" not in text:
        return text
    start, end = text.find("("), text.find(")")
    inner = text[start + 1:end]
    if start < 0 or end < start or "/" in inner or "(" in inner or text.count("(") + text.count(")") != 2:
        return None
    if (start > 0 and text[start - 1] == "/" and end == len(text) - 1) or (start == 0 and text[end + 1:end + 2] == "/"):
        return text[:start] + inner + text[end + 1:]
    return None


def exponent(text, i):
    """(power, end) of what stands behind an atom; (1, i) if nothing does, (None, i) if it is unreadable."""
    k = i + 2 if text[i:i + 2] == "**" else i + 1 if text[i:i + 1] == "^" else i
    negative = text[k:k + 1] == "-"
    at = k + 1 if negative else k
    if text[at:at + 1] and text[at] in "123456789" and not (text[at + 1:at + 2] and text[at + 1] in DIGITS):
        return -int(text[at]) if negative else int(text[at]), at + 1
    return (1, i) if k == i and digits_end(text, at) == at else (None, i)


def convert(spec, x, text):
    """x, given in the unit `text`, in the unit of the field; a text that says why if there is no way."""
    if not text or (spec.unit_words and word(text) in spec.unit_words) or counts(spec, text):
        return x
    known = False
    for again in (False, True):
        unit = unit_of(text, again)
        known = known or unit is not None
        if unit is not None and fits(spec, unit):
            factor, offset = unit[0], unit[2]
            here, there = (0.0, 0.0) if spec.difference else (offset, spec.unit[2])
            return x if factor == spec.unit[0] and here == there else (x + here) * factor / spec.unit[0] - there
    return "a unit of another kind" if known else "an unknown unit"


def fits(spec, unit):
    """Whether a unit measures what the field's own unit measures."""
    return unit[1] == spec.unit[1] and (spec.unit[3] or not unit[3] or unit[1] == PLAIN[1])


def counts(spec, text):
    """Whether a text behind a whole number says what is counted: "bolts" for `n_bolts`, "No." for everything."""
    if spec.kind != "integer" or spec.unit_text:
        return False
    said = [part.strip(".") for part in text.translate(FOLD).split(" ")]
    said = [part for part in said if part]
    return (bool(said) and said[-1] != "per"
            and all(part in spec.nouns or part in COUNTERS for part in said))


def words_of(name):
    """The folded words of a name."""
    return [part for part in spaced(name.translate(FOLD)).split(" ") if part]


def spaced(text):
    return "".join(" " if c in " _-.,;:/()[]" else c for c in text)


def nouns_of(name):
    """The words of a name in singular and plural."""
    found = set()
    for part in words_of(name):
        if len(part) > 2:
            found.update((part, part + "s", part[:-1] if part[-1] == "s" else part))
    return found


# ---- what models put around a value ----------------------------------------------------------------------------------
# Marks are taken away only where this cannot put two numbers together or hide one of them: a value with two candidates
# stays unreadable.

PAIRED = ("***", "**", "__", "``", "`", "$$", "$")
MARKED = frozenset("\\$`*_=\t\x08")
SYMBOLS = {"times": "\xd7", "cdot": "\xb7", "approx": "\u2248", "sim": "\u2248", "simeq": "\u2248", "pm": "\xb1",
           "circ": "\xb0", "degree": "\xb0", "textdegree": "\xb0", "mu": "\xb5", "Omega": "\u03a9", "quad": " ",
           "left": " ", "right": " ", "checkmark": "\u2713", ",": "\u2009", ";": " ", ":": " ", " ": " ", "%": "%",
           "_": "_", "(": "$", ")": "$", "[": "$$", "]": "$$"}
# JSON reads the backslash of a careless \\times, \\text and \\boxed as part of an escape.
ESCAPED = (("\times", "\\times"), ("\text", "\\text"), ("\x08oxed", "\\boxed"))


def unmarked(text):
    """A value without emphasis, code marks, LaTeX and one leading `=`."""
    text = text.strip(SPACES)
    if len(text) > MAX_FORM or MARKED.isdisjoint(text):
        return text
    equals = True
    for _ in range(3):
        before = text
        text = unpaired(unlatexed(text))
        if len(text) > 2 and text[0] in "*_" and text[-1] == text[0] and text[0] not in text[1:-1]:
            text = text[1:-1]
        if equals and text[:1] == "=" and text[1:2] not in ("=", "<", ">"):
            text, equals = text[1:], False
        text = text.strip(SPACES)
        if text == before:
            break
    return text


def unpaired(text):
    """Without marks that come in pairs, where it is clear what they enclose."""
    kept, i = "", 0
    while i < len(text):
        mark = next((mark for mark in PAIRED if text.startswith(mark, i)), "")
        start = i + len(mark)
        end = text.find(mark, start) if mark else -1
        if end > start and encloses(mark, kept, text[start:end], text[end + len(mark):]):
            kept += text[start:end]
            i = end + len(mark)
        else:
            kept += mark or text[i]
            i += len(mark) or 1
    return kept


def encloses(mark, before, inner, behind):
    """Whether a pair of marks can go: it must not stand between digits, nor begin a second number."""
    if mark[0] in "*_" and (alphanumeric(before[-1:]) or alphanumeric(behind[:1])):
        return False
    begin, follow = inner.strip(SPACES)[:1], behind.strip(SPACES)
    if not begin or (has_digit(before) and begin in DIGITS + "."):
        return False
    return not (follow[:1] and (follow[0] in DIGITS or (follow[0] in ".,_" and has_digit(follow[1:2]))))


def alphanumeric(c):
    return c != "" and c in LETTERS + DIGITS


def has_digit(text):
    return any(c in DIGITS or c in RAISED for c in text)


def unlatexed(text):
    """With plain characters for LaTeX commands; unchanged if one is not known or a bracket does not close."""
    given = text
    for careless, meant in ESCAPED:
        text = text.replace(careless, meant)
    if "\\" not in text and "{,}" not in text:
        return given
    plain, braces, i = "", [], 0
    while i < len(text):
        c = text[i]
        if c == "\\":
            end = i + 1
            while end < len(text) and text[end] in LETTERS:
                end += 1
            end = max(end, i + 2)
            name = text[i + 1:end]
            if name in WRAPPERS and text[end:end + 1] == "{":
                begin = text[end + 1:].strip(SPACES)[:1]
                if has_digit(plain) and begin and begin in DIGITS + ".":
                    return given
                braces.append("")
                end += 1
            elif name in SYMBOLS:
                plain += SYMBOLS[name]
            else:
                return given
            i = end
            continue
        if c == "{":
            braces.append("}")
        elif c == "}":
            if not braces:
                return given
            c = braces.pop()
        elif c == "~" and plain:
            c = " "
        plain += c
        i += 1
    if braces:
        return given
    return plain.replace("{,}", ",").replace("^{\xb0}", "\xb0").replace("^\xb0", "\xb0")


def approximated(text):
    """A number without a word for about at one of its ends."""
    small = lower(text)
    for said in APPROXIMATELY:
        behind = text[len(said):]
        behind = behind[1:] if behind[:1] == "." else behind
        if small.startswith(said) and behind[:1] and behind[0] in SPACES:
            return behind.strip(SPACES)
    bare = small[:-1] if small[-1:] == "." else small
    for said in NEARLY:
        if bare.endswith(said) and bare[:-len(said)][-1:] in tuple(SPACES):
            return text[:len(bare) - len(said)].strip(SPACES)
    return text


def split_remark(text):
    """(value, remark) of a value with a remark in brackets behind it; the remark is None if there is none."""
    whole_text = text[:-1] if text[-2:] in (").", "].") else text
    opening = {")": "(", "]": "["}.get(whole_text[-1:])
    if opening is None or len(text) > MAX_FORM:
        return text, None
    depth = 0
    for i in range(len(whole_text) - 1, 0, -1):
        depth += (whole_text[i] == whole_text[-1]) - (whole_text[i] == opening)
        if depth == 0:
            value = whole_text[:i].rstrip(SPACES)
            remark = whole_text[i + 1:-1]
            return (value, remark) if value and len(value) < i and len(remark) <= MAX_REMARK else (text, None)
    return text, None


CODES = LETTERS[:26].replace("E", "").replace("X", "")  # M20 is a bolt, E3 and X3 may be factors


def remark_words(remark):
    """The words of a remark without punctuation around them."""
    bare = "".join(" " if c in SPACES or c in ",;:" else c for c in remark)
    return [part for part in (part.strip(PUNCTUATION) for part in bare.split(" ")) if part]


def folded_part(part):
    return part.translate(FOLD).strip(PUNCTUATION)


def is_hedge(part):
    """Whether a folded word of a remark offers a second answer, doubts the first one or takes it back."""
    return part in HEDGES or part.endswith("n't")


def is_letterlike(c):
    """Whether a character is Latin, Greek or Cyrillic, or punctuation: no digit or sign of another kind."""
    return (c < "\u0600" and c not in "\xbc\xbd\xbe") or "\u2010" <= c <= "\u2027" or c in SPACES


def is_harmless(remark):
    """Whether a remark in words gives no other value: no doubt, no second number, no unit, no condition."""
    said = remark_words(remark)
    if not said or any(c in "?!\xb1|~<>=/" or not is_letterlike(c) for c in remark) or unit_of(remark):
        return False
    small = [folded_part(part) for part in said]
    for at, part in enumerate(said):
        if is_hedge(small[at]) or small[at] in MULTIPLIERS:
            return False
        if has_digit(part):
            before, behind = said[at - 1] if at else "", small[at + 1] if at + 1 < len(small) else ""
            code = 1 < len(part) < 8 and part[0] in CODES and digits_end(part, 1) == len(part)
            if not is_reference(before) and not code and not (behind in ROUNDING and digits_end(part, 0) == len(part)):
                return False
        elif len(part) > 1 and part not in ("in", "min") and not is_reference(part):
            unit = unit_of(part)
            if unit and unit[1] != PLAIN[1]:
                return False
    return True


def is_reference(part):
    """Whether a number behind this word is that of a standard, clause, table and the like; `as` is a word, AS not."""
    return part not in ("as", "is") and part.translate(FOLD) in REFERENCES


def is_clear(remark, spec):
    """Whether a harmless remark behind a number without a unit cannot be an unknown unit."""
    small = [folded_part(part) for part in remark_words(remark)]
    if small[0] == "in":
        return len(small) > 1 and small[1] in REMARKS
    return len(small) > 1 or small[0] in REMARKS or small[0] in spec.nouns or has_digit(small[0])


GOOD, BAD = "\u2705\u2714\u2713\u2611\U0001f44d", "\u274c\u2717\u2718\u2716\U0001f44e"


def without_ticks(text):
    """(text, tick): without ticks (True) or crosses (False) at its ends; (text, None) if there are none or both."""
    good, bad = any(c in GOOD for c in text), any(c in BAD for c in text)
    return (text, None) if good == bad else (text.strip(GOOD + BAD + "\ufe0f" + SPACES), good)


def is_placeholder(text):
    """Whether a text only holds the place of a value: dots, `<number>`, `TBD`."""
    text = text.strip(SPACES)
    if not text or len(text) > MAX_FORM:
        return False
    if all(c in " .\u2026_-\u2013\u2014?*#xX" for c in text):
        return text not in ("x", "X")
    return ((text[0] + text[-1] in ("<>", "{}", "[]") and len(text) > 2 and not has_digit(text))
            or lower(text).strip(".") in PLACEHOLDERS)


def holds_nothing(value, key=""):
    """Whether there are only places to fill below a list or object, apart from its keys and units."""
    if isinstance(value, str):
        return is_blank(value) or is_placeholder(value)
    if isinstance(value, Obj):
        value = [item for name, item in value.pairs if compact(name) not in (key, "unit", "units")]
    return bool(value) and all(holds_nothing(item, key) for item in value)


# ---- the answers file ------------------------------------------------------------------------------------------------

OWN_KEYS = {
    "number": ("unit", "unit_words", "rel_tol", "abs_tol", "sig", "difference"),
    "integer": ("unit", "unit_words"),
    "boolean": ("true_words", "false_words"),
    "choice": ("options", "aliases"),
    "text": (),
    "list": ("items", "item", "ordered"),
    "table": ("key", "columns", "rows"),
}
SCALARS = ("number", "integer", "boolean", "choice", "text")


class Spec:
    """What is expected of one field, item or cell."""

    def __init__(self, kind):
        self.kind = kind
        self.unit, self.unit_text, self.unit_words, self.difference = PLAIN, "", (), False
        self.literal = False  # whether an accepted text looks like a place to fill, so that no text is taken for one
        self.nouns = ()
        self.meanings = {}  # of words: a truth or an option
        self.passing = {}  # whether an option or truth means that a check passed, where that is asked


def need(condition, where, text):
    if not condition:
        raise AnswersError(where + ": " + text)


def only(raw, allowed, where):
    need(isinstance(raw, dict), where, "must be an object")
    for key in raw:
        need(key in allowed, where, "unknown key `" + key + "`")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def texts(raw, key, where):
    """A list of texts that stay distinct when compacted."""
    value = raw.get(key, [])
    need(isinstance(value, list) and all(isinstance(item, str) for item in value), where,
         "`" + key + "` must be a list of texts")
    seen = set()
    for item in value:
        need(compact(item) and compact(item) not in seen, where, "`" + key + "` has an empty text or one twice")
        seen.add(compact(item))
    return value


def flag(raw, key, where):
    value = raw.get(key, False)
    need(isinstance(value, bool), where, "`" + key + "` must be true or false")
    return value


def kind_of(raw, kinds, where):
    need(isinstance(raw, dict), where, "must be an object")
    kind = raw.get("type")
    need(isinstance(kind, str) and kind in kinds, where, "`type` must be one of " + ", ".join(kinds))
    need(isinstance(raw.get("meaning", ""), str), where, "`meaning` must be a text")
    return kind


TRUTHS = {"true": True, "yes": True, "pass": True, "false": False, "no": False, "fail": False}


def asks_for_pass(name):
    """Whether the name of a boolean asks whether a check passed: its last word says so, and none negates it."""
    said = words_of(name)
    return bool(said) and said[-1] in PASSED and not negates(name)


def negates(name):
    """Whether a name has a word for no or for failing: "pass" is then no word for true."""
    return any(part in NEGATIONS or part in FAILED for part in words_of(name))


def scalar_spec(raw, where, extra, name):
    """The part of a field that does not depend on the expected value."""
    kind = kind_of(raw, SCALARS, where)
    only(raw, ("type", "meaning") + OWN_KEYS[kind] + extra, where)
    spec = Spec(kind)
    spec.unit_words = {word(text) for text in texts(raw, "unit_words", where)}
    spec.nouns = nouns_of(name)
    spec.unit_text = raw.get("unit", "")
    need(isinstance(spec.unit_text, str), where, "`unit` must be a text")
    if spec.unit_text:
        spec.unit = unit_of(spec.unit_text)
        need(spec.unit, where, "unknown unit `" + spec.unit_text + "`")
    if kind == "number":
        number_spec(spec, raw, where)
    if kind == "boolean":
        true, false = texts(raw, "true_words", where), texts(raw, "false_words", where)
        spec.meanings = dict(TRUTHS)
        if negates(name):
            del spec.meanings["pass"], spec.meanings["fail"]
        for text, truth in [(text, True) for text in true] + [(text, False) for text in false]:
            need(spec.meanings.setdefault(word(text), truth) == truth, where, "`" + text + "` is both true and false")
        if asks_for_pass(name):
            add_verdicts(spec, True, False)
    if kind == "choice":
        need(texts(raw, "options", where), where, "`options` must not be empty")
        spec.meanings = {word(option): option for option in raw["options"]}
        aliases = raw.get("aliases", {})
        need(isinstance(aliases, dict), where, "`aliases` must be an object")
        for alias, option in aliases.items():
            need(isinstance(option, str) and option in raw["options"], where,
                 "alias `" + alias + "` does not name an option")
            need(compact(alias) and spec.meanings.setdefault(word(alias), option) == option, where,
                 "alias `" + alias + "` is empty or names two options")
        passed = [option for option in raw["options"] if word(option) in PASSED]
        failed = [option for option in raw["options"] if word(option) in FAILED]
        if len(passed) == 1 and len(failed) == 1:
            add_verdicts(spec, passed[0], failed[0])
    return spec


def add_verdicts(spec, passed, failed):
    """Adds the usual words for pass and fail, unless the task uses one of them the other way round."""
    usual = [(said, passed) for said in PASSED] + [(said, failed) for said in FAILED]
    if all(spec.meanings.get(said, meaning) == meaning for said, meaning in usual):
        spec.meanings.update(usual)
        spec.passing = {passed: True, failed: False}


def number_spec(spec, raw, where):
    spec.difference = flag(raw, "difference", where)
    need(not spec.difference or spec.unit[1] == KELVIN, where, "`difference` is for temperatures")
    spec.rel, spec.abs, spec.sig = raw.get("rel_tol"), raw.get("abs_tol"), raw.get("sig")
    for key, value in (("rel_tol", spec.rel), ("abs_tol", spec.abs)):
        need(value is None or (is_number(value) and value >= 0), where, "`" + key + "` must be a number, 0 or more")
    need(spec.rel is None or spec.rel < 1, where, "`rel_tol` must be below 1")
    need(spec.sig is None or (is_number(spec.sig) and isinstance(spec.sig, int) and 1 <= spec.sig <= 15), where,
         "`sig` must be a whole number from 1 to 15")
    need((spec.rel, spec.abs, spec.sig) != (None, None, None), where, "needs `rel_tol`, `abs_tol` or `sig`")


def wanted(spec, value, where):
    """(what `matches` needs, text for the details) of one expected value."""
    if spec.kind == "number":
        need(is_number(value), where, "the expected value must be a finite number")
        need(value != 0 or spec.abs is not None, where, "an expected 0 needs `abs_tol`")
        negative, digits, power, _ = numeral(repr(value))
        bound = max(float(spec.abs or 0), float(spec.rel or 0) * abs(float(value)))
        if spec.sig is not None and digits:
            bound = max(bound, real(False, "5", power + len(digits) - spec.sig - 1))
        return (float(value), bound), (repr(value) + " " + spec.unit_text).rstrip(" ")
    if spec.kind == "integer":
        read = numeral(value) if isinstance(value, str) else numeral(repr(value)) if is_number(value) else None
        form = decimal(*read[:3]) if read and not read[3] else (False, "", -1)
        need(0 <= form[2] <= 64, where, "the expected value must be a whole number")
        shown = ("-" if form[0] else "") + (form[1] or "0") + "0" * form[2]
        return (form, real(*form)), (shown + " " + spec.unit_text).rstrip(" ")
    if spec.kind == "boolean":
        need(isinstance(value, bool), where, "the expected value must be true or false")
        return value, "true" if value else "false"
    if spec.kind == "choice":
        need(isinstance(value, str) and value in spec.meanings.values(), where, "the expected value is not an option")
        return value, value
    accept = value if isinstance(value, list) else [value]
    need(accept and all(isinstance(text, str) and squeeze(text) for text in accept), where,
         "the expected value must be a text or a list of texts, none of them empty")
    spec.literal = spec.literal or any(map(is_placeholder, accept))
    return [stated(text) for text in accept], " | ".join(accept)


def field_spec(raw, where, name):
    kind = kind_of(raw, tuple(OWN_KEYS), where)
    if kind in SCALARS:
        value = "accept" if kind == "text" else "value"
        spec = scalar_spec(raw, where, ("weight", value), name)
        need(value in raw, where, "needs `" + value + "`")
        spec.want, spec.shown = wanted(spec, raw[value], where)
    else:
        only(raw, ("type", "meaning", "weight") + OWN_KEYS[kind], where)
        spec = Spec(kind)
        (list_spec if kind == "list" else table_spec)(spec, raw, where, name)
    spec.weight = raw.get("weight", 1)
    need(is_number(spec.weight) and 0 < spec.weight <= 1000000, where, "`weight` must be above 0, at most 1000000")
    spec.weight = float(spec.weight)
    return spec


def list_spec(spec, raw, where, name):
    items = raw.get("items")
    need(isinstance(items, list) and len(items) <= MAX_ITEMS, where, "`items` must be a list of at most 200 values")
    spec.item = scalar_spec(raw.get("item"), where + ".item", (), name)
    spec.ordered = flag(raw, "ordered", where)
    wants = [wanted(spec.item, item, where) for item in items]
    spec.wants = [want for want, _ in wants]
    spec.shown = "[" + ", ".join(shown for _, shown in wants) + "]"


def table_spec(spec, raw, where, _name):
    columns, rows = raw.get("columns"), raw.get("rows")
    need(isinstance(columns, dict) and 2 <= len(columns) <= 50, where, "`columns` must name 2 to 50 columns")
    need(isinstance(raw.get("key"), str) and raw["key"] in columns, where, "`key` must name a column")
    spec.key = raw["key"]
    spec.columns = {}
    names = [spec.key] + [name for name in columns if name != spec.key]
    for name in names:
        need(compact(name) and compact(name) not in spec.columns, where,
             "column `" + name + "` is empty or there twice")
        spec.columns[compact(name)] = scalar_spec(columns[name], where + ".columns." + name, (), name)
    key = spec.columns[compact(spec.key)]
    spec.bases = unit_bases(zip(names, spec.columns.values()))
    need(key.kind in ("integer", "choice", "text"), where, "the key column must be an integer, a choice or a text")
    need(isinstance(rows, list) and 1 <= len(rows) <= MAX_ITEMS, where, "`rows` must be a list of 1 to 200 objects")
    spec.rows = []
    for number, row in enumerate(rows):
        here = where + ".rows[" + str(number) + "]"
        only(row, tuple(columns), here)
        cells = []
        for name in names:
            need(name in row, here, "needs `" + name + "`")
            cells.append(wanted(spec.columns[compact(name)], row[name], here)[0])
        for other in spec.rows:
            same = bool(set(other[0]) & set(cells[0])) if key.kind == "text" else other[0] == cells[0]
            need(not same, here, "the key is there twice")
        spec.rows.append(cells)
    spec.shown = str(len(rows)) + (" row" if len(rows) == 1 else " rows")


class Sheet:
    """A checked answers file."""

    def __init__(self, answers):
        only(answers, ("version", "output", "fields"), "answers")
        need(is_number(answers.get("version")) and answers["version"] == 1, "answers", "`version` must be 1")
        self.output = answers.get("output")
        need(isinstance(self.output, str) and safe_path(self.output), "answers",
             "`output` must be a file below /workspace")
        fields = answers.get("fields")
        need(isinstance(fields, dict) and 1 <= len(fields) <= 1000, "answers", "`fields` must have 1 to 1000 fields")
        self.fields, self.names = {}, {}
        for name, raw in fields.items():
            where = "fields." + name
            folded = compact(name)
            need(folded and folded not in self.names, where, "the name is empty or there twice")
            need(folded not in ("value", "unit", "units"), where, "the name says nothing; name the quantity")
            self.names[folded] = name
            self.fields[name] = field_spec(raw, where, name)
        self.bases = unit_bases(self.fields.items())

    def field_of(self, key):
        """(name of the field, unit) that a key of the submission names; the name is None if it names none."""
        name = self.names.get(compact(key))
        return (name, "") if name is not None else unit_key(self.bases, key)


def unit_bases(named):
    """{folded name, also without a unit at its end: (name, spec)} of the fields that have a unit."""
    named = [(name, spec) for name, spec in named]
    bases, measured = {}, [(name, spec) for name, spec in named if spec.unit_text]
    for name, spec in measured:
        for base, unit in unit_ends(name):
            if folded_unit(unit) == folded_unit(spec.unit_text):
                bases[base] = None if base in bases else (name, spec)
                break
    for name, spec in named:
        bases[compact(name)] = (name, spec) if spec.unit_text else None
    return bases


def unit_ends(key):
    """(folded name, unit) for every place at which the rest of a key may be a unit, the shortest unit first."""
    key = key.strip(SPACES + "*`_")
    if len(key) > MAX_KEY:
        return
    for i in range(len(key) - 1, max(0, len(key) - MAX_SUFFIX), -1):
        if key[i] in " _-,/([":
            unit = key[i:].strip(" _-,/()[]")
            if lower(unit[:3]) in ("in ", "in_"):
                unit = unit[3:]
            if unit:
                yield compact(key[:i]), unit


def unit_key(bases, key):
    """(name, unit) of a key that is a field's name and a unit of its kind, `moment_kNm`; (None, "") of any other."""
    if bases:
        for base, unit in unit_ends(key):
            found = bases.get(base)
            if found is not None:
                name, spec = found
                if folded_unit(unit) == folded_unit(spec.unit_text):
                    return name, spec.unit_text
                if (len(unit) > 1 or spec.unit[1] == KELVIN) and unit != "min":
                    for text in (unit, unit.replace("_", " ")):
                        if any(read and fits(spec, read) for read in (unit_of(text), unit_of(text, True))):
                            return name, text
    return None, ""


def folded_unit(text):
    """The letters and digits of a unit in lower case, without `per`: `kN/m³` and `KN_per_m3` are one."""
    plain = "".join(c if c in LETTERS or c in DIGITS or c in "%\xb0" else " " for c in text.translate(UNIT_CHARS))
    return "".join(part for part in lower(plain).split(" ") if part != "per")


def safe_path(path):
    parts = path.split("/")
    return len(path) <= 200 and all(part and part[0] != "." and all(c in LETTERS + DIGITS + "._-" for c in part)
                                    for part in parts)


def plain(value, where="answers"):
    """A strictly parsed file as Python values."""
    if isinstance(value, list):
        return [plain(item, where) for item in value]
    if isinstance(value, Obj):
        found = {}
        for key, item in value.pairs:
            need(key not in found, where, "`" + key + "` is there twice")
            found[key] = plain(item, where)
        return found
    if isinstance(value, Bare):
        if value in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[value]
        return int(value) if all(c in "-" + DIGITS for c in value) else float(value)
    return value


def read_answers(data):
    """The answers file as a dictionary; raises AnswersError."""
    try:
        parser = Parser(data.decode("utf-8"), strict=True)
    except UnicodeDecodeError:
        raise AnswersError("answers: not UTF-8") from None
    try:
        parser.space()
        if parser.peek() != "{":
            raise Fail
        value = parser.object(1)
        parser.space()
        if parser.peek():
            raise Fail
    except Fail:
        raise AnswersError("answers: not JSON at character " + str(parser.i)) from None
    return plain(value)


# ---- the submission --------------------------------------------------------------------------------------------------


def decode(data):
    """UTF-8, UTF-16 with its mark, else Latin-1: no byte is an error."""
    for mark, name in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"", "utf-8")):
        if data.startswith(mark):
            try:
                return data[len(mark):].decode(name).lstrip("\ufeff")
            except UnicodeDecodeError:
                break
    return data.decode("latin-1")


def claims_of(sheet, data):
    """{name: claims for it} from every object of the submission; raises Unread.

    A claim is (value, unit of the key, whether it stands one level below an object that names other fields).
    """
    if len(data) > MAX_BYTES:
        raise Unread("the submission is larger than 1 MiB")
    text = decode(data)
    if not text.strip(SPACES):
        raise Unread("the submission is empty")
    if '"' not in text:  # a word processor was at work
        text = text.replace("\u201c", '"').replace("\u201d", '"')
    text = unquoted(text)
    parser, claims, count, spent = Parser(text), {}, 0, 0
    at = text.find("{")
    while at >= 0:
        parser.i = at
        try:
            count += collect(sheet, parser.object(1), claims)
            at = parser.i
        except Fail:
            spent += parser.i - at + 4
            at += 1
        if spent > 2 * len(text) + 65536:
            raise Unread("the submission has too many unfinished objects")
        if count > MAX_BLOCKS:
            raise Unread("the submission gives more than 64 answers", "contradictory")
        at = text.find("{", at)
    if not claims:
        raise Unread("the submission has no JSON object with an expected key")
    return claims


def unquoted(text):
    """The content of a file that is nothing but one JSON string."""
    parser = Parser(text)
    try:
        parser.space()
        if parser.peek() == '"':
            inner = parser.string()
            parser.space()
            if not parser.peek():
                return inner
    except Fail:
        pass
    return text


def collect(sheet, value, claims):
    """Adds what an object says about fields; one that says nothing is looked through. Returns how many spoke.

    Below an object that says something, the objects in it are looked at as well, but no deeper.
    """
    if isinstance(value, list):
        return sum(collect(sheet, item, claims) for item in value)
    if not isinstance(value, Obj):
        return 0
    silent = claim(sheet, value, claims, False)
    if len(silent) == len(value.pairs):
        return sum(collect(sheet, item, claims) for _, item in silent)
    for key, item in silent:
        if isinstance(item, list) and len(item) == 1:
            item = item[0]
        if isinstance(item, Obj) and compact(key) not in ("unit", "units"):
            claim(sheet, item, claims, True)
    return 1


def claim(sheet, value, claims, deeper):
    """Adds the fields of one object; returns its other pairs."""
    silent = []
    for key, item in value.pairs:
        name, unit = sheet.field_of(key)
        if name is None:
            silent.append((key, item))
        else:
            claims.setdefault(name, []).append((item, unit, deeper))
    return silent


# ---- reading values --------------------------------------------------------------------------------------------------
# A reading is (status, content, message). The content of what cannot be read is ("unread", text): it matches nothing
# and agrees only with itself.


def unread(status, value, message):
    return status, ("unread", show(value)), message


def is_unread(content):
    return isinstance(content, tuple) and content[0] == "unread"


def is_blank(value):
    return isinstance(value, str) and (not value.strip(SPACES) or
                                       (isinstance(value, Bare) and lower(value[:5]) in ("null", "none")))


def read(spec, value, key_unit=""):
    """The reading of a value; `key_unit` is the unit that its key states."""
    if spec.kind == "list":
        return read_list(spec, value)
    if spec.kind == "table":
        return read_table(spec, value)
    given, unit = value, ""
    if isinstance(given, list):
        if len(given) != 1 or isinstance(given[0], list):
            return unread("invalid", value, "a list where one value belongs")
        given = given[0]
    if isinstance(given, Obj):
        values = [item for key, item in given.pairs if compact(key) == "value"]
        units = [item for key, item in given.pairs if compact(key) in ("unit", "units") and not is_blank(item)]
        if not values or not all(isinstance(item, str) for item in values + units):
            return unread("invalid", value, "an object where one value belongs")
        if any(other != values[0] for other in values) or any(other != units[0] for other in units):
            return unread("contradictory", value, "more than one value or unit")
        given, unit = values[0], unmarked(units[0]) if units else ""
    if is_blank(given):
        return unread("missing", value, "no value")
    if spec.kind in ("number", "integer"):
        status, content, message = read_number(spec, given, [unit, key_unit])
    elif unit:
        return unread("invalid", value, "a unit where none belongs")
    elif spec.kind == "text":
        content = read_text(given)
        status, message = "invalid" if is_placeholder(given) and not spec.literal else "ok", ""
    else:
        content = read_word(spec, given)
        status = "invalid" if content is None else "ok"
        message = "neither true nor false" if spec.kind == "boolean" else "not one of the options"
    if status == "ok":
        return status, content, ""
    if is_placeholder(given):
        return unread("missing", value, "no value")
    return unread(status, value, message)


def read_number(spec, given, units):
    plain = approximated(without_good_ticks(unmarked(given)))
    reading = measured(spec, plain, units)
    if reading[0] == "ok":
        return reading
    bare, remark = split_remark(plain)
    again = measured(spec, bare, units) if remark is not None else reading
    if again[0] != "ok":
        return reading
    has_unit = bool(numeral(bare)[3]) or any(units)
    if repeats(spec, again[1], remark) or (is_harmless(remark) and (has_unit or is_clear(remark, spec))):
        return again
    return reading


def repeats(spec, content, remark):
    """Whether a remark is the same value once more, with a unit: "0.76 (76%)"."""
    parts = numeral(remark)
    return parts is not None and parts[3] != "" and agree(measured(spec, remark, [])[1], content)


def without_good_ticks(text):
    bare, tick = without_ticks(text)
    return bare if tick else text


def measured(spec, text, units):
    """(status, content, message) of a number with a unit; `units` are those stated in other places."""
    parts = numeral(text)
    if parts is None:
        return "invalid", None, "not one number"
    x = real(*parts[:3])
    if math.isinf(x):
        return "invalid", None, "not a finite number"
    found = [convert(spec, x, unit) for unit in [parts[3]] + units if unit] or [x]
    for y in found:
        if isinstance(y, str):
            return "wrong_unit", None, y
        if math.isinf(y):
            return "invalid", None, "not a finite number"
        if not agree(found[0], y):
            return "invalid", None, "two units"
    if spec.kind == "integer" and found[0] == x:
        return "ok", decimal(*parts[:3]), ""
    return "ok", found[0], ""


def read_word(spec, given):
    """The truth or option that a word names, None if it names none."""
    plain = unmarked(given)
    for said in (given, plain):
        found = spec.meanings.get(word(said))
        if found is not None:
            return found
    bare, remark = split_remark(plain)
    bare, tick = without_ticks(bare)
    found = spec.meanings.get(word(bare))
    if found is None and not bare and tick is not None:
        found = next((meaning for meaning, passed in spec.passing.items() if passed == tick), None)
    if found is None or (tick is not None and not supports(spec, found, tick)):
        return None
    return found if remark is None or is_silent(bare, remark, spec, found) else None


def supports(spec, found, tick):
    """Whether a tick or cross says the same as the word beside it."""
    if spec.kind == "boolean":
        return found == tick
    return spec.passing.get(found, True) == tick


def is_silent(bare, remark, spec, found):
    """Whether a remark neither casts doubt nor names another option, by itself or together with the word before it."""
    if not remark_words(remark) or any(c in "?!|" + GOOD + BAD for c in remark):
        return False
    before = [folded_part(part) for part in remark_words(bare)]
    for text in {remark, remark.replace("/", " ")}:
        behind = [folded_part(part) for part in remark_words(text)]
        if any(is_hedge(part) or contradicts(spec, found, part) for part in behind):
            return False
        said = [joined(part) for part in before + behind]
        for at in range(len(said)):
            name = ""
            for end in range(at, min(at + MAX_SAID, len(said))):
                part = said[end].lstrip("-") if name else said[end]
                name += gap(name, part) + part if part else ""
                if end >= len(before) and spec.meanings.get(name, found) != found:
                    return False
    return True


def contradicts(spec, found, part):
    """Whether a word of a remark answers the question of a check the other way than `found`."""
    return found in spec.passing and TRUTHS.get(part, spec.passing[found]) != spec.passing[found]


def read_text(given):
    """A text; ("told", text, text without marks and remark) if these differ."""
    whole_text, plain = stated(given), unmarked(given)
    bare, remark = split_remark(plain)
    # In "P7 (P8)" the remark may be another answer.
    clear = remark is not None and is_harmless(remark) and not (has_digit(bare) and has_digit(remark))
    bare = stated(bare if clear else plain)
    return whole_text if not bare or bare == whole_text else ("told", whole_text, bare)


def too_many(given, expected):
    return given > 4 * expected + 16


def read_list(spec, value):
    empty, items = holds_nothing(value), value
    if is_blank(value):
        return unread("missing", value, "no value")
    if not isinstance(value, list):
        if len(spec.wants) != 1:
            return unread("missing" if empty else "invalid", value, "no value" if empty else "not a list")
        items = [value]
    if too_many(len(items), len(spec.wants)):
        return unread("invalid", value, "far too many items")
    contents = [read(spec.item, item)[1] for item in items]
    if empty and all(map(is_unread, contents)):
        return unread("missing", value, "no value")
    return "ok", contents, ""


def read_table(spec, value):
    if is_blank(value):
        return unread("missing", value, "no value")
    empty, rows = holds_nothing(value, compact(spec.key)), value
    if isinstance(value, Obj) and all(isinstance(row, Obj) for _, row in value.pairs):
        rows = [Obj([(spec.key, key)] + row.pairs) for key, row in value.pairs]
    if not isinstance(rows, list) or not all(isinstance(row, Obj) for row in rows):
        return unread("missing" if empty else "invalid", value, "no value" if empty else "not a list of objects")
    if too_many(len(rows), len(spec.rows)):
        return unread("invalid", value, "far too many rows")
    contents = [read_row(spec, row) for row in rows]
    if empty and all(is_unread(cell) for row in contents for cell in row[1:]):
        return unread("missing", value, "no value")
    return "ok", contents, ""


def read_row(spec, row):
    """The contents of one row's cells in the order of the columns."""
    given = {}
    for key, item in row.pairs:
        name, unit = compact(key), ""
        if name not in spec.columns:
            name, unit = unit_key(spec.bases, key)
        if name is not None:
            given.setdefault(compact(name), []).append((item, unit))
    cells = []
    for name, column in spec.columns.items():
        contents = [read(column, item, unit)[1] for item, unit in given.get(name, ())]
        if not contents or any(not agree(contents[0], other) for other in contents):
            contents = [("unread", "")]
        cells.append(contents[0])
    return cells


def agree(one, other):
    """Whether two contents are the same answer."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-9 * max(abs(one), abs(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(agree, one, other))
    return type(one) is type(other) and one == other


def matches(spec, want, content):
    """Whether a content is the expected value."""
    if spec.kind == "number":
        value, bound = want
        # The slack lets 0.4 be within 0.1 of 0.3 although binary fractions disagree.
        return isinstance(content, float) and abs(content - value) <= bound * 1.000000001 + abs(value) * 1e-12
    if spec.kind == "integer":
        if isinstance(content, float):
            return abs(content - want[1]) <= 1e-12 * abs(want[1])
        return content == want[0]
    if spec.kind == "text":
        if isinstance(content, tuple) and content[0] == "told":
            return content[1] in want or content[2] in want
        return isinstance(content, str) and content in want
    return type(content) is type(want) and content == want


# ---- grading ---------------------------------------------------------------------------------------------------------


def grade(spec, claims):
    """(score, status, got, message) of a field from all claims for it."""
    if len(claims) > MAX_BLOCKS:
        return 0.0, "contradictory", shorten(show(claims[0][0])), "more than 64 values for one key"
    readings = [(read(spec, value, unit), value, deeper) for value, unit, deeper in claims]
    given = [claimed for claimed in readings if claimed[0][0] != "missing"]
    if not all(deeper for _, _, deeper in given):
        # One level deeper, the same name may also stand for a unit or a note.
        given = [claimed for claimed in given if claimed[0][0] == "ok" or not claimed[2]]
    if not given:
        return 0.0, "missing", None, "no value"
    (status, content, message), value, _ = given[0]
    got = shorten(show(value))
    if not all(agree(content, other[1]) or (spec.kind == "text" and matches(spec, spec.want, content)
                                            and matches(spec, spec.want, other[1])) for other, _, _ in given[1:]):
        return 0.0, "contradictory", got, "different values for one key"
    if status != "ok":
        return 0.0, status, got, message
    if spec.kind == "list":
        return grade_list(spec, content) + (got, str(len(content)) + " given, " + str(len(spec.wants)) + " expected")
    if spec.kind == "table":
        return grade_table(spec, content) + (got, str(len(content)) + " given, " + spec.shown + " expected")
    if matches(spec, spec.want, content):
        return 1.0, "correct", got, ""
    return 0.0, "wrong", got, "not the expected value"


def share(right, total):
    if right == total:
        return 1.0, "correct"
    return (right / total, "partial") if right else (0.0, "wrong")


def grade_list(spec, contents):
    if spec.ordered:
        right = sum(matches(spec.item, want, content) for want, content in zip(spec.wants, contents))
    else:
        right = matching([[at for at, content in enumerate(contents) if matches(spec.item, want, content)]
                          for want in spec.wants], len(contents))
    return share(right, max(len(spec.wants), len(contents)))


def matching(edges, width):
    """The most expected items that can each have a given item of their own (Kuhn's augmenting paths)."""
    owner, seen, count = [-1] * width, [False] * width, 0

    def place(item):
        for at in edges[item]:
            if not seen[at]:
                seen[at] = True
                if owner[at] < 0 or place(owner[at]):
                    owner[at] = item
                    return True
        return False

    for item in range(len(edges)):
        if place(item):
            count += 1
            seen = [False] * width
    return count


def grade_table(spec, rows):
    columns = list(spec.columns.values())
    kept, torn, count = [], [], 0
    for row in rows:
        first = None if is_unread(row[0]) else next((one for one in kept if one[0] == row[0]), None)
        if first is None:
            kept.append(row)
        elif agree(first, row):
            continue
        else:
            torn.append(row[0])
        count += 1
    right = 0
    for want in spec.rows:
        found = [row for row in kept if matches(columns[0], want[0], row[0])]
        # Rows under two accepted spellings of a key must say the same, like rows under one.
        if found and all(row[0] not in torn and agree(found[0][1:], row[1:]) for row in found):
            right += sum(map(matches, columns[1:], want[1:], found[0][1:]))
    return share(right, (len(columns) - 1) * max(len(spec.rows), count))


def evaluate(sheet, data, problem=None):
    """The details of scoring these bytes; with a `problem` there are none to score."""
    status, claims = "missing", {}
    try:
        if problem is not None:
            raise Unread(problem)
        claims = claims_of(sheet, data)
    except Unread as error:
        problem, status = str(error), error.status
    fields, total, weights = {}, 0.0, 0.0
    for name, spec in sheet.fields.items():
        result, state, got, message = 0.0, status, None, "no value" if problem is None else problem
        if problem is None and name in claims:
            result, state, got, message = grade(spec, claims[name])
        fields[name] = {"score": result, "status": state, "expected": shorten(spec.shown), "got": got,
                        "message": message}
        total += spec.weight * result
        weights += spec.weight
    perfect = all(field["status"] == "correct" for field in fields.values())
    # Rounded, but never up to 1: that is kept for a flawless answer.
    reward = 1.0 if perfect else min(math.floor(total / weights * 1e6 + 0.5) / 1e6, 0.999999)
    return {"reward": reward, "fields": fields, "problem": problem, "scorer": REVISION}


def score(data, answers):
    """The details of scoring `data` (bytes) against `answers` (a dictionary); raises AnswersError."""
    return evaluate(Sheet(answers), data)


def dump(value):
    """The canonical JSON of results."""
    return json.dumps(value, ensure_ascii=False) + "\n"


# ---- files -----------------------------------------------------------------------------------------------------------


def read_submission(root, parts):
    """(bytes, problem) of a regular file below root; no link is followed, nothing blocks, the size is bounded."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    folder = handle = -1
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parts[:-1]:
            inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        handle = os.open(parts[-1], flags, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return b"", "the submission is not a regular file"
        with os.fdopen(os.dup(handle), "rb") as file:
            return file.read(MAX_BYTES + 1), None
    except FileNotFoundError:
        return b"", "there is no submission"
    except OSError:
        return b"", "the submission cannot be read or is a link"
    finally:
        for opened in (folder, handle):
            if opened >= 0:
                os.close(opened)


def write(path, text):
    """Whole or not at all."""
    with open(path + ".part", "w", encoding="utf-8", newline="") as file:
        file.write(text)
    os.replace(path + ".part", path)


def main(arguments):
    here = os.path.dirname(os.path.abspath(__file__))
    options = {"--answers": os.path.join(here, "answers.json"), "--submission": None, "--logs": LOGS}
    if len(arguments) % 2 or any(name not in options for name in arguments[::2]):
        print("usage: verify.py [--answers FILE] [--submission FILE] [--logs DIR]", file=sys.stderr)
        return 2
    options.update(zip(arguments[::2], arguments[1::2]))
    try:
        with open(options["--answers"], "rb") as file:
            sheet = Sheet(read_answers(file.read()))
    except (AnswersError, OSError) as error:
        print("verify.py: " + str(error), file=sys.stderr)
        return 2
    root, parts = WORKSPACE, sheet.output.split("/")
    if options["--submission"] is not None:
        root, last = os.path.split(os.path.abspath(options["--submission"]))
        parts = [last]
    details = evaluate(sheet, *read_submission(root, parts))
    os.makedirs(options["--logs"], exist_ok=True)
    write(os.path.join(options["--logs"], "details.json"), dump(details))
    write(os.path.join(options["--logs"], "reward.json"), dump({"reward": details["reward"]}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
