"""Calculation report of a steel building's columns: load take-down, combinations, flexural buckling and mass.

The project is drawn as a book of base documents and a list of later changes (revision notices and mails). What is in
force is the book with the changes that hold, in the order of their dates.
"""

import copy
import math
import random

import catalogue
import documents

GRAVITY = 9.81  # m/s2
MODULUS_MPA = 210000
BANDS = ((0.55, 0.96), (1.03, 1.22))  # utilisations of columns that pass and of columns that fail
# Effective length factors about y and z.
CASES = {
    "EL-1": (1.0, 1.0),
    "EL-2": (0.85, 0.85),
    "EL-3": (1.0, 0.5),
    "EL-4": (0.85, 1.0),
    "EL-5": (0.85, 0.6),
}


class Dice:
    """Draws from random() alone, which is the same in every version of Python."""

    def __init__(self, seed):
        self.next = random.Random(seed).random

    def between(self, low, high):
        return low + (high - low) * self.next()

    def below(self, count):
        return int(self.next() * count)

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def chance(self, share):
        return self.next() < share

    def shuffled(self, items):
        pool = list(items)
        return [pool.pop(self.below(len(pool))) for _ in range(len(pool))]


def reduction(floors):
    """Factor on reducible imposed load from this number of floors."""
    return round(1.1 - 0.1 * floors, 1) if floors else 1.0


def takedown(book, mark):
    """Characteristic loads on a column in kN: permanent, reducible and other imposed, snow; and its floors."""
    column = book["columns"][mark]
    length = book["levels"][column["top"]] - column["base_mm"] / 1000
    loads = {"permanent": catalogue.mass_kg_per_m(column["section"]) * GRAVITY * length / 1000}
    loads.update({"imposed reducible": 0.0, "imposed not reducible": 0.0, "snow": 0.0})
    floors = set()
    for row in book["rows"].values():
        if row["column"] != mark or row["status"] != "current":
            continue
        kind = book["types"][row["code"]]
        loads["permanent"] += row["quantity"] * kind["permanent"]
        if kind["kind"] != "none":
            loads[kind["kind"]] += row["quantity"] * kind["variable"]
        if kind["kind"] == "imposed reducible" and row["level"] != "RF":
            floors.add(row["level"])
    return loads, len(floors), length


def check(book, mark):
    """All results of one column."""
    column, basis = book["columns"][mark], book["basis"]
    loads, floors, length = takedown(book, mark)
    permanent = basis["gamma_g"] * loads["permanent"]
    reducible, other = loads["imposed reducible"], loads["imposed not reducible"]
    imposed_leads = reduction(floors) * reducible + other + basis["psi_snow"] * loads["snow"]
    snow_leads = loads["snow"] + basis["psi_imposed"] * (reducible + other)
    load = permanent + basis["gamma_q"] * max(imposed_leads, snow_leads)

    area, thickness, radii, curves = catalogue.column_section(column["section"])
    strength = catalogue.YIELD_MPA[column["grade"]][thickness > 16]
    storey_mm = book["levels"][column["first"]] * 1000 - column["base_mm"]
    slenderness, resistance = [], []
    for factor, radius, curve in zip(CASES[column["case"]], radii, curves):
        relative = factor * storey_mm / radius / (math.pi * math.sqrt(MODULUS_MPA / strength))
        phi = 0.5 * (1 + catalogue.IMPERFECTION[curve] * (relative - 0.2) + relative**2)
        chi = min(1.0, 1 / (phi + math.sqrt(phi**2 - relative**2)))
        slenderness.append(relative)
        resistance.append(chi * area * strength / basis["gamma_m1"] / 1000)
    return {
        "column": mark,
        "section": column["section"],
        "permanent_load_kn": loads["permanent"],
        "design_load_kn": load,
        "slenderness_y": slenderness[0],
        "slenderness_z": slenderness[1],
        "buckling_resistance_kn": min(resistance),
        "utilisation": load / min(resistance),
        "verdict": "PASS" if load <= min(resistance) else "FAIL",
        "mass_kg": catalogue.mass_kg_per_m(column["section"]) * length,
    }


def live(book):
    return [mark for mark in sorted(book["columns"]) if book["columns"][mark]["status"] == "new"]


def set_value(book, item, value):
    kind, key, field = item
    if field is None:
        book[kind][key] = value
    else:
        book[kind][key][field] = value


def get_value(book, item):
    kind, key, field = item
    return book[kind][key] if field is None else book[kind][key][field]


def in_force(book, changes):
    """The book after all changes that hold, the latest last."""
    final = copy.deepcopy(book)
    for change in sorted(changes, key=lambda change: change["day"]):
        if change["holds"]:
            set_value(final, change["item"], change["value"])
    return final


def draw_book(dice, params):
    """The base documents, sections left open."""
    floors = [f"L{number}" for number in range(1, params["floor_count"] + 1)]
    levels, height = {}, 0.0
    for number, name in enumerate([*floors, "RF"]):
        height = round(height + (dice.between(4.2, 5.0) if number == 0 else dice.between(3.5, 4.1)), 2)
        levels[name] = height
    quarter = lambda low, high: round(dice.between(low, high) * 4) / 4
    tenth = lambda low, high: round(dice.between(low, high), 1)
    types = {}
    for code, per, permanent, variable, kind in (
        ("F1", "m2", tenth(3.4, 4.2), quarter(2.5, 3.0), "imposed reducible"),
        ("F2", "m2", tenth(3.6, 4.6), quarter(4.0, 5.0), "imposed reducible"),
        ("F3", "m2", tenth(3.6, 4.4), quarter(6.0, 7.5), "imposed not reducible"),
        ("F4", "m2", tenth(2.2, 3.0), quarter(5.0, 6.5), "imposed not reducible"),
        ("S1", "m2", tenth(4.0, 5.2), quarter(3.0, 4.0), "imposed reducible"),
        ("W1", "m", tenth(5.5, 9.0), 0.0, "none"),
        ("W2", "m", tenth(6.0, 10.5), 0.0, "none"),
        ("H1", "each", quarter(12, 22), quarter(15, 28), "imposed not reducible"),
        ("R1", "m2", tenth(1.0, 1.8), tenth(0.6, 1.4), "snow"),
        ("R2", "m2", tenth(2.2, 3.4), tenth(0.6, 1.4), "snow"),
    ):
        types[code] = {"per": per, "permanent": permanent, "variable": variable, "kind": kind}
    columns, rows = {}, {}
    letters = "ABCDEFG"
    wide = 5 if params["column_count"] > 12 else 4
    for number in range(params["column_count"]):
        mark = f"C{number + 1:02d}"
        short = dice.chance(0.15) and len(floors) > 2
        columns[mark] = {
            "grid": f"{letters[number // wide]}{number % wide + 1}",
            "grade": "S355" if dice.chance(0.7) else "S275",
            "case": dice.pick(["EL-1", "EL-1", "EL-2", "EL-3", "EL-4", "EL-5"]),
            "base_mm": -50 * (3 + dice.below(12)),
            "first": "L2" if len(floors) > 2 and not short and dice.chance(0.12) else "L1",
            "top": floors[-1] if short else "RF",
            "status": "new",
            "hollow": dice.chance(0.3),
            "rev": "A",
        }
    for level in [*floors, "RF"]:
        listed = []
        for mark, column in columns.items():
            names = list(levels)
            if not names.index(column["first"]) <= names.index(level) <= names.index(column["top"]):
                continue
            is_roof = level == "RF"
            main = dice.pick(["R1", "R1", "R2"] if is_roof else ["F1", "F1", "F2"])
            listed.append((mark, main, tenth(16, 38)))
            if dice.chance(0.5 if is_roof else 0.75):
                extra = dice.pick(["R1", "R2"] if is_roof else ["F1", "F2", "F3", "F4", "S1"])
                other = {"R1": "R2", "R2": "R1"}.get(main, "S1")
                listed.append((mark, extra if extra != main else other, tenth(4, 14)))
            if dice.chance(0.6):
                listed.append((mark, "W1", tenth(3, 8.5)))
            if not is_roof and dice.chance(0.35):
                listed.append((mark, "W2", tenth(2, 6.5)))
            if dice.chance(0.14):
                listed.append((mark, "H1", 1 + dice.below(2)))
        sheet = []
        for mark, code, quantity in listed:
            if dice.chance(params["superseded_percent"] / 100) and code != "H1":
                old = round(quantity * dice.pick([0.78, 0.86, 1.14, 1.27]), 1)
                sheet.append((mark, code, old, dice.pick(["superseded", "superseded", "provisional"])))
            sheet.append((mark, code, quantity, "current"))
        for number, (mark, code, quantity, status) in enumerate(sheet, 1):
            rows[f"{level}-{number:03d}"] = {
                "level": level, "column": mark, "code": code, "quantity": quantity, "status": status,
                "in_mm": types[code]["per"] == "m" and dice.chance(params["millimetre_percent"] / 100),
                "remark": documents.row_remark(dice, status, code),
            }
    basis = {
        name: params[name] for name in ("gamma_g", "gamma_q", "gamma_m1", "psi_imposed", "psi_snow", "addition_percent")
    }
    return {"basis": basis, "types": types, "levels": levels, "columns": columns, "rows": rows}


def altered(dice, book, item):
    """Another sensible value of an item."""
    kind, key, field = item
    value = get_value(book, item)
    if field == "quantity":
        return round(value * dice.pick([0.72, 0.8, 1.2, 1.28, 1.36]), 1)
    if kind == "types":
        return round(value + dice.pick([0.2, 0.3, 0.4] if key[0] == "R" else [0.5, 0.75, 1.0]), 2)
    if kind == "levels":
        return round(value + dice.pick([0.15, 0.2, 0.25, 0.3]), 2)
    if field == "case":
        return dice.pick([case for case in CASES if CASES[case] != CASES[value] and case != "EL-4"])
    if field == "grade":
        return "S275" if value == "S355" else "S355"
    return {"rows": "void", "columns": "deleted"}[kind]


def draw_changes(dice, params, book):
    """Later changes. Sections are filled in when the columns have been designed."""
    level = params["trap_level"]
    statuses = {
        1: ["issued"],
        2: ["issued", "withdrawn", "issued"],
        3: ["issued", "withdrawn", "issued", "draft"],
    }[level]
    marks = dice.shuffled(live(book))
    used_rows = dice.shuffled(
        [
            name
            for name, row in book["rows"].items()
            if row["status"] == "current" and row["code"][0] in "FW" and row["quantity"] > 3
        ]
    )
    gone = marks.pop() if level > 1 else None  # deleted by a decision
    used_rows = [name for name in used_rows if book["rows"][name]["column"] != gone]
    # Rows on which a rule of precedence depends are large enough to show in the result.
    large = [name for name in used_rows if book["rows"][name]["code"][0] == "F" and book["rows"][name]["quantity"] > 15]
    used_rows = [name for name in used_rows if name not in large]
    changes = []

    def add(day, source, form, item, value=None):
        holds = form == "decision" or form == "notice" and statuses[int(source[-1]) - 1] == "issued"
        changes.append({"day": day, "source": source, "form": form, "item": item, "value": value, "holds": holds})
        return item

    def row(pool=used_rows):
        return ("rows", pool.pop(), "quantity")

    def section():
        return ("columns", marks.pop(), "section")

    def column(field):
        return ("columns", marks[dice.below(len(marks))], field)

    twice_row, twice_section = row(large), section()
    add(9, "RN-01", "notice", twice_row)
    add(9, "RN-01", "notice", row())
    add(9, "RN-01", "notice", twice_section)
    add(9, "RN-01", "notice", ("types", dice.pick(["F1", "F2"]), "variable"))
    add(14, "mail", "decision", row(large))
    add(18, "mail", "decision", column("case"))
    add(20, "mail", "proposal", section())
    add(23, "mail", "decision", section())
    add(25, "mail", "proposal", row(large))
    if level >= 2:
        early, void = row(large), row(large)
        add(16, "mail", "decision", early)
        add(31, "RN-02", "notice", row(large))
        add(31, "RN-02", "notice", row())
        add(31, "RN-02", "notice", section())
        add(31, "RN-02", "notice", ("types", "W1", "permanent"))
        add(35, "mail", "decision", (void[0], void[1], "status"))
        add(38, "mail", "foreign", row(large))
        add(41, "mail", "decision", twice_section)
        add(44, "mail", "decision", ("columns", gone, "status"))
        add(52, "RN-03", "notice", twice_row)
        add(52, "RN-03", "notice", early)
        add(52, "RN-03", "notice", ("levels", "L1", None))
        add(52, "RN-03", "notice", row())
        # A mail of the contractor repeats the decision that RN-03 has replaced.
        add(57, "mail", "quoted", early)
    if level >= 3:
        again = section()
        add(27, "mail", "decision", again)
        add(52, "RN-03", "notice", again)
        add(58, "mail", "quoted", again)
        add(52, "RN-03", "notice", ("types", "R1", "variable"))
        add(55, "mail", "foreign", section())
        add(60, "mail", "decision", column("grade"))
        add(63, "mail", "decision", ("basis", "gamma_g", None))
        add(66, "mail", "proposal", ("levels", "L2", None))
        add(69, "mail", "decision", row(large))
        add(74, "RN-04", "notice", row(large))
        add(74, "RN-04", "notice", section())
        add(74, "RN-04", "notice", ("basis", "gamma_q", None))
    changes.sort(key=lambda change: change["day"])
    return changes, statuses


def fill_values(dice, params, book, changes):
    """Gives every change a value, one after the other, so that each is one against what held before."""
    if any(change["item"] == ("basis", "gamma_g", None) for change in changes):
        book["basis"]["gamma_g"] = dice.pick([value for value in (1.25, 1.3, 1.35) if value != params["gamma_g"]])
    running = copy.deepcopy(book)
    for change in changes:
        item = change["item"]
        if item[2] == "section":
            continue
        if change["form"] == "quoted":
            change["value"] = next(
                other["value"] for other in changes if other["item"] == item and other["form"] == "decision"
            )
        elif item == ("basis", "gamma_g", None):
            change["value"] = params["gamma_g"]
        elif item == ("basis", "gamma_q", None):
            change["value"] = 1.6 if params["gamma_q"] == 1.5 else 1.5
        else:
            change["value"] = altered(dice, running, item)
        if change["holds"]:
            set_value(running, item, change["value"])
    return running


def design(dice, final, failing):
    """A section for each column whose utilisation is near what was drawn for it."""
    for mark in sorted(final["columns"]):
        column = final["columns"][mark]
        band = BANDS[mark in failing]
        target = dice.between(*band)
        family = [
            name for name in catalogue.BY_MASS if (name in catalogue.HOLLOW_SECTIONS) == column["hollow"]
        ]
        found = []
        for names in (family, catalogue.BY_MASS):
            for name in names:
                column["section"] = name
                use = check(final, mark)["utilisation"]
                if band[0] - 0.02 < use < band[1] + 0.03 and abs(use - 1) > 0.012:
                    found.append((abs(use - target), name))
            if found:
                break
        if not found:
            return False
        column["section"] = min(found)[1]
    return True


def fill_sections(dice, book, changes, final):
    """Sections before the last change that holds are neighbours of the one that was designed."""
    for mark, column in final["columns"].items():
        chain = [change for change in changes if change["item"] == ("columns", mark, "section")]
        place = catalogue.BY_MASS.index(column["section"])
        near = [
            catalogue.BY_MASS[place + step]
            for step in (-4, -3, -2, 2, 3, 4)
            if 0 <= place + step < len(catalogue.BY_MASS)
        ]
        others = dice.shuffled(near)
        holding = [change for change in chain if change["holds"]]
        for change in [change for change in chain if change["form"] != "quoted"]:
            change["value"] = column["section"] if holding and change is holding[-1] else others.pop()
        for change in [change for change in chain if change["form"] == "quoted"]:
            change["value"] = next(other["value"] for other in chain if other["form"] == "decision")
        book["columns"][mark]["section"] = others.pop() if holding else column["section"]


def draw(dice, params):
    """One project, or nothing if it would be hard to judge."""
    book = draw_book(dice, params)
    changes, statuses = draw_changes(dice, params, book)
    final = fill_values(dice, params, book, changes)
    checked = live(final)
    count = max(2, round(len(checked) * dice.between(0.15, 0.3)))
    failing = dice.shuffled(checked)[:count]
    if not design(dice, final, failing):
        return None
    fill_sections(dice, book, changes, final)
    # Earlier revisions of the schedule, columns that were deleted there, and an existing one.
    history = []
    for mark in dice.shuffled(checked)[: [0, 0, 3, 5][params["trap_level"]]]:
        column = book["columns"][mark]
        place = catalogue.BY_MASS.index(column["section"])
        section = catalogue.BY_MASS[place - 2 if place > 2 else place + 2]
        history.append((mark, {**column, "section": section, "base_mm": column["base_mm"] + 250}))
        column["rev"] = "B"
    extra = {}
    for number, status in enumerate(["existing", "deleted"][: params["trap_level"]]):
        mark = f"C{params['column_count'] + 1 + number:02d}"
        model = book["columns"][dice.pick(checked)]
        rev = "A" if status == "existing" else "B"
        extra[mark] = {**model, "status": status, "rev": rev, "grid": f"{'HJ'[number]}{number + 2}"}
        if status == "deleted":
            history.append((mark, {**extra[mark], "status": "new", "rev": "A"}))
    book["columns"].update(extra)
    # The existing column is loaded in every sheet, the deleted one in the first alone, as it was left there.
    for level in list(book["levels"]):
        number = sum(1 for row in book["rows"].values() if row["level"] == level)
        for mark, column in extra.items():
            if column["status"] == "existing" or level == "L1":
                number += 1
                book["rows"][f"{level}-{number:03d}"] = {
                    "level": level, "column": mark, "code": "R1" if level == "RF" else "F1",
                    "quantity": round(dice.between(12, 24), 1), "status": "current", "in_mm": False, "remark": "",
                }
    results = [check(in_force(book, changes), mark) for mark in live(in_force(book, changes))]
    uses = sorted((result["utilisation"] for result in results), reverse=True)
    if uses[0] - uses[1] < 0.012 or any(abs(use - 1) < 0.01 for use in uses):
        return None
    # A mistake in a chain of changes must show in the results.
    for change in changes:
        if not change["holds"] and change["item"][2] == "section":
            if change["value"] == get_value(in_force(book, changes), change["item"]):
                return None
    return {"book": book, "changes": changes, "statuses": statuses, "history": history, "results": results}


def build(params):
    if params["column_count"] < 8 or not 2 <= params["floor_count"] <= 4:
        raise ValueError("the building is too small or too tall")
    dice = Dice(int(params["schedule_seed"]))
    for _ in range(60):
        project = draw(dice, params)
        if project:
            return {**project, "dice": dice}
    raise ValueError("no building that can be judged")


def compute(
    schedule_seed,
    column_count,
    floor_count,
    trap_level,
    superseded_percent,
    millimetre_percent,
    gamma_g,
    gamma_q,
    gamma_m1,
    psi_imposed,
    psi_snow,
    addition_percent,
):
    params = dict(locals())  # the same dictionary that build_sources gets
    results = build(params)["results"]
    worst = max(results, key=lambda result: result["utilisation"])
    table = [{name: value for name, value in result.items() if name != "mass_kg"} for result in results]
    return {
        "columns_checked": len(results),
        "governing_column": worst["column"],
        "highest_utilisation": worst["utilisation"],
        "failing_columns": [result["column"] for result in results if result["verdict"] == "FAIL"],
        "total_steel_mass_t": sum(result["mass_kg"] for result in results) / 1000 * (1 + addition_percent / 100),
        "columns": table,
    }


def build_sources(params):
    return documents.files(build(params), params, CASES, reduction)


def report(answers):
    """A report of the prescribed form."""
    table = answers["columns"]

    def rows(*cells):
        return "\n".join("| " + " | ".join(form(row) for form in cells) + " |" for row in table)

    mark = lambda row: row["column"]
    number = lambda name, places: lambda row: f"{row[name]:.{places}f}"
    loads = rows(mark, number("permanent_load_kn", 1), number("design_load_kn", 1))
    resistances = rows(
        mark,
        lambda row: row["section"],
        number("slenderness_y", 3),
        number("slenderness_z", 3),
        number("buckling_resistance_kn", 1),
    )
    verdicts = rows(mark, number("utilisation", 3), lambda row: row["verdict"])
    return f"""# 1. Basis of calculation

The columns are checked for flexural buckling under the governing combination of actions. Revision notices and
decisions were taken in as the document register and their dates require.

# 2. Design axial loads

| Column | G_k (kN) | N_Ed (kN) |
|---|---|---|
{loads}

# 3. Buckling resistance

| Column | Section | Slenderness y | Slenderness z | N_b,Rd (kN) |
|---|---|---|---|---|
{resistances}

# 4. Utilisation and verdicts

| Column | Utilisation | Verdict |
|---|---|---|
{verdicts}

# 5. Summary

| Item | Value |
|---|---|
| Columns checked | {answers["columns_checked"]} |
| Governing column | {answers["governing_column"]} |
| Highest utilisation | {answers["highest_utilisation"]:.3f} |
| Failing columns | {", ".join(answers["failing_columns"]) or "none"} |
| Total steel mass (t) | {answers["total_steel_mass_t"]:.2f} |
"""


def build_golden_pass(params, answers):
    return report(answers)


def build_golden_fail(params, answers):
    """Every column with another section, every load without the imposed part, and verdicts turned round."""
    wrong = []
    for row in answers["columns"]:
        place = catalogue.BY_MASS.index(row["section"])
        wrong.append(
            {
                "column": row["column"],
                "section": catalogue.BY_MASS[place - 1 if place else 1],
                "permanent_load_kn": row["permanent_load_kn"] * 0.8,
                "design_load_kn": row["design_load_kn"] * 0.7,
                "slenderness_y": row["slenderness_y"] * 1.1,
                "slenderness_z": row["slenderness_z"] * 1.1,
                "buckling_resistance_kn": row["buckling_resistance_kn"] * 0.9,
                "utilisation": row["utilisation"] * 0.7 / 0.9,
                "verdict": "PASS" if row["utilisation"] * 0.7 / 0.9 <= 1 else "FAIL",
            }
        )
    failing = [row["column"] for row in wrong if row["verdict"] == "FAIL"]
    worst = min(wrong, key=lambda row: row["utilisation"])
    return report(
        {
            "columns": wrong,
            "columns_checked": len(wrong) + 1,
            "governing_column": worst["column"],
            "highest_utilisation": worst["utilisation"],
            "failing_columns": failing,
            "total_steel_mass_t": answers["total_steel_mass_t"] * 1.2,
        }
    )
