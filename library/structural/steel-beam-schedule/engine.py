"""Check of a schedule of simply supported steel beams to EN 1993-1-1, 6.2, after revisions, deletions and closed RFIs."""

import datetime
import math
import random

MODULUS_MPA = 210000
GRAVITY = 9.81
STRENGTH_MPA = {"S235": 235, "S275": 275, "S355": 355}
# section: mass kg/m, second moment cm4, plastic modulus cm3, shear area cm2
SECTIONS = {
    "IPE 200": (22.4, 1943, 220.6, 14.0),
    "IPE 220": (26.2, 2772, 285.4, 15.88),
    "IPE 240": (30.7, 3892, 366.6, 19.14),
    "IPE 270": (36.1, 5790, 484.0, 22.14),
    "IPE 300": (42.2, 8356, 628.4, 25.68),
    "IPE 330": (49.1, 11770, 804.3, 30.81),
    "IPE 360": (57.1, 16270, 1019, 35.14),
    "IPE 400": (66.3, 23130, 1307, 42.69),
    "IPE 450": (77.6, 33740, 1702, 50.85),
    "IPE 500": (90.7, 48200, 2194, 59.87),
    "IPE 550": (106, 67120, 2787, 72.34),
    "IPE 600": (122, 92080, 3512, 83.78),
}
REVISIONS = ["P1", "P2", "P3", "C1", "C2", "C3"]
REMARKS = ["", "", "", "see drawing S-210", "fire protection by others", "end plates to detail 7", "camber 15 mm"]
RETAINED = "existing beam, retained"
START = datetime.date(2024, 1, 8)


class Draws:
    """Few ways to draw, all from random(), which is the same in every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def integer(self, low, high):
        return low + int(self.random() * (high - low + 1))

    def choice(self, items):
        return items[self.integer(0, len(items) - 1)]

    def grid(self, low, high, step):
        return round(low + self.integer(0, round((high - low) / step)) * step, 4)

    def chance(self, percent):
        return self.random() * 100 < percent

    def sample(self, items, count):
        left = list(items)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(count)]


def check(beam, rules):
    """Utilisations of bending, shear and deflection."""
    mass, second_moment, modulus, shear_area = SECTIONS[beam["section"]]
    strength = STRENGTH_MPA[beam["grade"]] / rules["gamma_m0"]
    span = beam["span_m"]
    load = rules["gamma_g"] * (beam["permanent"] + mass * GRAVITY / 1000) + rules["gamma_q"] * beam["variable"]
    bending = load * span**2 / 8 / (modulus * strength / 1000)
    shear = load * span / 2 / (shear_area * strength / 10 / math.sqrt(3))
    deflection = 5 * beam["variable"] * (span * 1000) ** 4 / (384 * MODULUS_MPA * second_moment * 1e4)
    divisor = rules["roof_divisor"] if beam["use"] == "roof" else rules["floor_divisor"]
    return bending, shear, deflection / (span * 1000 / divisor)


def sized(draws, use, rules):
    """A beam as a designer would put it down: the lightest section that stays below an aimed-at utilisation."""
    beam = {
        "use": use,
        "span_m": draws.grid(4, 9, 0.05),
        "permanent": draws.grid(1.5, 5, 0.25) if use == "roof" else draws.grid(5, 16, 0.25),
        "variable": draws.grid(2, 6, 0.25) if use == "roof" else draws.grid(5, 14, 0.25),
        "grade": draws.choice(["S275", "S355", "S355", "S235"]),
    }
    # Most beams are in order, some were sized too small; none sits on the edge.
    aim = 1.04 + 0.36 * draws.random() if draws.chance(15) else 0.7 + 0.25 * draws.random()
    for name in SECTIONS:
        beam["section"] = name
        use = max(check(beam, rules))
        if use <= aim and abs(use - 1) > 0.02:
            break
    return beam


def earlier(draws, beam):
    """The same beam as it stood in another revision."""
    names = list(SECTIONS)
    place = names.index(beam["section"]) + draws.choice([-1, 0, 1])
    return {
        **beam,
        "span_m": round(beam["span_m"] + draws.choice([-0.5, -0.35, -0.2, 0.15, 0.3, 0.45]), 2),
        "permanent": max(1.0, beam["permanent"] + draws.choice([-1.5, -0.75, 0, 0.5, 1.25])),
        "variable": max(1.5, beam["variable"] + draws.choice([-2, -1, 0, 0.75, 1.5])),
        "section": names[min(max(place, 0), len(names) - 1)],
        "grade": draws.choice(["S275", "S355"]) if draws.chance(30) else beam["grade"],
    }


def build(params):
    """Rows of the schedule and entries of the RFI log, in the order in which they are printed."""
    rules = params
    draws = Draws(params["schedule_seed"])
    beams = []
    for number in range(params["beam_count"]):
        level = 1 + number * 3 // params["beam_count"]
        mark = f"{'R' if level == 3 else 'B'}{level}{number + 1:02d}"
        beams.append({"mark": mark, "level": f"L{level}", "use": "roof" if level == 3 else "floor"})

    marks = [beam["mark"] for beam in beams]
    special = draws.sample(marks, params["deleted_count"] + params["retained_count"])
    deleted, retained = special[: params["deleted_count"]], special[params["deleted_count"] :]
    ordinary = [mark for mark in marks if mark not in special]
    drafted = draws.sample(marks, params["draft_count"])

    rows = []
    for beam in beams:
        mark, use = beam["mark"], beam["use"]
        count = draws.integer(2, 3) if draws.chance(params["revision_percent"]) or mark in deleted else 1
        first = draws.integer(0, len(REVISIONS) - 1 - count)
        day = START + datetime.timedelta(days=draws.integer(0, 40))
        final = sized(draws, use, rules)
        for step in range(count + (mark in drafted)):
            last = step == count - 1
            values = final if last else earlier(draws, final)
            status = "draft" if step == count else "deleted" if last and mark in deleted else "issued"
            row = {**beam, **values, "revision": REVISIONS[first + step], "date": day, "status": status}
            row["remark"] = RETAINED if mark in retained else draws.choice(REMARKS)
            row["millimetres"] = draws.chance(params["millimetre_percent"])
            row["current"] = last
            rows.append(row)
            day += datetime.timedelta(days=draws.integer(12, 45))

    current = {row["mark"]: row for row in rows if row["current"]}
    queries = []
    chosen = draws.sample(ordinary, params["closed_rfis"] + params["stale_rfis"] + params["open_rfis"] + 1)
    for index, mark in enumerate(chosen):
        row = current[mark]
        status = "closed"
        changes = False
        if index < params["closed_rfis"]:
            closed = row["date"] + datetime.timedelta(days=draws.integer(4, 60))
            changes = True
        elif index < params["closed_rfis"] + params["stale_rfis"]:
            closed = row["date"] - datetime.timedelta(days=draws.integer(2, 20))
        elif index < len(chosen) - 1:
            closed = None
            status = draws.choice(["open", "withdrawn"])
        else:
            closed = row["date"] + datetime.timedelta(days=draws.integer(4, 60))
        raised = (closed or row["date"] + datetime.timedelta(days=20)) - datetime.timedelta(days=draws.integer(3, 15))
        query = {"mark": mark, "status": status, "raised": raised, "closed": closed, "changes": changes, "kind": "none"}
        if index < len(chosen) - 1:
            query["kind"] = draws.choice(["section", "variable", "span"])
            names = list(SECTIONS)
            place = names.index(row["section"]) + draws.choice([-1, 1, 1])
            query["section"] = names[min(max(place, 0), len(names) - 1)]
            query["variable"] = round(row["variable"] + draws.choice([-1, 1, 1.5, 2]), 2)
            query["span_m"] = round(row["span_m"] + draws.choice([-0.4, -0.25, 0.2, 0.35]), 2)
        queries.append(query)

    # Neither file is in the order in which it was made.
    rows = draws.sample(rows, len(rows))
    queries.sort(key=lambda query: (query["raised"], query["mark"]))
    return rows, queries


def compute(
    schedule_seed,
    beam_count,
    revision_percent,
    deleted_count,
    retained_count,
    draft_count,
    millimetre_percent,
    closed_rfis,
    stale_rfis,
    open_rfis,
    gamma_g,
    gamma_q,
    gamma_m0,
    floor_divisor,
    roof_divisor,
    addition_percent,
):
    params = dict(locals())  # the same dictionary that build_sources gets
    rows, queries = build(params)
    beams = {}
    for row in rows:
        if row["current"] and row["status"] == "issued" and row["remark"] != RETAINED:
            beams[row["mark"]] = dict(row)
    applied = 0
    for query in queries:
        if query["changes"] and query["mark"] in beams:
            beam = beams[query["mark"]]
            key = "span_m" if query["kind"] == "span" else query["kind"]
            if beam[key] == query[key]:
                raise ValueError("an RFI that changes nothing")
            beam[key] = query[key]
            applied += 1
    checks = {mark: check(beam, params) for mark, beam in beams.items()}
    use = {mark: max(values) for mark, values in checks.items()}
    if any(abs(value - 1) < 0.008 for value in use.values()):
        raise ValueError("a beam on the edge")
    ranked = sorted(use.values(), reverse=True)
    if ranked[0] - ranked[1] < 0.008:
        raise ValueError("no clear critical beam")
    failing = sorted(mark for mark, value in use.items() if value > 1)
    if not 1 <= len(failing) <= len(use) // 2:
        raise ValueError("too few or too many beams fail")
    by_deflection = sum(1 for values in checks.values() if values[2] == max(values))
    if by_deflection == 0 or any(abs(values[2] - max(values[:2])) < 0.001 for values in checks.values()):
        raise ValueError("no deflection governs, or one that hardly does")
    addition = 1 + addition_percent / 100
    mass = {mark: SECTIONS[beam["section"]][0] * beam["span_m"] * addition / 1000 for mark, beam in beams.items()}
    critical = max(use, key=use.get)
    second = [mark for mark in sorted(beams) if beams[mark]["level"] == "L2"]
    return {
        "beams_in_force": len(beams),
        "total_mass_t": sum(mass.values()),
        "critical_beam": critical,
        "highest_utilisation": use[critical],
        "mean_utilisation": sum(use.values()) / len(use),
        "s355_mass_t": sum(mass[mark] for mark in beams if beams[mark]["grade"] == "S355"),
        "rfis_applied": applied,
        "failing_beams": failing,
        "deflection_governed": by_deflection,
        "level_2_beams": [{"mark": mark, "utilisation": use[mark]} for mark in second],
    }


def number(value):
    return f"{value:g}"


def build_sources(params):
    rows, queries = build(params)
    lines = ["mark,level,use,rev,date,status,section,grade,span,permanent_kN_per_m,variable_kN_per_m,remark"]
    for row in rows:
        span = f"{round(row['span_m'] * 1000)} mm" if row["millimetres"] else f"{row['span_m']:.2f} m"
        lines.append(
            f"{row['mark']},{row['level']},{row['use']},{row['revision']},{row['date'].isoformat()},{row['status']},"
            f"{row['section']},{row['grade']},{span},{row['permanent']:.2f},{row['variable']:.2f},"
            + (f'"{row["remark"]}"' if "," in row["remark"] else row["remark"])
        )
    schedule = "\n".join(lines) + "\n"

    lines = ["section,mass_kg_per_m,second_moment_cm4,plastic_modulus_cm3,shear_area_cm2"]
    lines += [",".join([name, *(number(value) for value in values)]) for name, values in SECTIONS.items()]
    sections = "\n".join(lines) + "\n"

    def old(value, choices):
        # The struck-out figure is the one that follows in the list of usual values.
        return choices[(choices.index(value) + 1) % len(choices)]

    specification = f"""# Structural steelwork specification (marked-up copy)

Struck-out text no longer applies.

## 1 Materials

1.1 Yield strength, all thicknesses: S235 235 MPa, S275 275 MPa, S355 355 MPa. Modulus of elasticity 210 GPa.

1.2 Partial factor γM0 = ~~{old(params["gamma_m0"], [1.0, 1.05, 1.1]):.2f}~~ {params["gamma_m0"]:.2f}.

## 2 Actions

2.1 The scheduled permanent load does not include the steel beam. Add its mass per metre times 9.81 m/s².

2.2 Partial factors: permanent actions ~~{old(params["gamma_g"], [1.35, 1.3, 1.25]):.2f}~~ {params["gamma_g"]:.2f}, variable
actions {params["gamma_q"]:.2f}.

## 3 Serviceability

3.1 Deflection from the characteristic variable load alone:

| use | limit |
|---|---|
| floor | span / ~~{old(params["floor_divisor"], [300, 325, 350, 360, 400])}~~ {number(params["floor_divisor"])} |
| roof | span / {number(params["roof_divisor"])} |

3.2 Cambers, where remarked in the schedule, are not counted.

## 4 Quantities

4.1 Add {number(params["addition_percent"])} % to the mass of the beams for end plates, cleats and
bolts. The addition is no load.
"""

    text = ["# RFI log", ""]
    for place, query in enumerate(queries, 1):
        answer = {
            "section": f"Section to be {query.get('section')}.",
            "variable": f"Variable load to be {query.get('variable', 0):.2f} kN/m.",
            "span": f"Span to be {query.get('span_m', 0):.2f} m.",
            "none": "No change. Schedule is correct.",
        }[query["kind"]]
        asked = {
            "section": "The section clashes with the services. Can it be changed?",
            "variable": "The load does not agree with the architect's layout. Please confirm.",
            "span": "The grid was moved on site. What is the span?",
            "none": "Please confirm grade and section.",
        }[query["kind"]]
        word = "Answer" if query["status"] == "closed" else "Proposal of the contractor"
        text += [
            f"## RFI-{place:03d}",
            "",
            f"Beam: {query['mark']}  ",
            f"Raised: {query['raised'].isoformat()}  ",
            f"Status: {query['status']}" + (f" {query['closed'].isoformat()}" if query["closed"] else ""),
            "",
            asked,
            "",
            f"{word}: {answer}",
            "",
        ]
    return {
        "schedule/beams.csv": schedule,
        "schedule/sections.csv": sections,
        "documents/specification.md": specification,
        "documents/rfi-log.md": "\n".join(text),
    }
