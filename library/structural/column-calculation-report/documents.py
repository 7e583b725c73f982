"""The project's documents as the offices would have written them: sheets, basis, notices and mails."""

import datetime
import textwrap

import catalogue

ENGINEERS = ["M. Okafor", "H. Lindqvist", "P. Devereux", "S. Ahlberg"]
CONTRACTORS = ["R. Castell", "D. Whitmore", "J. Brandt"]
ARCHITECTS = ["L. Moreau", "E. Sandhu", "K. Novak"]
CHECKERS = ["T. Ruiz", "A. Petrie", "N. Hallam"]
TYPE_NAMES = {
    "F1": "composite floor, offices, raised floor and services included",
    "F2": "composite floor, corridors and meeting areas",
    "F3": "composite floor, archive and storage",
    "F4": "plant floor, checker plate on secondary beams",
    "S1": "stair flights and landings",
    "W1": "cladding, storey height",
    "W2": "internal blockwork, storey height",
    "H1": "lift beam or hanger",
    "R1": "roof, lightweight decking",
    "R2": "roof, green build-up",
}
BASIS_NAMES = {
    "gamma_g": "partial factor of permanent actions",
    "gamma_q": "partial factor of variable actions",
}
CASE_TEXTS = {
    "EL-1": "pinned base, floor beams both ways, nominally pinned",
    "EL-2": "base fixed both ways, floor beams nominally pinned",
    "EL-3": "pinned base, minor axis held at mid-height by the wall rails",
    "EL-4": "base fixed about the major axis only",
    "EL-5": "base fixed, minor axis held by the bracing strut",
}
REMARKS = {
    "F": ["half bay", "riser opening taken off", "full bay", "edge strip", "corner bay", "checked", ""],
    "S": ["upper landing", "half flight", ""],
    "W": ["measured on centre lines", "door openings not taken off", "checked", ""],
    "H": ["lift shaft", "hoist beam", ""],
    "R": ["fall to outlet", "rooflight not taken off", "edge strip", ""],
}


def row_remark(dice, status, code):
    if status == "superseded":
        return dice.pick(["see row below", "area measured again", "old grid", "replaced"])
    if status == "provisional":
        return dice.pick(["architect to confirm", "option B", "not agreed"])
    return dice.pick(REMARKS[code[0]]) if dice.chance(0.5) else ""


def csv_line(cells):
    return ",".join(f'"{cell}"' if "," in str(cell) else str(cell) for cell in cells)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def subject(item):
    kind, key, field = item
    if kind == "rows":
        return f"Row {key}, {field}"
    if kind == "columns":
        return f"Column {key}, " + {"case": "effective-length case"}.get(field, field)
    if kind == "types":
        return f"Load type {key}, {field} load"
    if kind == "levels":
        return f"Level {key}, top of steel"
    return f"Design basis, {BASIS_NAMES[key]}"


def shown(book, item, value):
    kind, key, field = item
    if field == "quantity":
        return f"{value:.1f} {book['types'][book['rows'][key]['code']]['per']}"
    if kind == "types":
        return f"{value:.2f} {load_unit(book['types'][key])}"
    if kind == "levels":
        return f"{value:.3f} m"
    if kind == "basis":
        return f"{value:.2f}"
    return value


def load_unit(kind):
    return {"m2": "kPa", "m": "kN/m", "each": "kN"}[kind["per"]]


class People:
    def __init__(self, dice):
        self.engineer = dice.pick(ENGINEERS)
        self.contractor = dice.pick(CONTRACTORS)
        self.architect = dice.pick(ARCHITECTS)
        self.checker = dice.pick(CHECKERS)


def sheets(book):
    made = {}
    for level in book["levels"]:
        lines = ["row,column,load_type,quantity,unit,status,remark"]
        for name, row in book["rows"].items():
            if row["level"] != level:
                continue
            per = book["types"][row["code"]]["per"]
            if row["in_mm"]:
                quantity, unit = f"{round(row['quantity'] * 1000)}", "mm"
            elif per == "each":
                quantity, unit = str(row["quantity"]), per
            else:
                quantity, unit = f"{row['quantity']:.1f}", per
            lines.append(csv_line([name, row["column"], row["code"], quantity, unit, row["status"], row["remark"]]))
        made[f"loads/takedown-{level}.csv"] = "\n".join(lines) + "\n"
    lines = ["load_type,description,per,permanent,variable,unit,kind_of_variable"]
    for code, kind in book["types"].items():
        lines.append(
            csv_line(
                [code, TYPE_NAMES[code], kind["per"], f"{kind['permanent']:.2f}", f"{kind['variable']:.2f}",
                 load_unit(kind), kind["kind"]]
            )
        )
    made["loads/load-types.csv"] = "\n".join(lines) + "\n"
    return made


def section_sheets():
    size, stiffness = ["section,h_mm,b_mm,tw_mm,tf_mm,mass_kg_per_m"], ["section,A_cm2,Iy_cm4,Iz_cm4"]
    for name, (height, width, web, flange, area, mass, major, minor) in catalogue.H_SECTIONS.items():
        size.append(csv_line([name, height, width, web, flange, mass]))
        stiffness.append(csv_line([name, area, major, minor]))
    hollow = ["section,side_mm,wall_mm,process,mass_kg_per_m,A_cm2,i_cm"]
    for name, (side, wall, area, mass, radius, process) in catalogue.HOLLOW_SECTIONS.items():
        hollow.append(csv_line([name, side, wall, process, mass, area, radius]))
    return {
        "sections/h-sections-dimensions.csv": "\n".join(size) + "\n",
        "sections/h-sections-properties.csv": "\n".join(stiffness) + "\n",
        "sections/hollow-sections.csv": "\n".join(hollow) + "\n",
    }


def schedule(project):
    book = project["book"]
    listed = [(mark, {**column, "rev": "A"}) for mark, column in project["history"]] + list(book["columns"].items())
    # As the sheet was filled in: by revision, then by mark.
    listed.sort(key=lambda pair: (pair[1]["rev"], pair[0]))
    lines = ["column,rev,grid,status,section,grade,base_level_mm,first_restraint,top_level,effective_length_case"]
    for mark, column in listed:
        lines.append(
            csv_line(
                [mark, column["rev"], column["grid"], column["status"], column["section"], column["grade"],
                 column["base_mm"], column["first"], column["top"], column["case"]]
            )
        )
    return "\n".join(lines) + "\n"


def basis_text(dice, project, people, reduction):
    basis, floors = project["book"]["basis"], len(project["book"]["levels"]) - 1
    opening = dice.pick(
        [
            "This basis applies to all steel columns of the building, from the base plate to the top of the steel.",
            "All steel columns of the building are designed to this basis. Connections and bases have their own.",
            "The basis was agreed with the checking engineer before the calculation was begun.",
        ]
    )
    wind = dice.pick(
        [
            "Wind is carried by the braced cores. Columns outside the cores take no axial load from it.",
            "Lateral loads go to the concrete core through the floors; the columns are designed for gravity alone.",
        ]
    )
    return f"""# Design basis of the columns

## 1 General

1.1 {opening}

1.2 The engineer of record is {people.engineer}. The checking engineer is {people.checker}. Structural decisions are
taken by the engineer of record alone.

1.3 {wind}

1.4 Nominal moments from eccentric beam reactions are covered by a separate check and are no part of this calculation.

## 2 Actions

2.1 The permanent load G of a column is the sum of the permanent loads of its rows in the take-down sheets and the
weight of the column itself over its whole length, mass per metre times 9.81 m/s². The addition of clause 5 is no load.

2.2 Variable loads are imposed loads and snow. The list of load types says of which kind a variable load is. Imposed
load is marked as reducible or not.

2.3 Reducible imposed load is multiplied by the factor α_n. The number n is the number of floors (L1 to L{floors}, the
roof is none) from which the column carries reducible imposed load.

{table(["n", "α_n"], [(number, f"{reduction(number):.1f}") for number in range(1, floors + 1)])}

2.4 Imposed load that is not reducible, storage and plant above all, is taken in full.

## 3 Combinations

3.1 Partial factors: permanent actions γ_G = {basis["gamma_g"]:.2f}, variable actions γ_Q = {basis["gamma_q"]:.2f}.

3.2 Combination factors of accompanying actions: imposed load ψ_0 = {basis["psi_imposed"]:.2f},
snow ψ_0 = {basis["psi_snow"]:.2f}.

3.3 Combination A, imposed load leads:
γ_G G + γ_Q (α_n Q_reducible + Q_not reducible) + γ_Q ψ_0,snow S.

3.4 Combination B, snow leads:
γ_G G + γ_Q S + γ_Q ψ_0,imposed (Q_reducible + Q_not reducible).
The factor α_n is not used where imposed load is already reduced by ψ_0.

3.5 The design axial load N_Ed is the larger of the two.

## 4 Resistance

4.1 Modulus of elasticity 210 000 MPa; γ_M1 = {basis["gamma_m1"]:.2f}.

4.2 Yield strength in MPa, by the thickness that counts (flange of H-sections, wall of hollow sections):

{table(["grade", "up to 16 mm", "above 16 mm, up to 40 mm"], [(g, *v) for g, v in catalogue.YIELD_MPA.items()])}

4.3 Buckling curves and imperfection factors:

| section | about y | about z |
|---|---|---|
| H-section, h/b > 1.2 | a | b |
| H-section, h/b up to 1.2 | b | c |
| hollow section, hot finished | a | a |
| hollow section, cold formed | c | c |

| curve | α |
|---|---|
| a | 0.21 |
| b | 0.34 |
| c | 0.49 |

4.4 No section of the tables is of class 4 in compression in these grades.

## 5 Quantities

5.1 The steel mass of a column is its mass per metre times its whole length, base to top level.
Add {basis["addition_percent"]:g} % to the total for base plates, caps and splices.
"""


def geometry_text(dice, project, cases):
    book = project["book"]
    datum = dice.pick(["finished ground floor", "structural slab of the ground floor", "survey datum of the site"])
    levels = [(name, f"{height:.3f}") for name, height in book["levels"].items()]
    rows = [(case, CASE_TEXTS[case], f"{major:.2f}", f"{minor:.2f}") for case, (major, minor) in cases.items()]
    return f"""# Geometry and effective lengths

## Levels

Heights are in m above the {datum}, which is ±0.000. RF is the roof. Base levels of the columns
are in the column schedule, in mm from the same datum; a negative level lies below it.

{table(["level", "top of steel (m)"], levels)}

## Lengths

The whole length of a column goes from its base level to the top of steel at its top level.

The system length L for the buckling check is that of the lowest lift: from the base level to the top of steel at the
first restraint named in the schedule. A column whose first restraint is L2 passes the opening in floor L1 without
being held there. Higher lifts have the same section and less load, and are not checked.

## Effective length cases

L_cr,y = k_y L and L_cr,z = k_z L. The y axis is the major axis of H-sections.

{table(["case", "description", "k_y", "k_z"], rows)}

{dice.pick([
    "Cases rest on the foundation engineer's stiffness note; values below 1.0 assume grouted bases.",
    "Wall rails count as restraint only where the case says so. Cladding panels never do.",
    "Temporary conditions during erection are the contractor's and are not covered by the cases.",
])}
"""


REASONS = {
    "length": [
        "The wall was set out again and ends at the next column line.",
        "The length was taken from the coordinated model.",
        "A movement joint now parts the wall, and the share of this column with it.",
    ],
    "area": [
        "The slab edge has moved with the grid of the facade, and the strip that bears on this column with it.",
        "A trimmer now carries part of the bay to the next column.",
        "The bay was measured again from the coordinated model.",
        "The riser was shifted; the area that is left has been agreed with the architect.",
    ],
    "section": [
        "The bracing connection asks for another wall or flange thickness.",
        "The section of the schedule is not in the mill's rolling programme before autumn.",
        "The clear width at the door frame asks for another section.",
        "One family of sections on this line saves a set of splices.",
    ],
    "case": [
        "The holding-down bolts were looked at again together with the foundation.",
        "The rail at mid-height was settled with the cladding designer.",
    ],
    "grade": [
        "Stock of the other grade is at hand, with certificates.",
        "The mill offers this size in one grade only.",
    ],
    "permanent": ["Weights were checked against the supplier's data sheet."],
    "variable": ["The use of these areas was settled with the client.", "The load was agreed with building control."],
    "levels": [
        "The storey height follows from the coordination of the ductwork.",
        "The beams of the floor are deeper.",
    ],
    "columns": ["The transfer beam of the new layout makes it superfluous."],
    "rows": ["This part was counted in another row as well.", "The item has gone with the new layout."],
    "basis": ["Building control has accepted the consequence class and asks for this value.",
              "The national annex that applies was discussed with the checking engineer."],
}


def reason(dice, book, item):
    kind, key, field = item
    if field == "quantity":
        field = "area" if book["types"][book["rows"][key]["code"]]["per"] == "m2" else "length"
    return dice.pick(REASONS[kind if field in (None, "status") else field])


def notices(dice, project, days, people):
    """All notices in one file, as the office binds them."""
    parts = [
        "# Revision notices\n\nEach notice replaces single values of the documents that were issued before. Whether a "
        "notice\nis in force is said in the document register, not here."
    ]
    changes = project["changes"]
    for number in range(1, len(project["statuses"]) + 1):
        name = f"RN-{number:02d}"
        mine = [change for change in changes if change["source"] == name]
        day = mine[0]["day"]
        rows = []
        for place, change in enumerate(mine, 1):
            before = value_before(project, change)
            rows.append(
                (place, subject(change["item"]), shown(project["book"], change["item"], before),
                 shown(project["book"], change["item"], change["value"]))
            )
        reasons = [reason(dice, project["book"], change["item"]) for change in mine]
        said = "\n".join(f"Item {place}: {why}" for place, why in enumerate(reasons, 1))
        drawn = dice.pick([people.checker, people.engineer])
        parts.append(
            f"## Notice {name}\n\nDate: {days[day]}  \nPrepared by: {drawn}\n\n"
            f"{table(['item', 'subject', 'was', 'becomes'], rows)}\n\n{said}\n\n"
            + dice.pick(
                [
                    "Drawings are revised with the next issue. The values above apply at once if the notice is in "
                    "force.",
                    "Sheets that are named here keep their row numbers; nothing else in them is changed.",
                    "Please mark the superseded values in your copies.",
                ]
            )
        )
    return "\n\n".join(parts) + "\n"


def value_before(project, change):
    """What was in force when a change was written."""
    kind, key, field = change["item"]
    value = project["book"][kind][key] if field is None else project["book"][kind][key][field]
    for other in project["changes"]:
        if other["item"] == change["item"] and other["holds"] and other["day"] < change["day"]:
            value = other["value"]
    return value


# Mails that change nothing: subject, sender, receiver, text.
IDLE = [
    (
        "Paint system", "architect", "contractor",
        "The sample panels for the intumescent coating arrived. The client prefers the satin finish. Nothing changes "
        "for the frame, but the film thickness has to be measured before the cladding covers the columns.",
    ),
    (
        "Crane position", "contractor", "engineer",
        "We intend to place the mobile crane between lines B and C for the second lift. The ground slab will not be "
        "loaded before it is 28 days old. Please tell us if you see anything against it.",
    ),
    (
        "Crane position", "engineer", "contractor",
        "No objection. The temporary works designer keeps the responsibility for the outriggers and for the backfill.",
    ),
    (
        "Bolt certificates", "contractor", "checker",
        "Certificates of the preloaded bolts are attached. Two lots are still with the test house; they are not "
        "built in.",
    ),
    (
        "Programme", "contractor", "engineer",
        "Steel of the first lift is promised for the second week of next month. We need every change of a column "
        "before the cutting list is closed, in writing and on the usual line.",
    ),
    (
        "Model exchange", "architect", "checker",
        "The coordination model was uploaded last night. Gridlines are unchanged. Areas in the model are to the face "
        "of the slab and are not meant for the take-down.",
    ),
    (
        "Survey of the pile caps", "checker", "engineer",
        "I compared the as-built levels of the caps with the base levels of the schedule. All are within 10 mm, which "
        "the grout takes up. No base level needs to be changed.",
    ),
    (
        "Site visit", "checker", "engineer",
        "Minutes of the visit: anchor templates are in place, three of them had to be turned. Loads were not "
        "discussed.",
    ),
]


def mails(dice, project, params, days, people):
    book = project["book"]
    names = {name: getattr(people, name) for name in ("engineer", "contractor", "architect", "checker")}
    firms = {"engineer": "structures", "contractor": "steelwork", "architect": "design", "checker": "checking"}

    def address(role):
        return f"{names[role]} ({firms[role]})"

    messages = []
    for change in project["changes"]:
        if change["source"] != "mail":
            continue
        item = change["item"]
        what, value, why = subject(item), shown(book, item, change["value"]), reason(dice, book, item)
        day, form = change["day"], change["form"]
        line = f"DECISION: {what}: {value}"
        if form == "decision":
            asked = dice.pick(
                [
                    "Thank you for the sketch. I have looked at it with the checking engineer.",
                    "Following our call of this morning:",
                    "I have gone through the point that was left open in the last meeting.",
                    "This settles the question that you raised last week.",
                ]
            )
            close = dice.pick(
                [
                    "Please carry it through the schedule and the cutting list.",
                    "The sheets will not be issued again for this; the present line is the record.",
                    "The rest of the sheet stays as it is.",
                ]
            )
            to = dice.pick(["contractor", "checker"])
            messages.append((day, "engineer", to, what, [asked, why, "", line, "", close]))
        elif form == "proposal":
            ask = dice.pick(["We propose the following change.", "For your consideration:", "Would this be possible?"])
            lines = [ask, why, f"Proposal: {what}: {value}.", "We need an answer before the cutting list is closed."]
            messages.append((day, "contractor", "engineer", what, lines))
            answer = dice.pick(
                [
                    "I cannot agree to this on the present information. The documents stand as they are.",
                    "Not at this stage. Please build to the documents in force.",
                    "I have noted the proposal. Without a decision of mine nothing is changed.",
                ]
            )
            messages.append((day + 1, "engineer", "contractor", f"Re: {what}", [answer]))
        elif form == "foreign":
            lines = ["The design team has met and we see it as settled.", why, "", line, ""]
            lines.append("The engineer is copied in for information.")
            messages.append((day, "architect", "contractor", what, lines))
        else:
            lines = ["For the cutting list we still have the following line in our files. Is it complete?"]
            lines += ["", f"> {line}", "", "We shall compare it with the notices before anything is cut."]
            messages.append((day, "contractor", "checker", f"Re: {what}", lines))
    for place, (title, sender, to, text) in enumerate(IDLE[: 2 + 2 * params["trap_level"]]):
        messages.append((12 + 7 * place, sender, to, title, [text]))
    messages.sort(key=lambda message: message[0])
    parts = ["CORRESPONDENCE FILE: COLUMNS", "Printed from the project mailbox, oldest first."]
    for number, (day, sender, to, title, lines) in enumerate(messages, 1):
        body = "\n".join(textwrap.fill(line, 78) for line in lines)
        parts.append(
            f"{'-' * 72}\nMessage {number}\nDate: {days[day]}\nFrom: {address(sender)}\nTo: {address(to)}\n"
            f"Subject: {title}\n\n{body}\n\n{names[sender]}"
        )
    return "\n\n".join(parts) + "\n"


def register(project, days):
    lines = ["document,title,revision,date,status"]
    first = days[0]
    listed = [
        ("basis/design-basis.md", "Design basis of the columns", "C", first, "issued"),
        ("geometry/column-schedule.csv", "Column schedule with all revisions", "B", first, "issued"),
        ("geometry/effective-lengths.md", "Geometry and effective lengths", "B", first, "issued"),
        ("loads/load-types.csv", "Load types", "D", first, "issued"),
    ]
    listed += [
        (f"loads/takedown-{level}.csv", f"Take-down sheet {level}", "B", first, "issued")
        for level in project["book"]["levels"]
    ]
    listed += [
        ("sections/h-sections-dimensions.csv", "H-sections, dimensions and masses", "A", first, "issued"),
        ("sections/h-sections-properties.csv", "H-sections, areas and second moments", "A", first, "issued"),
        ("sections/hollow-sections.csv", "Square hollow sections", "A", first, "issued"),
        ("correspondence/mails.txt", "Correspondence file", "-", days[80], "for information"),
    ]
    for number, status in enumerate(project["statuses"], 1):
        day = next(change["day"] for change in project["changes"] if change["source"] == f"RN-{number:02d}")
        note = {"draft": "draft for comment"}.get(status, status)
        listed.append((f"RN-{number:02d}", "Revision notice, in revisions/revision-notices.md", "-", days[day], note))
    listed.append(("S-201", "Foundation plan, not part of this calculation", "F", first, "issued"))
    listed.append(("A-110", "Architect's floor plans, not part of this calculation", "K", days[30], "issued"))
    return "\n".join(lines + [csv_line(row) for row in listed]) + "\n"


def files(project, params, cases, reduction):
    dice = project["dice"]
    people = People(dice)
    start = datetime.date(2022 + dice.below(3), 2 + dice.below(5), 1 + dice.below(25))
    days = {day: (start + datetime.timedelta(days=day)).isoformat() for day in range(0, 101)}
    return {
        "register/document-register.csv": register(project, days),
        "basis/design-basis.md": basis_text(dice, project, people, reduction),
        "geometry/effective-lengths.md": geometry_text(dice, project, cases),
        "geometry/column-schedule.csv": schedule(project),
        **sheets(project["book"]),
        **section_sheets(),
        "revisions/revision-notices.md": notices(dice, project, days, people),
        "correspondence/mails.txt": mails(dice, project, params, days, people),
    }
