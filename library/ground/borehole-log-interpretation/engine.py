"""Design values of sand and clay from borehole, SPT and laboratory records.

N60 and (N1)60 after Skempton (1986) and Liao and Whitman (1986), friction angle after Hatanaka and Uchida (1996),
undrained strength after Stroud (1974). The records are built from a seed; `compute` uses the figures as they are printed.
"""

import math
import random

WATER = 9.81
MADE, SAND, CLAY = "Made ground", "Sand", "Clay"
VOID = [
    "void: base of hole not cleaned",
    "void: sand blowing into casing",
    "void: hammer dropped by hand",
    "void: rods not vertical",
]
HARMLESS = ["water added during boring", "gravel fragment in shoe", "casing advanced 0.3 m", "after night break"]
BAD_READINGS = ["blocked", "surface water entered", "cap missing, reading doubtful"]
GOOD_READINGS = ["after rain", "read by client"]


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed).random

    def whole(self, low, high):
        return low + int(self.random() * (high - low + 1))

    def grid(self, low, high, step):
        """A number of the grid, free of binary dust."""
        return round(low + self.whole(0, round((high - low) / step)) * step, 6)

    def pick(self, items):
        return items[int(self.random() * len(items))]


def rods(depth):
    return 0.75 if depth < 4 else 0.85 if depth < 6 else 0.95 if depth < 10 else 1.0


def records(schedule_seed, boreholes, trap_level, base_level_m):
    draw = Draw(int(schedule_seed))
    level = int(trap_level)
    rigs = {"R1": draw.whole(62, 78), "R2": draw.whole(54, 68)}
    recalibrated = {"R2": draw.whole(46, 53)} if level >= 3 else {}
    holes = []
    for i in range(int(boreholes)):
        holes.append(
            {
                "name": f"BH{i + 1}",
                "rig": "R1" if i % 2 == 0 else "R2",
                "ground": round(base_level_m + draw.grid(-0.6, 0.6, 0.05), 2),
                "made": draw.grid(1.2, 2.4, 0.1),
                "sand": draw.grid(8.2, 10.6, 0.1),
                "end": draw.whole(14, 17),
            }
        )
    tests = []
    for hole in holes:
        number = 0
        for depth in range(1, hole["end"] + 1):
            # Off the layer boundaries, which are on tenths of a metre.
            at = depth + 0.05
            stratum = MADE if at < hole["made"] else SAND if at < hole["sand"] else CLAY
            number += 1
            if stratum == SAND:
                second = 4 + int(0.5 * at + 5 * draw.random())
            elif stratum == CLAY:
                second = 3 + int(0.3 * at + 3 * draw.random())
            else:
                second = draw.whole(2, 6)
            third = second + draw.whole(0, 4)
            test = {
                "id": f"{hole['name']}-{number:02d}",
                "hole": hole["name"],
                "depth": at,
                "stratum": stratum,
                "blows": [max(1, second - draw.whole(1, 3)), second, third],
                "penetration": None,
                "remark": "",
                "valid": True,
            }
            kind, choice, extent = draw.random(), draw.random(), draw.whole(15, 28)
            if kind < 0.09:
                test["remark"], test["valid"] = VOID[int(choice * len(VOID))], False
            elif kind < 0.21 and stratum == SAND and at > 4:
                test["penetration"] = 10 * extent
                test["remark"] = f"refusal: 50 blows for {10 * extent} mm of the test drive"
            elif kind < 0.34:
                test["remark"] = HARMLESS[int(choice * len(HARMLESS))]
            tests.append(test)
            again = draw.random()
            change = draw.whole(-2, 3)
            if level >= 2 and again < 0.10 and stratum != MADE and test["valid"] and not test["remark"]:
                number += 1
                old, test["valid"] = test["id"], False
                blows = [max(1, test["blows"][0] - 1), second + change, third + change + 1]
                tests.append(
                    dict(test, id=f"{hole['name']}-{number:02d}", blows=blows, remark=f"repeat of {old}", valid=True)
                )
    readings = []
    lowest = min(h["ground"] for h in holes)
    for month in range(1, 9):
        for hole in holes:
            depth = round(hole["ground"] - (lowest - draw.grid(1.5, 3.5, 0.01)), 2)
            kind, choice = draw.random(), draw.random()
            reading = {"month": month, "hole": hole["name"], "depth": depth, "remark": "", "valid": True}
            if kind < 0.08:
                reading.update(depth=None, remark="dry" if choice < 0.5 else "no access", valid=False)
            elif kind < 0.16 and level >= 2:
                shallow = round(0.2 + 0.9 * choice, 2)
                reading.update(depth=shallow, remark=BAD_READINGS[int(choice * len(BAD_READINGS))], valid=False)
            elif kind < 0.26:
                reading["remark"] = GOOD_READINGS[int(choice * len(GOOD_READINGS))]
            readings.append(reading)

    lab = []

    def result(stratum, kind, value, unit):
        entry = {
            "id": f"L{len(lab) + 1:03d}",
            "hole": draw.pick(holes)["name"],
            "stratum": stratum,
            "kind": kind,
            "value": value,
            "unit": unit,
            "status": "final",
            "note": "",
            "valid": True,
        }
        lab.append(entry)
        return entry

    weights = {MADE: (16.6, 18.2), SAND: (18.4, 20.2), CLAY: (18.6, 20.4)}
    for stratum, count in ((MADE, 3), (SAND, 8), (CLAY, 7)):
        low, high = weights[stratum]
        for _ in range(count):
            if level >= 2 and draw.random() < 0.4:
                entry = result(stratum, "bulk density", draw.grid(round(low / WATER, 2), round(high / WATER, 2), 0.01), "Mg/m3")
            else:
                entry = result(stratum, "bulk unit weight", draw.grid(low, high, 0.1), "kN/m3")
            spoil(draw, entry, lab, level, 1 if stratum == MADE else 2)
    for _ in range(9):
        if draw.random() < 0.5:
            entry = result(CLAY, "triaxial UU, undrained strength", draw.whole(60, 115), "kPa")
        else:
            entry = result(CLAY, "unconfined compression, compressive strength", 2 * draw.whole(55, 110), "kPa")
        spoil(draw, entry, lab, level, 2)
    if level >= 2:
        # Late retests, below all others: the old result still says "final".
        kinds = [x for x in lab if x["valid"]]
        for old in (draw.pick([x for x in kinds if x["stratum"] == SAND]), draw.pick([x for x in kinds if x["unit"] == "kPa"])):
            factor = 1 + draw.pick([-0.06, -0.05, -0.04, 0.04, 0.05, 0.06])
            value = round(old["value"] * factor, {"kPa": 0, "kN/m3": 1, "Mg/m3": 2}[old["unit"]])
            entry = result(old["stratum"], old["kind"], int(value) if old["unit"] == "kPa" else value, old["unit"])
            entry["hole"], entry["note"] = old["hole"], f"replaces {old['id']}"
            old["valid"] = False
    return {"rigs": rigs, "recalibrated": recalibrated, "holes": holes, "tests": tests, "readings": readings, "lab": lab}


def spoil(draw, entry, lab, level, keep):
    """Mark some results as not usable, but leave the first ones of each kind."""
    kind, choice = draw.random(), draw.random()
    same = [x for x in lab if x["stratum"] == entry["stratum"] and x["unit"] == entry["unit"] and x["valid"]]
    if len(same) <= keep or kind > 0.3:
        return
    entry["valid"] = False
    if level >= 2 and choice < 0.4:
        entry["status"] = "preliminary"
    else:
        entry["status"], entry["note"] = "rejected", "sample disturbed" if choice < 0.7 else "sample dried out"


def mean(values):
    return sum(values) / len(values)


def cautious(values, factor):
    centre = mean(values)
    spread = math.sqrt(sum((v - centre) ** 2 for v in values) / (len(values) - 1))
    return centre - factor * spread


def strengths(lab):
    return [x["value"] / (2 if x["kind"].startswith("unconfined") else 1) for x in lab if x["valid"] and x["unit"] == "kPa"]


def compute(
    schedule_seed,
    boreholes,
    trap_level,
    base_level_m,
    stress_factor_limit,
    refusal_limit,
    stroud_factor_kpa,
    deviation_factor,
):
    data = records(schedule_seed, boreholes, trap_level, base_level_m)
    energy = {**data["rigs"], **data["recalibrated"]}
    holes = {h["name"]: h for h in data["holes"]}
    water = max(holes[r["hole"]]["ground"] - r["depth"] for r in data["readings"] if r["valid"])
    weight = {}
    for stratum in (MADE, SAND, CLAY):
        values = [
            x["value"] * (WATER if x["unit"] == "Mg/m3" else 1)
            for x in data["lab"]
            if x["valid"] and x["stratum"] == stratum and x["unit"] != "kPa"
        ]
        weight[stratum] = mean(values)
    factor = stroud_factor_kpa + (0.4 if trap_level >= 3 else 0)
    sand, clay, per_hole = [], [], {name: [] for name in holes}
    for test in data["tests"]:
        if not test["valid"] or test["stratum"] == MADE:
            continue
        hole, depth = holes[test["hole"]], test["depth"]
        if test["penetration"] is None:
            blows = test["blows"][1] + test["blows"][2]
        else:
            blows = min(50 * 300 / test["penetration"], refusal_limit)
        n60 = blows * energy[hole["rig"]] / 60 * rods(depth)
        if test["stratum"] == CLAY:
            clay.append(factor * n60)
            continue
        stress = weight[MADE] * hole["made"] + weight[SAND] * (depth - hole["made"])
        stress -= WATER * max(0, depth - (hole["ground"] - water))
        sand.append(min(math.sqrt(100 / stress), stress_factor_limit) * n60)
        per_hole[hole["name"]].append(n60)
    if len(sand) < 6 or len(clay) < 6 or any(len(v) < 2 for v in per_hole.values()):
        raise ValueError("too few tests are left")
    laboratory = strengths(data["lab"])
    n160 = cautious(sand, deviation_factor)
    by_spt, by_lab = cautious(clay, deviation_factor), cautious(laboratory, deviation_factor)
    if n160 <= 0 or by_spt <= 0 or by_lab <= 0:
        raise ValueError("the results scatter too much")
    return {
        "design_water_level_m": water,
        "sand_tests": len(sand),
        "sand_unit_weight_kn_per_m3": weight[SAND],
        "mean_n160": mean(sand),
        "cautious_n160": n160,
        "friction_angle_deg": math.sqrt(20 * n160) + 20,
        "clay_tests": len(clay),
        "clay_strength_spt_kpa": by_spt,
        "clay_strength_lab_kpa": by_lab,
        "design_clay_strength_kpa": min(by_spt, by_lab),
        "discarded_tests": [t["id"] for t in data["tests"] if not t["valid"]],
        "borehole_summary": [
            {"borehole": name, "sand_tests": len(values), "mean_n60": mean(values)} for name, values in per_hole.items()
        ],
    }


def build_sources(params):
    data = records(params["schedule_seed"], params["boreholes"], params["trap_level"], params["base_level_m"])
    level = int(params["trap_level"])
    field = ["test,borehole,depth_m,stratum,blows_150_1,blows_150_2,blows_150_3,remark"]
    for t in data["tests"]:
        blows = [str(t["blows"][0]), "", ""] if t["penetration"] is not None else [str(b) for b in t["blows"]]
        field.append(",".join([t["id"], t["hole"], f"{t['depth']:.2f}", t["stratum"], *blows, t["remark"]]))
    lab = ["result,borehole,stratum,test,value,unit,status,note"]
    for x in data["lab"]:
        digits = {"kPa": 0, "kN/m3": 1, "Mg/m3": 2}[x["unit"]]
        value = f"{x['value']:.{digits}f}"
        kind = f'"{x["kind"]}"' if "," in x["kind"] else x["kind"]
        lab.append(",".join([x["id"], x["hole"], x["stratum"], kind, value, x["unit"], x["status"], x["note"]]))
    holes = [
        "# Boreholes and standpipes",
        "",
        "Depths are below ground level at the borehole; levels are above site datum.",
        "",
        "| borehole | rig | ground level (m) | base of made ground (m depth) | base of sand (m depth) | end of hole (m depth) |",
        "|---|---|---|---|---|---|",
    ]
    for h in data["holes"]:
        holes.append(f"| {h['name']} | {h['rig']} | {h['ground']:.2f} | {h['made']:.1f} | {h['sand']:.1f} | {h['end'] + 1:.1f} |")
    holes += ["", "Below the sand all holes end in clay.", "", "## Standpipe readings", ""]
    holes += ["| round | standpipe in | depth of water below ground (m) | remark |", "|---|---|---|---|"]
    for r in data["readings"]:
        depth = "-" if r["depth"] is None else f"{r['depth']:.2f}"
        holes.append(f"| {r['month']} | {r['hole']} | {depth} | {r['remark'] or '-'} |")
    limit, refusal = params["stress_factor_limit"], params["refusal_limit"]
    memo = [
        "# Design memo: interpretation of the ground investigation",
        "",
        "## 1 Penetration tests",
        "",
        "Energy ratio of the rigs, from their calibration certificates:",
        "",
        "| rig | energy ratio (%) |",
        "|---|---|",
        *[f"| {rig} | {ratio} |" for rig, ratio in data["rigs"].items()],
        "",
        "Factor for the rod length, by depth of the test:",
        "",
        "| depth of test | factor |",
        "|---|---|",
        "| less than 4 m | 0.75 |",
        "| 4 m to less than 6 m | 0.85 |",
        "| 6 m to less than 10 m | 0.95 |",
        "| 10 m and more | 1.00 |",
        "",
        "The factors for borehole diameter and sampler are 1.0 on this site.",
        "",
        "Refusal (50 blows before the end of the test drive of 300 mm): N is 50 blows scaled in proportion to 300 mm, but "
        f"not more than {refusal:g}. Such a test counts.",
        "",
        "A test with a remark that begins with \"void\" does not count. A test that was repeated at the same depth does not "
        "count; its repeat does. Other remarks have no effect.",
        "",
        "## 2 Sand",
        "",
        f"The stress correction is limited to {limit:g}.",
        "",
        "## 3 Clay",
        "",
        f"Undrained strength from penetration tests: {params['stroud_factor_kpa']:g} kPa times N60, test by test. From "
        "laboratory tests: the strength of a triaxial UU test as reported, half the compressive strength of an unconfined test.",
        "",
        "## 4 Laboratory results",
        "",
        "Only results with status \"final\" count. A result that a later one replaces does not count, whatever its own status "
        "says. Density in Mg/m3 times 9.81 is unit weight in kN/m3. The unit weight of a stratum is the mean of all results "
        "that count, from all boreholes; it holds above and below the water.",
        "",
        "## 5 Ground water",
        "",
        "The design water level is the highest level of all standpipe readings. Rounds without a figure, and readings with "
        "a remark that puts them in doubt (standpipe blocked, surface water entered, cap missing), are left out.",
        "",
        "## 6 Cautious values",
        "",
        f"A cautious value is the mean less {params['deviation_factor']:g} times the sample standard deviation (divisor n - 1).",
    ]
    if level >= 3:
        memo += [
            "",
            "## Addendum",
            "",
            f"Rig R2 was calibrated again: its certificate in section 1 is withdrawn, its energy ratio is "
            f"{data['recalibrated']['R2']} % for all its tests.",
            "",
            "After the plasticity tests the factor in section 3 for penetration tests is raised by 0.4 kPa.",
        ]
    return {
        "field/spt.csv": "\n".join(field) + "\n",
        "field/boreholes.md": "\n".join(holes) + "\n",
        "lab/results.csv": "\n".join(lab) + "\n",
        "memo/design-memo.md": "\n".join(memo) + "\n",
    }
