"""Reference solution: reads the project's documents in the current directory and writes report.md."""

import csv
import re
from math import pi, sqrt


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def found(pattern, text):
    return re.search(pattern, text).group(1)


basis = text_of("basis/design-basis.md")
geometry = text_of("geometry/effective-lengths.md")
engineer = found(r"engineer of record is ([^.]*\. \w+)\.", basis)

# What notices and decisions change: subject, text of the new value, date.
status = {row["document"]: row["status"] for row in rows_of("register/document-register.csv")}
changes = []
for part in text_of("revisions/revision-notices.md").split("\n## Notice ")[1:]:
    if status[part.split("\n")[0].strip()] == "issued":
        date = found(r"Date: (\S+)", part)
        for line in re.findall(r"^\| \d+ \| (.*) \|$", part, re.MULTILINE):
            subject, _, value = line.split(" | ")
            changes.append((date, subject, value))
for mail in re.split(r"^-{60,}$", text_of("correspondence/mails.txt"), flags=re.MULTILINE)[1:]:
    if found(r"From: (.*) \(", mail) == engineer:
        date = found(r"Date: (\S+)", mail)
        for subject, value in re.findall(r"^DECISION: (.*): (.*)$", mail, re.MULTILINE):
            changes.append((date, subject, value))
latest = {}
for date, subject, value in sorted(changes):
    latest[subject] = value


def in_force(subject, otherwise):
    """The value of the last change, without its unit, or that of the base document."""
    value = latest.get(subject)
    if value is None:
        return otherwise
    return value if isinstance(otherwise, str) else float(value.split()[0])


gamma_g = in_force("Design basis, partial factor of permanent actions", float(found(r"γ_G = ([\d.]+),", basis)))
gamma_q = in_force("Design basis, partial factor of variable actions", float(found(r"γ_Q = ([\d.]+)\.\n", basis)))
gamma_m1 = float(found(r"γ_M1 = ([\d.]+)\.\n", basis))
psi_imposed = float(found(r"imposed load ψ_0 = ([\d.]+),", basis))
psi_snow = float(found(r"snow ψ_0 = ([\d.]+)\.\n", basis))
addition = float(found(r"Add ([\d.]+) %", basis))
reduction = {int(n): float(factor) for n, factor in re.findall(r"^\| (\d) \| ([\d.]+) \|$", basis, re.MULTILINE)}
alpha = {name: float(value) for name, value in re.findall(r"^\| ([a-d]) \| ([\d.]+) \|$", basis, re.MULTILINE)}
strength = {
    grade: (float(thin), float(thick))
    for grade, thin, thick in re.findall(r"^\| (S\d+) \| (\d+) \| (\d+) \|$", basis, re.MULTILINE)
}
curve_rows = re.findall(r"^\| (H-section|hollow section), (.*?) \| (\w) \| (\w) \|$", basis, re.MULTILINE)
curves = {f"{kind}, {which}": (first, second) for kind, which, first, second in curve_rows}

height = {
    level: in_force(f"Level {level}, top of steel", float(value))
    for level, value in re.findall(r"^\| (L\d|RF) \| ([\d.]+) \|$", geometry, re.MULTILINE)
}
factors = {
    case: (float(ky), float(kz))
    for case, ky, kz in re.findall(r"^\| (EL-\d) \| .* \| ([\d.]+) \| ([\d.]+) \|$", geometry, re.MULTILINE)
}

# Sections: mass, area in mm2, thickness that counts, radii of gyration in mm, curves.
section = {}
properties = {row["section"]: row for row in rows_of("sections/h-sections-properties.csv")}
for row in rows_of("sections/h-sections-dimensions.csv"):
    own = properties[row["section"]]
    area = float(own["A_cm2"])
    radii = [10 * sqrt(float(own[name]) / area) for name in ("Iy_cm4", "Iz_cm4")]
    slim = float(row["h_mm"]) / float(row["b_mm"]) > 1.2
    pair = curves["H-section, h/b > 1.2" if slim else "H-section, h/b up to 1.2"]
    section[row["section"]] = (float(row["mass_kg_per_m"]), 100 * area, float(row["tf_mm"]), radii, pair)
for row in rows_of("sections/hollow-sections.csv"):
    area, radii = float(row["A_cm2"]), [10 * float(row["i_cm"])] * 2
    pair = curves["hollow section, " + row["process"]]
    section[row["section"]] = (float(row["mass_kg_per_m"]), 100 * area, float(row["wall_mm"]), radii, pair)

columns = {}
for row in sorted(rows_of("geometry/column-schedule.csv"), key=lambda row: row["rev"]):
    columns[row["column"]] = row
columns = {
    mark: row for mark, row in columns.items() if in_force(f"Column {mark}, status", row["status"]) == "new"
}

loads = {mark: {"G": 0, "imposed reducible": 0, "imposed not reducible": 0, "snow": 0} for mark in columns}
floors = {mark: set() for mark in columns}
types = {row["load_type"]: row for row in rows_of("loads/load-types.csv")}
for level in height:
    for row in rows_of(f"loads/takedown-{level}.csv"):
        mark, name = row["column"], row["row"]
        if mark not in columns or in_force(f"Row {name}, status", row["status"]) != "current":
            continue
        quantity = float(row["quantity"]) / (1000 if row["unit"] == "mm" else 1)
        quantity = in_force(f"Row {name}, quantity", quantity)
        kind = types[row["load_type"]]
        permanent = in_force(f"Load type {row['load_type']}, permanent load", float(kind["permanent"]))
        variable = in_force(f"Load type {row['load_type']}, variable load", float(kind["variable"]))
        loads[mark]["G"] += quantity * permanent
        if kind["kind_of_variable"] != "none":
            loads[mark][kind["kind_of_variable"]] += quantity * variable
        if kind["kind_of_variable"] == "imposed reducible" and level != "RF":
            floors[mark].add(level)

results = []
mass = 0
for mark in sorted(columns):
    row, load = columns[mark], loads[mark]
    name = in_force(f"Column {mark}, section", row["section"])
    weight, area, thickness, radii, pair = section[name]
    base = float(row["base_level_mm"]) / 1000
    length = height[row["top_level"]] - base
    mass += weight * length * (1 + addition / 100) / 1000
    load["G"] += weight * 9.81 * length / 1000
    full = load["imposed reducible"] + load["imposed not reducible"]
    less = reduction.get(len(floors[mark]), 1) * load["imposed reducible"] + load["imposed not reducible"]
    n_ed = gamma_g * load["G"] + gamma_q * max(less + psi_snow * load["snow"], load["snow"] + psi_imposed * full)
    fy = strength[in_force(f"Column {mark}, grade", row["grade"])][1 if thickness > 16 else 0]
    system = 1000 * (height[row["first_restraint"]] - base)
    case = factors[in_force(f"Column {mark}, effective-length case", row["effective_length_case"])]
    bars, capacities = [], []
    for k, i, curve in zip(case, radii, pair):
        bar = k * system / i * sqrt(fy / 210000) / pi
        phi = 0.5 * (1 + alpha[curve] * (bar - 0.2) + bar * bar)
        chi = min(1, 1 / (phi + sqrt(phi * phi - bar * bar)))
        bars.append(bar)
        capacities.append(chi * area * fy / gamma_m1 / 1000)
    results.append((mark, name, load["G"], n_ed, *bars, min(capacities), n_ed / min(capacities)))

governing = max(results, key=lambda result: result[7])
failing = [result[0] for result in results if result[7] > 1]
lines = ["# 1. Basis of calculation", ""]
lines += [f"Changes in force at the end, by decisions of {engineer} and issued notices:", ""]
lines += [f"- {subject}: {latest[subject]}" for subject in sorted(latest)]
lines += ["", "# 2. Design axial loads", "", "| Column | G_k (kN) | N_Ed (kN) |", "|---|---|---|"]
lines += [f"| {r[0]} | {r[2]:.1f} | {r[3]:.1f} |" for r in results]
lines += ["", "# 3. Buckling resistance", ""]
lines += ["| Column | Section | Slenderness y | Slenderness z | N_b,Rd (kN) |", "|---|---|---|---|---|"]
lines += [f"| {r[0]} | {r[1]} | {r[4]:.3f} | {r[5]:.3f} | {r[6]:.1f} |" for r in results]
lines += ["", "# 4. Utilisation and verdicts", "", "| Column | Utilisation | Verdict |", "|---|---|---|"]
lines += [f"| {r[0]} | {r[7]:.3f} | {'FAIL' if r[7] > 1 else 'PASS'} |" for r in results]
lines += ["", "# 5. Summary", "", "| Item | Value |", "|---|---|"]
lines += [
    f"| Columns checked | {len(results)} |",
    f"| Governing column | {governing[0]} |",
    f"| Highest utilisation | {governing[7]:.3f} |",
    f"| Failing columns | {', '.join(failing)} |",
    f"| Total steel mass (t) | {mass:.2f} |",
]
with open("report.md", "w", encoding="utf-8") as file:
    file.write("\n".join(lines) + "\n")
