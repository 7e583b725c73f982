"""Review of a stormwater pit-and-pipe schedule: current revision, grades, cover and full-flow velocity (Manning)."""

import math
import random

DIAMETERS_MM = [300, 375, 450, 525, 600, 750, 900]
WALLS_MM = {300: 34, 375: 40, 450: 45, 525: 51, 600: 57, 750: 68, 900: 80}
LEAST_GRADES = {300: 0.5, 375: 0.4, 450: 0.35, 525: 0.3, 600: 0.25, 750: 0.2, 900: 0.15}
BAD_REMARKS = [
    "rejected - staff held on a parked trailer",
    "rejected - pit lid missing, staff in the chamber",
    "rejected - level not closed",
]


class _Dice:
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

    def some(self, items, count):
        pool = list(items)
        return [pool.pop(self.below(len(pool))) for _ in range(min(count, len(pool)))]


def _velocity(diameter_mm, grade_percent, roughness):
    return (diameter_mm / 4000) ** (2 / 3) * math.sqrt(grade_percent / 100) / roughness


def _project(
    schedule_seed,
    pipes,
    revisions,
    withdrawn,
    drafts,
    resurveyed,
    first_diameter_mm,
    site_shift_m,
    road_cover_m,
    verge_cover_m,
    min_velocity_m_per_s,
    length_units,
    amendment,
):
    """The schedule's rows, the specification's limits and the survey's readings."""
    if pipes < 8 or revisions < 1 or first_diameter_mm not in DIAMETERS_MM:
        raise ValueError("the schedule is too small")
    dice = _Dice(schedule_seed)
    scale = dice.pick([0.8, 1.0, 1.2])
    grades = {diameter: round(LEAST_GRADES[diameter] * scale, 3) for diameter in DIAMETERS_MM}
    roughness = {"RC": dice.pick([0.012, 0.013, 0.014]), "PVC": dice.pick([0.009, 0.01, 0.011])}
    covers = {"road": road_cover_m, "verge": verge_cover_m}

    # As finally designed, line by line from the top pit down.
    designed = []
    lines = []
    while len(designed) < pipes:
        letter = "ABCDEFGHJKLMNPQR"[len(lines)]
        count = min(4 + dice.below(5), pipes - len(designed))
        if pipes - len(designed) - count < 3:
            count = pipes - len(designed)
        size = DIAMETERS_MM.index(first_diameter_mm)
        level = dice.between(18, 34)
        line = []
        for number in range(1, count + 1):
            if number > 1 and dice.chance(0.4) and size + 1 < len(DIAMETERS_MM):
                level -= (DIAMETERS_MM[size + 1] - DIAMETERS_MM[size]) / 1000
                size += 1
            diameter = DIAMETERS_MM[size]
            material = "PVC" if diameter <= 375 and dice.chance(0.5) else "RC"
            length = round(dice.between(12, 62), 1)
            factor = dice.between(0.55, 0.9) if dice.chance(0.16) else dice.between(1.08, 2.6)
            upper = round(level, 3)
            lower = round(upper - factor * grades[diameter] / 100 * length, 3)
            for _ in range(60):
                grade = 100 * (upper - lower) / length
                speed = _velocity(diameter, grade, roughness[material])
                clear = abs(grade / grades[diameter] - 1) > 0.03 and abs(speed / min_velocity_m_per_s - 1) > 0.02
                if clear:
                    break
                lower = round(lower - 0.004, 3)
            line.append(
                {
                    "pipe": f"SW-{letter}{number:02d}",
                    "from_pit": f"{letter}{number}",
                    "to_pit": f"{letter}{number + 1}",
                    "diameter_mm": diameter,
                    "material": material,
                    "location": "road" if dice.chance(0.55) else "verge",
                    "length_m": length,
                    "us_invert_m": upper,
                    "ds_invert_m": lower,
                }
            )
            level = lower - dice.between(0.02, 0.08)
        lines.append(line)
        designed.extend(line)

    def altered(pipe):
        """An earlier or tentative version of a row."""
        size = DIAMETERS_MM.index(pipe["diameter_mm"])
        if dice.chance(0.4):
            size = max(0, size - 1) if dice.chance(0.7) else min(len(DIAMETERS_MM) - 1, size + 1)
        length = round(pipe["length_m"] * dice.between(0.82, 1.2), 1)
        upper = round(pipe["us_invert_m"] + dice.between(-0.6, 0.6), 3)
        grade = grades[pipe["diameter_mm"]] * dice.between(0.5, 2.2)
        return {
            **pipe,
            "diameter_mm": DIAMETERS_MM[size],
            "material": "RC",
            "length_m": length,
            "us_invert_m": upper,
            "ds_invert_m": round(upper - grade / 100 * length, 3),
        }

    gone = {line["pipe"] for line in dice.some([line[0] for line in lines], withdrawn)}
    last = {pipe["pipe"]: 0 for pipe in designed}
    for name in last:
        if name in gone or dice.chance(0.2 + 0.12 * revisions):
            last[name] = 1 + dice.below(revisions)
    tentative = dice.some([name for name in last if last[name] < revisions and name not in gone], drafts)
    rows = []
    for pipe in designed:
        name = pipe["pipe"]
        for step in range(revisions + 1):
            if step == last[name]:
                status = "deleted" if name in gone else "for construction"
                content = pipe
            elif step < last[name] and (step == 0 or dice.chance(0.4)):
                status, content = "for construction", altered(pipe)
            elif name in tentative and step == revisions:
                status, content = "draft", altered(pipe)
            else:
                continue
            rows.append({**content, "rev": "ABCD"[step], "status": status})
    rows.sort(key=lambda row: (row["rev"], row["pipe"]))
    for row in rows:
        row["in_mm"] = length_units == "mixed" and row["rev"] in "CD"

    # Ground on the site datum, so that the cover is clearly enough or clearly not.
    ground = {}
    for line in lines:
        for pit in [pipe["from_pit"] for pipe in line] + [line[-1]["to_pit"]]:
            ends = [
                (pipe[key] + (pipe["diameter_mm"] + WALLS_MM[pipe["diameter_mm"]]) / 1000, covers[pipe["location"]])
                for pipe in line
                for key, end in (("us_invert_m", "from_pit"), ("ds_invert_m", "to_pit"))
                if pipe[end] == pit
            ]
            needed = max(top + wanted for top, wanted in ends)
            level = round(needed + (-dice.between(0.05, 0.25) if dice.chance(0.1) else dice.between(0.05, 1.1)), 3)
            for _ in range(40):
                if all(abs(level - one - wanted) > 0.02 for one, wanted in ends):
                    break
                level = round(level + 0.027, 3)
            ground[pit] = level
    mark = round(dice.between(22, 48), 3)
    benchmark = {"national": mark, "site": round(mark - site_shift_m, 3)}
    shift = round(benchmark["national"] - benchmark["site"], 3)
    checked = dice.some(list(ground), resurveyed)
    first, second = {}, {}
    for pit, level in ground.items():
        national = round(level + shift, 3)
        if pit in checked and dice.chance(0.3):
            first[pit] = national
            second[pit] = (round(national + dice.between(0.4, 1.5), 3), dice.pick(BAD_REMARKS))
        elif pit in checked:
            first[pit] = round(national + dice.pick([-1, 1]) * dice.between(0.12, 0.5), 3)
            second[pit] = (national, "")
        else:
            first[pit] = national
    return {
        "rows": rows,
        "grades": grades,
        "roughness": roughness,
        "covers": covers,
        "old_road_cover": round(road_cover_m + (0.15 if amendment == "lower" else -0.15), 3),
        "benchmark": benchmark,
        "first": first,
        "second": second,
    }


def compute(
    schedule_seed,
    pipes,
    revisions,
    withdrawn,
    drafts,
    resurveyed,
    first_diameter_mm,
    site_shift_m,
    road_cover_m,
    verge_cover_m,
    min_velocity_m_per_s,
    length_units,
    amendment,
):
    project = _project(
        schedule_seed,
        pipes,
        revisions,
        withdrawn,
        drafts,
        resurveyed,
        first_diameter_mm,
        site_shift_m,
        road_cover_m,
        verge_cover_m,
        min_velocity_m_per_s,
        length_units,
        amendment,
    )
    # Rows come in the order of their revisions, so the last one that is no draft stands.
    standing = {row["pipe"]: row for row in project["rows"] if row["status"] != "draft"}
    current = [row for row in standing.values() if row["status"] != "deleted"]
    readings = dict(project["first"])
    readings.update({pit: level for pit, (level, remark) in project["second"].items() if not remark})
    shift = project["benchmark"]["national"] - project["benchmark"]["site"]
    flat, shallow, slow, covers, depths, speeds = [], [], [], [], [], []
    lengths = {}
    volume = 0
    for row in sorted(current, key=lambda row: row["pipe"]):
        diameter = row["diameter_mm"]
        grade = 100 * (row["us_invert_m"] - row["ds_invert_m"]) / row["length_m"]
        speed = _velocity(diameter, grade, project["roughness"][row["material"]])
        ends = [
            readings[row["from_pit"]] - shift - row["us_invert_m"],
            readings[row["to_pit"]] - shift - row["ds_invert_m"],
        ]
        over = [depth - (diameter + WALLS_MM[diameter]) / 1000 for depth in ends]
        if grade < project["grades"][diameter]:
            flat.append(row["pipe"])
        if min(over) < project["covers"][row["location"]]:
            shallow.append(row["pipe"])
        if speed < min_velocity_m_per_s:
            slow.append(row["pipe"])
        covers.extend(over)
        depths.extend(ends)
        speeds.append(speed)
        lengths[diameter] = lengths.get(diameter, 0) + row["length_m"]
        volume += math.pi / 4 * (diameter / 1000) ** 2 * row["length_m"]
    if min(len(flat), len(shallow), len(slow)) < 1 or min(covers) < 0.05:
        raise ValueError("the schedule has nothing to find, or a pipe above the ground")
    return {
        "current_pipes": len(current),
        "total_length_m": sum(lengths.values()),
        "pipe_volume_m3": volume,
        "flat_pipes": flat,
        "shallow_pipes": shallow,
        "slow_pipes": slow,
        "least_cover_m": min(covers),
        "greatest_depth_m": max(depths),
        "least_velocity_m_per_s": min(speeds),
        "length_by_diameter": [
            {"diameter_mm": diameter, "length_m": lengths[diameter]} for diameter in sorted(lengths)
        ],
    }


def _schedule(rows):
    lines = [
        "rev,pipe,from_pit,to_pit,diameter_mm,material,location,length,length_unit,us_invert_m,ds_invert_m,status"
    ]
    for row in rows:
        length = f"{round(row['length_m'] * 1000)},mm" if row["in_mm"] else f"{row['length_m']:.1f},m"
        lines.append(
            f"{row['rev']},{row['pipe']},{row['from_pit']},{row['to_pit']},{row['diameter_mm']},{row['material']},"
            f"{row['location']},{length},{row['us_invert_m']:.3f},{row['ds_invert_m']:.3f},{row['status']}"
        )
    return "\n".join(lines) + "\n"


def _specification(project, min_velocity, verge_cover, amendment):
    road = project["covers"]["road"] if amendment == "none" else project["old_road_cover"]
    table = "\n".join(
        f"| {diameter} | {project['grades'][diameter]:.2f} | {WALLS_MM[diameter]} |" for diameter in DIAMETERS_MM
    )
    text = f"""# Stormwater drainage - project specification

## 1 Levels

Inverts in the pipe schedule are on the site datum. Ground levels come from the surveyor's note.

## 2 Pipes

| internal diameter (mm) | least grade (%) | wall thickness (mm) |
|---|---|---|
{table}

The wall thickness holds for every material. Grades are fall over length, both as scheduled.

## 3 Roughness

- Manning's n of reinforced concrete (RC): {project['roughness']['RC']:.3f}
- Manning's n of PVC: {project['roughness']['PVC']:.3f}

## 4 Velocity

The velocity of the pipe flowing just full at its grade shall not be less than {min_velocity:.2f} m/s.

## 5 Cover

Cover is measured from the ground to the outside of the crown, at both ends of each pipe. It shall not be less than

- {road:.2f} m for pipes in the road,
- {verge_cover:.2f} m for pipes in the verge.
"""
    if amendment != "none":
        text += f"""
## Amendments

Amendment 1, clause 5: the cover of pipes in the road is changed to {project['covers']['road']:.2f} m. The verge is not affected.
"""
    return text


def _survey(project):
    lines = [
        "SURVEY NOTE - GROUND LEVELS AT PITS",
        "",
        "Datum",
        f"  Benchmark BM 4, national datum: {project['benchmark']['national']:.3f} m",
        f"  Benchmark BM 4, site datum:     {project['benchmark']['site']:.3f} m",
        "  All readings in this note are on the national datum.",
        "",
        "First survey",
        "  pit   level (m)",
    ]
    lines += [f"  {pit:<5} {level:.3f}" for pit, level in project["first"].items()]
    if project["second"]:
        lines += ["", "Check survey", "  pit   level (m)  remark"]
        lines += [f"  {pit:<5} {level:.3f}     {remark}".rstrip() for pit, (level, remark) in project["second"].items()]
    return "\n".join(lines) + "\n"


def build_sources(params):
    project = _project(**params)
    return {
        "pipe-schedule.csv": _schedule(project["rows"]),
        "specification.md": _specification(
            project, params["min_velocity_m_per_s"], params["verge_cover_m"], params["amendment"]
        ),
        "survey-note.txt": _survey(project),
    }
