"""What the specification asks of plant: subjects of clauses, their limits, and what items offer for them."""

WATER_KG_PER_M3 = 998.0
GRAVITY = 9.81

KINDS = {"P": "pumps", "F": "fans", "AHU": "air handling units", "CH": "chillers"}
SECTIONS = {"P": "21", "F": "22", "AHU": "23", "CH": "24"}
FILES = {"P": "21-pumps.md", "F": "22-fans.md", "AHU": "23-air-handling-units.md", "CH": "24-chillers.md"}

# A subject has rungs: 0 is lenient, 1 usual, 2 strict. `base` and `step` give a limit on a rung and what an item
# offers between two of them; projects differ in the base by some of `vary`. `levels` are classes, of which a rung is
# met by itself and all above.
SUBJECTS = {
    "sound": {"title": "Sound", "least": False, "base": 80, "step": -4, "vary": 1, "digits": 1, "unit": "dB(A)"},
    "vibration": {
        "title": "Vibration",
        "least": False,
        "base": 4.5,
        "step": -1,
        "vary": 0.1,
        "digits": 2,
        "unit": "mm/s",
    },
    "ie": {"title": "Motor efficiency class", "least": True, "levels": [2, 3, 4, 5]},
    "ip": {"title": "Degree of protection", "least": True, "levels": [54, 55, 65]},
    "motor": {"title": "Motor rating", "least": True, "base": 15, "step": 6, "vary": 1, "digits": 1, "unit": "%"},
    "warranty": {"title": "Warranty", "least": True, "levels": [18, 24, 36, 48]},
    "delivery": {
        "title": "Delivery",
        "least": False,
        "base": 24,
        "step": -4,
        "vary": 1,
        "digits": 0,
        "unit": "weeks",
    },
    "weight": {"title": "Operating weight", "least": False, "base": 100, "step": -5, "digits": 1, "unit": "%"},
    "flow": {"title": "Flow", "least": True, "base": 0, "step": 2.5, "digits": 1, "unit": "%"},
    "head": {"title": "Total head", "least": True, "base": 4, "step": 2.5, "vary": 0.5, "digits": 1, "unit": "%"},
    "pressure": {"title": "Pressure", "least": True, "base": 4, "step": 2.5, "vary": 0.5, "digits": 1, "unit": "%"},
    "capacity": {
        "title": "Cooling capacity",
        "least": True,
        "base": 4,
        "step": 2.5,
        "vary": 0.5,
        "digits": 1,
        "unit": "%",
    },
    "efficiency": {"title": "Efficiency", "least": True, "base": 73, "step": 3, "vary": 1, "digits": 1, "unit": "%"},
    "npsh": {
        "title": "Net positive suction head",
        "least": True,
        "base": 1.2,
        "step": 0.5,
        "vary": 0.1,
        "digits": 2,
        "unit": "m",
    },
    "speed": {"title": "Shaft speed", "least": False, "levels": [3000, 1500, 1000]},
    "sfp": {
        "title": "Specific fan power",
        "least": False,
        "base": 1.9,
        "step": -0.2,
        "vary": 0.05,
        "digits": 2,
        "unit": "W/(L/s)",
    },
    "face": {
        "title": "Coil face velocity",
        "least": False,
        "base": 2.4,
        "step": -0.2,
        "vary": 0.05,
        "digits": 2,
        "unit": "m/s",
    },
    "recovery": {"title": "Heat recovery", "least": True, "base": 73, "step": 3, "vary": 1, "digits": 1, "unit": "%"},
    "leakage": {"title": "Casing leakage", "least": False, "levels": [3, 2, 1]},
    "cop": {
        "title": "Coefficient of performance",
        "least": True,
        "base": 5.2,
        "step": 0.4,
        "vary": 0.1,
        "digits": 2,
        "unit": "",
    },
    "drop": {
        "title": "Evaporator pressure drop",
        "least": False,
        "base": 60,
        "step": -10,
        "vary": 2.5,
        "digits": 1,
        "unit": "kPa",
    },
    "turndown": {"title": "Least load", "least": False, "base": 25, "step": -6, "vary": 1, "digits": 1, "unit": "%"},
}
GENERAL = ["sound", "vibration", "ie", "ip", "motor", "warranty", "delivery", "weight"]
OWN = {
    "P": ["flow", "head", "efficiency", "npsh", "speed"],
    "F": ["flow", "pressure", "efficiency", "sfp"],
    "AHU": ["flow", "pressure", "face", "recovery", "leakage"],
    "CH": ["capacity", "cop", "drop", "turndown"],
}
DUTY = {"P": "head", "F": "pressure", "AHU": "pressure", "CH": "capacity"}
# Compressors of chillers are hermetic, so the clauses on motors do not reach them.
NOT_FOR = {"CH": ["ie", "motor"]}
# Subjects that are printed as they are, so that one number of a data sheet can change without the rest of it.
PLAIN = ["sound", "vibration", "ie", "ip", "warranty", "delivery", "recovery", "leakage", "drop", "turndown"]
# Subjects on which vendors ask for deviations.
NEGOTIABLE = ["sound", "vibration", "motor", "efficiency", "npsh", "sfp", "face", "recovery", "cop", "drop", "turndown"]

# unit: factor to the unit of the schedule, decimals on a data sheet
UNITS = {
    "L/s": (1.0, 2),
    "m3/h": (1 / 3.6, 1),
    "m3/s": (1000.0, 3),
    "US gpm": (0.0630902, 1),
    "cfm": (0.471947, 0),
    "m": (1.0, 2),
    "ft": (0.3048, 2),
    "kPa": (1.0, 1),
    "bar": (100.0, 3),
    "psi": (6.89476, 2),
    "Pa": (1.0, 0),
    "mbar": (100.0, 2),
    "in. w.g.": (249.089, 3),
    "kW": (1.0, 2),
    "hp": (0.7457, 2),
    "TR": (3.51685, 1),
    "kg": (1.0, 0),
    "t": (1000.0, 3),
    "lb": (0.453592, 0),
    "mm/s": (1.0, 2),
    "in/s": (25.4, 4),
    "weeks": (1.0, 0),
    "days": (1 / 7, 0),
    "months": (1.0, 0),
    "years": (12.0, 1),
    "mm": (1.0, 0),
    "%": (1.0, 1),
    "dB(A)": (1.0, 1),
    "rpm": (1.0, 0),
    "": (1.0, 0),
}
# Units a field may be printed in, by how mixed the units of the project are: 1, 2 or 3 and more of each list.
FIELD_UNITS = {
    "water flow": [["L/s"], ["L/s", "m3/h"], ["L/s", "m3/h", "US gpm"]],
    "air flow": [["L/s"], ["m3/s", "m3/h"], ["m3/s", "m3/h", "cfm"]],
    "head": [["m"], ["m", "kPa"], ["m", "kPa", "ft", "bar"]],
    "pressure": [["Pa"], ["Pa", "mbar"], ["Pa", "mbar", "in. w.g."]],
    "power": [["kW"], ["kW"], ["kW", "hp"]],
    "capacity": [["kW"], ["kW"], ["kW", "TR"]],
    "weight": [["kg"], ["kg", "t"], ["kg", "t", "lb"]],
    "vibration": [["mm/s"], ["mm/s"], ["mm/s", "in/s"]],
    "suction head": [["m"], ["m"], ["m", "ft"]],
    "drop": [["kPa"], ["kPa", "bar"], ["kPa", "bar", "psi"]],
    "delivery": [["weeks"], ["weeks", "days"], ["weeks", "days"]],
    "warranty": [["months"], ["months", "years"], ["months", "years"]],
}


def limit(spec, rung):
    """The limit that a clause states on a rung."""
    if "levels" in spec:
        return spec["levels"][rung]
    return round(spec["base"] + (rung - 1) * spec["step"], 4)


def offered(spec, quality):
    """What an item offers that meets all rungs up to `quality`."""
    if "levels" in spec:
        return spec["levels"][min(int(quality), len(spec["levels"]) - 1)]
    return spec["base"] + (quality - 1) * spec["step"]


def subjects_of(kind):
    return [name for name in GENERAL + OWN[kind] if name not in NOT_FOR.get(kind, [])]


def head_m(value, unit):
    """A head of water in metres; pressures are converted with the density of the specification."""
    if unit in ("kPa", "bar"):
        return value * UNITS[unit][0] * 1000 / (WATER_KG_PER_M3 * GRAVITY)
    return value * UNITS[unit][0]


def figures(kind, sheet, duty):
    """The number that each clause is about, from the printed data sheet and the duty that counts."""
    get = {name: field["value"] for name, field in sheet.items()}
    found = {name: get[name] for name in ("sound", "vibration", "ip", "warranty", "delivery")}
    found["weight"] = 100 * get["weight"] / duty["weight_allowance_kg"]
    if kind != "CH":
        found["ie"] = get["ie"]
        found["motor"] = 100 * (get["motor"] / get["absorbed"] - 1)
        found["flow"] = 100 * (get["flow"] / duty["flow_l_per_s"] - 1)
    if kind == "P":
        found["head"] = 100 * (get["head"] / duty["head_m"] - 1)
        found["efficiency"] = get["efficiency"]
        found["npsh"] = duty["npsh_available_m"] - get["npsh"]
        found["speed"] = get["speed"]
    if kind in ("F", "AHU"):
        found["pressure"] = 100 * (get["pressure"] / duty["pressure_pa"] - 1)
    if kind == "F":
        found["efficiency"] = get["efficiency"]
        found["sfp"] = 1000 * get["input"] / get["flow"]
    if kind == "AHU":
        found["face"] = get["flow"] * 1000 / (get["coil_width"] * get["coil_height"])
        found["recovery"] = get["recovery"]
        found["leakage"] = get["leakage"]
    if kind == "CH":
        found["capacity"] = 100 * (get["capacity"] / duty["capacity_kw"] - 1)
        found["cop"] = get["capacity"] / get["absorbed"]
        found["drop"] = get["drop"]
        found["turndown"] = get["turndown"]
    return found


def meets(subject, figure, bound):
    return figure >= bound if SUBJECTS[subject]["least"] else figure <= bound


def too_near(subject, figure, bound):
    """Whether rounding or another order of conversions could decide."""
    spec = SUBJECTS[subject]
    if "levels" in spec or subject == "delivery":
        return False
    if spec["unit"] == "%" and subject in ("motor", "flow", "head", "pressure", "capacity"):
        return abs(figure - bound) < 0.5
    return abs(figure / bound - 1) < 0.005
