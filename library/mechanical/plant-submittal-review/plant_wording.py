"""Puts a project into words: specification, addenda, registers, schedule and the vendors' submittals."""

import datetime

from plant_project import Dice
from plant_subjects import FILES, GENERAL, KINDS, SECTIONS, SUBJECTS, limit

SENTENCES = {
    "sound": "The sound pressure level at a distance of 1 m, A-weighted, at the duty point, shall not exceed {v} "
    "dB(A).",
    "vibration": "The vibration velocity at the bearing housings, or at the base frame where bearings are enclosed, "
    "shall not exceed {v} mm/s r.m.s.",
    "ie": "Motors shall be of efficiency class IE{v} or better.",
    "ip": "Motors, terminal boxes and control panels shall have a degree of protection of at least IP{v}.",
    "motor": "The rated power of the motor shall exceed the power absorbed at the duty point by at least {v} %.",
    "warranty": "The manufacturer's warranty shall run for at least {v} months from taking over.",
    "delivery": "The equipment shall be on site within {v} weeks of the order.",
    "weight": "The operating weight of one unit shall not exceed the allowance in the equipment schedule.",
    "flow": "The flow offered shall be not less than the scheduled flow.",
    "head": "The total head offered shall be not less than the scheduled head plus {v} % of it.",
    "pressure": "The pressure offered shall be not less than the scheduled pressure plus {v} % of it.",
    "capacity": "The cooling capacity offered shall be not less than the scheduled capacity plus {v} % of it.",
    "efficiency": "The efficiency at the duty point, without motor and drive, shall be not less than {v} %.",
    "npsh": "The NPSH available by the equipment schedule shall exceed the NPSH required at the duty point by at "
    "least {v} m.",
    "speed": "The speed of the shaft shall not exceed {v} rpm.",
    "sfp": "The specific fan power, which is the electrical input at the duty point divided by the flow offered, "
    "shall not exceed {v} W/(L/s).",
    "face": "At the flow offered, the air velocity over the gross face of the cooling coil (width times height) "
    "shall not exceed {v} m/s.",
    "recovery": "The temperature efficiency of the heat recovery, dry and at equal mass flows, shall be not less "
    "than {v} %.",
    "leakage": "The casing shall be of air leakage class L{v} or better; L1 is better than L2, and L2 better than L3.",
    "cop": "The coefficient of performance, which is the cooling capacity offered divided by the power absorbed at "
    "the duty point, shall be not less than {v}.",
    "drop": "The pressure drop of the evaporator on the water side, at the scheduled flow, shall not exceed {v} kPa.",
    "turndown": "The unit shall run steadily down to {v} % of its capacity or lower.",
}
OPENINGS = {
    "20": [
        "These requirements hold for all mechanical plant of the project. Sections 21 and following add to them for "
        "each kind of plant.",
        "This section collects what is common to all plant. The sections that follow say what is particular to each "
        "kind.",
    ],
    "P": [
        "This section covers centrifugal pumps of the heating, chilled water and condenser water circuits.",
        "Centrifugal pumps with electric motors, for closed water circuits in plant rooms.",
    ],
    "F": [
        "This section covers centrifugal and axial fans in ducted systems. Pressures of fans are total pressures.",
        "Ducted fans for supply, extract and transfer air. All fan pressures are total pressures.",
    ],
    "AHU": [
        "This section covers factory-made air handling units with heat recovery. The pressure of a unit is the "
        "external static pressure of its supply side.",
        "Modular air handling units. Pressure, here, is the external static pressure on the supply side.",
    ],
    "CH": [
        "This section covers water-cooled chillers with hermetic compressors.",
        "Packaged water-cooled chillers. Compressors are hermetic or semi-hermetic.",
    ],
}
# Clauses that are not reviewed at this stage: title, text.
FILLERS = {
    "20": {
        "duty": [
            ("Design conditions", "Plant rooms are at 5 to 40 °C. Site is {altitude} m above sea level; no derating "
            "is needed."),
            ("Water", "Properties of water are taken as density 998 kg/m3 and g = 9.81 m/s2 wherever pressures and "
            "heads are converted."),
            ("Supply", "Electrical supply is 400 V, three phases, 50 Hz, with a tolerance of 10 %."),
        ],
        "construction": [
            ("Finish", "Carbon steel is blasted and coated to {coat} micrometres in two coats. Damage is made good "
            "on site."),
            ("Nameplates", "Each unit has a stainless nameplate with item number, maker, year and rated values."),
            ("Lifting", "Units of more than 60 kg have lifting points that carry twice their weight."),
        ],
        "other": [
            ("Documents", "Manuals, spare parts lists and drawings are handed over {weeks} weeks before taking over."),
            ("Spare parts", "One set of bearings and seals is supplied for each size of machine."),
            ("Packing", "Openings are blanked off until connection. Storage on site is under cover."),
        ],
    },
    "P": {
        "duty": [
            ("Curve", "The head rises steadily to shut-off, which lies 10 to 25 % above the head at the duty point."),
            ("Parallel running", "Pumps of one circuit have the same curve within 2 %."),
            ("Tests", "One pump of each size is tested at the works, and the test is witnessed."),
        ],
        "construction": [
            ("Seals", "Mechanical seals are of cartridge type, silicon carbide on carbon."),
            ("Casing", "Casings are of cast iron for {bar} bar, impellers of bronze or stainless steel."),
            ("Couplings", "Couplings have spacers, so that seals can be changed without moving the motor."),
        ],
        "other": [
            ("Base", "Pumps stand on inertia bases with spring mounts, levelled and grouted by the installer."),
            ("Gauges", "Pressure gauges of 100 mm with cocks are fitted at suction and discharge."),
            ("Alignment", "Alignment is checked by laser after piping is connected, and recorded."),
        ],
    },
    "F": {
        "duty": [
            ("Stall", "The duty point lies at least 15 % in flow away from stall."),
            ("Curves", "Curves are submitted for the density of the duty and for 1.2 kg/m3."),
            ("Balance", "Impellers are balanced at the works to grade G6.3 or better."),
        ],
        "construction": [
            ("Drives", "Belt drives have at least two belts and a guard that opens without tools."),
            ("Bearings", "Bearings have a rated life (L10) of {hours} hours and are greased from outside."),
            ("Access", "Scroll casings of more than 500 mm have an inspection door."),
        ],
        "other": [
            ("Connections", "Flexible connections are of coated glass fabric, 150 mm long, not stretched."),
            ("Mounts", "Spring mounts are chosen for a deflection of 25 mm at least."),
            ("Rotation", "The sense of rotation is marked on the casing and checked on site."),
        ],
    },
    "AHU": {
        "duty": [
            ("Filters", "Filters are sized for a final pressure drop of {final} Pa, which fan selections include."),
            ("Condensate", "Trays fall to the drain, and traps are sized for the greatest negative pressure."),
            ("Frost", "A frost stat closes the outdoor damper and opens the heating valve."),
        ],
        "construction": [
            ("Panels", "Panels are 50 mm thick with mineral wool, screwed from inside, edges closed."),
            ("Doors", "Doors of sections under pressure open inwards or have two-stage handles."),
            ("Lights", "Sections that are walked into have lights and a switch outside."),
        ],
        "other": [
            ("Delivery in parts", "Units that do not pass the access route of {width} m are delivered in parts."),
            ("Base frame", "Units stand on frames of 150 mm, levelled within 2 mm."),
            ("Leak test", "One unit of each size is tested for leakage after assembly on site."),
        ],
    },
    "CH": {
        "duty": [
            ("Part load", "Part load figures are submitted at 75, 50 and 25 %, with falling condenser water "
            "temperatures."),
            ("Fouling", "Selections allow for fouling of 0.018 m2.K/kW in the evaporator and 0.044 m2.K/kW in the "
            "condenser."),
            ("Restart", "The unit restarts within {minutes} minutes of a loss of supply."),
        ],
        "construction": [
            ("Tubes", "Tubes are of copper, seamless, and can be replaced one by one."),
            ("Vessels", "Vessels carry the certificate of the notified body, and relief valves are in pairs."),
            ("Insulation", "Cold surfaces are insulated at the works with closed-cell foam of 19 mm."),
        ],
        "other": [
            ("Refrigerant", "The first charge, and its records, belong to the supply."),
            ("Interface", "Run, fault, setpoint and power are passed to the building management system."),
            ("Commissioning", "The maker's engineer commissions each unit and instructs the operators for two days."),
        ],
    },
}
DETAILS = {
    "altitude": [40, 120, 310],
    "coat": [120, 160, 200],
    "weeks": [4, 6, 8],
    "bar": [10, 16],
    "hours": [60000, 80000],
    "final": [200, 250, 300],
    "width": [1.6, 1.9, 2.2],
    "minutes": [3, 5, 8],
}
SERVICES = {
    "P": ["chilled water", "condenser water", "heating water", "heat recovery circuit", "secondary chilled water"],
    "F": ["plant room extract", "car park extract", "kitchen extract", "transfer air", "general extract"],
    "AHU": ["offices north", "offices south", "lecture rooms", "wards", "theatres", "atrium"],
    "CH": ["base load", "peak load", "night load", "process cooling", "winter load"],
}
VENDORS = {
    "P": ["Halvorsen Pumps", "Brightwater Hydraulics", "Okafor & Lind"],
    "F": ["Meridian Air", "Torvald Fans", "Castell Ventilation"],
    "AHU": ["Norrbeck Climate", "Ashdown Air Systems", "Ferrante Units"],
    "CH": ["Polaris Refrigeration", "Kestrel Cooling", "Lindqvist Chillers"],
}
# Names of fields on data sheets, as two kinds of vendors write them.
LABELS = {
    "flow": ("Flow at duty point", "Rated flow"),
    "head": ("Total head at duty point", "Rated total head"),
    "pressure": ("Pressure at duty point", "Rated pressure"),
    "capacity": ("Cooling capacity at duty point", "Rated cooling capacity"),
    "absorbed": ("Power absorbed at duty point", "Absorbed power (duty)"),
    "input": ("Electrical input at duty point", "Electrical input (duty)"),
    "motor": ("Motor rated power", "Motor size"),
    "efficiency": ("Efficiency at duty point", "Efficiency (duty)"),
    "npsh": ("NPSH required at duty point", "NPSHr (duty)"),
    "speed": ("Shaft speed", "Speed"),
    "sound": ("Sound pressure level at 1 m", "Lp at 1 m"),
    "vibration": ("Vibration velocity, r.m.s.", "Vibration (r.m.s.)"),
    "ie": ("Motor efficiency class", "Efficiency class of motor"),
    "ip": ("Degree of protection", "Protection"),
    "warranty": ("Warranty from taking over", "Warranty"),
    "delivery": ("Delivery after order", "Delivery time"),
    "weight": ("Operating weight", "Weight, operating"),
    "coil_width": ("Cooling coil, width", "Coil width"),
    "coil_height": ("Cooling coil, height", "Coil height"),
    "recovery": ("Temperature efficiency of heat recovery", "Heat recovery, temperature efficiency"),
    "leakage": ("Casing leakage class", "Leakage class of casing"),
    "drop": ("Evaporator pressure drop", "Pressure drop, evaporator"),
    "turndown": ("Least stable load", "Minimum load"),
}
ORDER = list(LABELS)
PREFIX = {"ie": "IE", "ip": "IP", "leakage": "L"}
LETTERS = [
    "We thank you for your enquiry and submit our technical offer for review. The selection was made for the "
    "scheduled duty with a small reserve. We confirm that the equipment complies with the specification in all "
    "respects.",
    "Please find our data sheet below. The unit is of our standard range and has been supplied to several projects "
    "of this size. All values are guaranteed within the tolerances of the test standard.",
    "This is our technical submittal for the item named above. Greatest power and shipping weight are given for "
    "information only. In our opinion all requirements are met.",
]
AGAIN = [
    "Following your comments we have looked at the selection again. The data sheet below takes the place of the "
    "earlier one.",
    "This submission is complete in itself and includes a new selection with other components.",
]
REASONS = {
    "sound": "An acoustic enclosure would block access to the drive end.",
    "vibration": "The support frame is stiff, and the maker's standard grade of balance is one step lower.",
    "motor": "The next size of motor would not fit on the standard base.",
    "efficiency": "The next better hydraulic size has a delivery time that the programme does not allow.",
    "npsh": "A larger impeller eye would need another casing.",
    "sfp": "A larger wheel does not fit into the space between the ducts.",
    "face": "A wider coil would not pass the access route.",
    "recovery": "A deeper exchanger would raise the pressure drop and the fan power.",
    "cop": "A larger heat exchanger would exceed the space in the plant room.",
    "drop": "The three-pass arrangement is needed for turbulent flow at part load.",
    "turndown": "Hot gas bypass below this load is not wanted by the operator.",
}
NOISE_RFIS = [
    ("colour of the plant", "the maker's standard colour is accepted. No change to the schedule"),
    ("side of access doors", "doors are on the side shown on drawing M-310. No change to the schedule"),
    ("unloading on site", "a crane is there on weekdays from 7 to 16 h. No change to the schedule"),
    ("language of manuals", "manuals are in English. No change to the schedule"),
]
REMARKS = [
    "The installer records this in the quality file.",
    "The engineer is told five working days in advance.",
    "Photographs are part of the record.",
    "This is shown on the installation drawings.",
]
NOTES = [
    "Note: dimensions and weights are subject to the order. Drawings follow within two weeks of the order.",
    "Note: wiring diagrams and curves are held by our office and are sent on request.",
    "Note: recommended spare parts for two years of running are offered separately.",
    "Note: prices are in our commercial offer, which is not part of this submittal.",
]
KEYS = {"head_m": ("total head", "m"), "pressure_pa": ("pressure", "Pa"), "capacity_kw": ("cooling capacity", "kW")}
COLUMNS = ["flow_l_per_s", "head_m", "pressure_pa", "capacity_kw", "npsh_available_m", "weight_allowance_kg"]


def sentence(site, subject, rung):
    return SENTENCES[subject].format(v=f"{limit(site['subjects'][subject], rung):g}")


def bound_text(subject, value):
    unit = SUBJECTS[subject]["unit"]
    shown = f"{value:.{SUBJECTS[subject]['digits']}f}"
    return shown + (f" {unit}" if unit else "")


def details(dice):
    return {name: dice.pick(values) for name, values in DETAILS.items()}


def section_text(site, section, dice):
    kind = None if section == "20" else section
    head = "20" if kind is None else SECTIONS[kind]
    title = "General requirements" if kind is None else KINDS[kind].capitalize()
    words = details(dice)
    lines = [
        f"# Section {head}: {title}",
        "",
        f"Issue of {site['dates']['issue']:%d %B %Y}. Clauses marked (R) are reviewed with the vendors' submittals. "
        f"All others are checked at the works or on site.",
        "",
        f"## {head}.1 Scope",
        "",
        dice.pick(OPENINGS[section]),
    ]
    if kind:
        lines += [
            "",
            f"Section 20 applies as well. Where this section has a clause on a subject of section 20, it takes the "
            f"place of the clause there, for {KINDS[kind]} only.",
        ]
    if kind == "CH":
        lines += ["", "Clauses of section 20 on motor rating and motor efficiency class do not apply to chillers."]
    for at, heading in enumerate(["Duty and performance", "Construction", "Weight, delivery and other matters"]):
        lines += ["", f"## {head}.{at + 2} {heading}"]
        entries = {}
        for (where, name), clause in site["clauses"].items():
            if where == section and clause.split(".")[1] == str(at + 2):
                source, rung = (site["general"][name] if kind is None else site["own"][kind, name])[0]
                text = sentence(site, name, rung)
                if kind is not None and name in GENERAL:
                    text = f"In place of clause {site['clauses']['20', name]}: {text[0].lower()}{text[1:]}"
                entries[clause] = f"**{clause} {SUBJECTS[name]['title']} (R).** {text}"
        for (where, part_at, _), (clause, part, index, number) in site["fillers"].items():
            if where == section and part_at == at:
                pool = FILLERS[section][part]
                filler, text = pool[(index + number) % len(pool)]
                entries[clause] = f"**{clause} {filler}.** {text.format(**words)}"
        for clause in sorted(entries, key=lambda clause: int(clause.split(".")[2])):
            lines += ["", entries[clause]]
    return "\n".join(lines) + "\n"


def addendum_text(site, number, dice):
    source = f"addendum {number}"
    entries = []
    for name, texts in site["general"].items():
        for where, rung in texts:
            if where == source:
                entries.append((site["clauses"]["20", name], name, rung, "20"))
    for (kind, name), texts in site["own"].items():
        for where, rung in texts:
            if where == source:
                entries.append((site["clauses"][kind, name], name, rung, kind))
    lines = [
        f"# Addendum {number} to the specification",
        "",
        f"Issued on {site['dates'][source]:%Y-%m-%d}. This addendum is part of the contract documents. What it "
        f"replaces or deletes no longer holds; everything else stays as it is. The numbers of clauses do not change.",
    ]
    blocks = []
    for clause, name, rung, section in entries:
        title = SUBJECTS[name]["title"]
        if rung is None:
            blocks.append(
                f"Clause {clause}, {title}: the clause is deleted. For {KINDS[section]} the clause of section 20 on "
                f"this subject applies again."
            )
            continue
        text = sentence(site, name, rung)
        how = dice.pick(["delete the text and put in its place:", "the text is replaced by"])
        blocks.append(f"Clause {clause}, {title} (R): {how} \"{text}\"")
    for fill in dice.shuffled(list(site["fillers"].values()))[:2]:
        blocks.append(f"Clause {fill[0]}: add \"{dice.pick(REMARKS)}\"")
    drawing = dice.pick(["M-110", "M-214", "M-305"])
    blocks.append(f"Drawing {drawing} is reissued as revision {'BC'[number - 1]}; the plant is not affected.")
    for place, block in enumerate(dice.shuffled(blocks), 1):
        lines += ["", f"A{number}.{place} {block}"]
    return "\n".join(lines) + "\n"


def date(day):
    return f"{day:%Y-%m-%d}"


def register_text(site, dice):
    lines = [
        "# Register of deviations and requests for information",
        "",
        "Kept by the engineer. Each entry has its history, latest step last; the latest step says how the matter "
        "stands. A deviation is granted for the item and the clause that it names and for no other, and only as far "
        "as its limit. It lapses when an addendum that was issued after the deviation was accepted replaces or "
        "deletes the clause.",
        "",
        "## Deviations",
    ]
    for entry in site["deviations"]:
        name = entry["subject"]
        least = SUBJECTS[name]["least"]
        decided = entry["decided"]
        raised = decided - datetime.timedelta(days=7 + dice.below(5))
        words = "down to" if least else "up to"
        asked = bound_text(name, entry["bound"])
        lines += [
            "",
            f"### {entry['number']}: {entry['item']}, clause {entry['clause']} ({SUBJECTS[name]['title']})",
            "",
            f"{dice.pick(['The vendor asks for a relief.', 'Relief is asked for by the vendor.'])} {REASONS[name]}",
            "",
            f"- {date(raised)} raised, {words} {asked} asked for",
        ]
        if entry["fate"] in ("accepted", "revoked"):
            lines.append(f"- {date(decided)} accepted for {entry['item']}, {words} {asked}")
        if entry["fate"] == "revoked":
            why = dice.pick(["the client's operator does not agree", "the vendor has other sizes on stock"])
            lines.append(f"- {date(decided + datetime.timedelta(days=9))} revoked, as {why}")
        if entry["fate"] == "refused":
            lines.append(f"- {date(decided)} rejected, the clause stands")
        if entry["fate"] == "pending":
            lines.append(f"- {date(decided)} under review; the engineer is minded to agree {words} {asked}")
    lines += ["", "## Requests for information"]
    requests = [("duty", request) for request in site["rfis"]]
    requests += [("other", noise) for noise in dice.shuffled(NOISE_RFIS)[:3]]
    first = site["dates"]["addendum 1"]
    for number, (what, request) in enumerate(dice.shuffled(requests), 1):
        opened = first + datetime.timedelta(days=2 + dice.below(9))
        later = opened + datetime.timedelta(days=5 + dice.below(8))
        if what == "other":
            item = dice.pick(site["items"])["tag"]
            lines += ["", f"### RFI-{number:02d}: {item}, {request[0]}", "", f"- {date(opened)} raised"]
            lines += [f"- {date(later)} closed: {request[1]}."]
            continue
        name, unit = KEYS[request["key"]]
        change = f"from {request['old']:g} {unit} to {request['new']:g} {unit}"
        lines += [
            "",
            f"### RFI-{number:02d}: {request['item']}, scheduled {name}",
            "",
            "The pipework and duct layouts have moved since the schedule was drawn up, and the vendor asks whether "
            "the duty still holds.",
            "",
            f"- {date(opened)} raised",
        ]
        value = f"scheduled {name} of {request['item']}"
        if request["open"]:
            lines.append(f"- {date(later)} open: a change of the {value} {change} is being looked into.")
        else:
            lines.append(f"- {date(later)} closed: the {value} is changed {change}.")
    return "\n".join(lines) + "\n"


def schedule_text(site, dice):
    rows = []
    for item in site["items"]:
        rows.append((item["tag"], item["kind"], "in contract", item["schedule"], item))
    for other in site["outsiders"]:
        rows.append((other["tag"], other["kind"], other["status"], other["like"]["schedule"], None))
    lines = ["item,kind,service,status,duty_units,standby_units," + ",".join(COLUMNS) + ",remark"]
    for tag, kind, status, duty, _ in sorted(rows, key=lambda row: (SECTIONS[row[1]], row[0])):
        cells = [f"{duty[name]:g}" if name in duty else "" for name in COLUMNS]
        remark = dice.pick(["", "", "inverter drive", "see drawing M-214", "level 2 plant room", "roof plant room"])
        service = dice.pick(SERVICES[kind])
        lines.append(
            f"{tag},{KINDS[kind][:-1]},{service},{status},{duty['duty_units']},{duty['standby_units']},"
            + ",".join(cells) + f",{remark}"
        )
    return "\n".join(lines) + "\n"


def sheet_rows(item, sheet, style, dice):
    rows = []
    for name in ORDER:
        if name in sheet:
            field = sheet[name]
            rows.append((LABELS[name][style], PREFIX.get(name, "") + field["text"], field["unit"]))
            if name == "absorbed":
                factor = dice.between(1.06, 1.16)
                unit = field["unit"]
                rows.append(("Greatest power absorbed", f"{float(field['text']) * factor:.2f}", unit))
            if name == "sound":
                rows.append(("Sound power level", f"{float(field['text']) + dice.between(9, 13):.1f}", "dB(A)"))
            if name == "weight":
                text = f"{float(field['text']) * dice.between(0.86, 0.94):.{len(field['text'].partition('.')[2])}f}"
                rows.append(("Shipping weight", text, field["unit"]))
    connection = dice.pick(["PN 16 flanges", "flanged", "to drawing"])
    rows.append(("Supply", "400", "V"))
    rows.append(("Starting current", f"{dice.between(4.5, 7):.1f}", "x rated"))
    rows.append(("Connections", connection, ""))
    return rows


def sheet_text(rows, layout):
    if layout == 0:
        return [f"  {label + ' ':.<46} {value} {unit}".rstrip() for label, value, unit in rows]
    if layout == 1:
        return ["| Property | Value | Unit |", "|---|---|---|"] + [
            f"| {label} | {value} | {unit or '-'} |" for label, value, unit in rows
        ]
    return [f"{number:>2}. {label}: {value} {unit}".rstrip() for number, (label, value, unit) in enumerate(rows, 1)]


def submittal_text(item, vendor, layout, style, dice):
    kind = KINDS[item["kind"]][:-1]
    lines = [f"{vendor.upper()}", f"Technical submittal for item {item['tag']} ({kind})", ""]
    for submission, day in zip(item["submissions"], item["dated"]):
        letter = submission["letter"]
        model = f"{vendor[:2].upper()}{dice.below(90) + 10}-{dice.below(900) + 100}"
        lines += [
            f"=== Submission {letter}, {date(day)} ===",
            "",
            dice.pick(LETTERS if letter == "A" else AGAIN),
            "",
            f"Item: {item['tag']}    Model: {model}    Values are for one unit.",
            "",
        ]
        lines += sheet_text(sheet_rows(item, submission["sheet"], style, dice), layout)
        lines += ["", dice.pick(NOTES), ""]
    return "\n".join(lines)


def log_text(rows):
    return "\n".join(["item,submission,received,file,status"] + rows) + "\n"


def files(site):
    dice = Dice(site["seed"])
    found = {"specification/20-general-requirements.md": section_text(site, "20", dice)}
    for kind in site["kinds"]:
        found[f"specification/{FILES[kind]}"] = section_text(site, kind, dice)
    for number in range(1, site["addenda"] + 1):
        found[f"specification/addendum-{number}.md"] = addendum_text(site, number, dice)
    found["schedule/equipment.csv"] = schedule_text(site, dice)
    if site["registered"]:
        found["registers/deviations-and-rfis.md"] = register_text(site, dice)
    log = []
    styles = {}
    for item in site["items"] + [site["stray"]]:
        vendor = dice.pick(VENDORS[item["kind"]])
        layout, style = styles.setdefault(vendor, (dice.below(3), dice.below(2)))
        place = f"submittals/{item['tag']}.txt"
        found[place] = submittal_text(item, vendor, layout, style, dice)
        for submission, day in zip(item["submissions"], item["dated"]):
            status = "withdrawn by the vendor" if submission["withdrawn"] else "received"
            log.append((day, f"{item['tag']},{submission['letter']},{date(day)},{item['tag']}.txt,{status}"))
    found["registers/submittal-log.csv"] = log_text([row for _, row in sorted(log)])
    return found
