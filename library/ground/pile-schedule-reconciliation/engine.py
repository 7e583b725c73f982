"""Reconciliation of a pile schedule with rig records, dockets, survey and integrity tests of a bored piling site."""

import math

from pile_documents import documents
from pile_site import PILE_MIX, Site, in_force, theoretical_m3


def clear_of(value, limit, margin):
    """Keeps a value away from its limit, where rounding would decide."""
    if abs(value - limit) < margin:
        raise ValueError("a value lies on the edge of its limit")


def to_site(control, reading):
    turn = math.radians(control["rotation_deg"])
    east = reading["east"] - control["national"][0]
    north = reading["north"] - control["national"][1]
    return (
        control["site"][0] + east * math.cos(turn) + north * math.sin(turn),
        control["site"][1] - east * math.sin(turn) + north * math.cos(turn),
        control["site"][2] + reading["level"] - control["national"][2],
    )


def placed_m3(site, bore):
    loads = {
        docket["number"]: (docket["volume"] - docket["returned"]) * docket["unit_m3"]
        for docket in site.dockets
        if docket["pile"] == bore["pile"]
        and docket["date"] == bore["date"]
        and docket["mix"] == PILE_MIX
        and not docket["remark"].startswith("rejected")
    }
    return sum(loads.values())


def last_of(records, bore, valid):
    """The last valid record of a pile since its bore; several on one day would leave it open which is meant."""
    found = [record for record in records if record["pile"] == bore["pile"] and record["date"] > bore["date"]]
    found = [record for record in found if valid(record)]
    if len({record["date"] for record in found}) < len(found):
        raise ValueError("two records of one day")
    return max(found, key=lambda record: record["date"], default=None)


def check_room(piles):
    """Refuses a design whose piles would run into each other."""
    for at, one in enumerate(piles):
        for other in piles[:at]:
            gap = math.hypot(one["easting_m"] - other["easting_m"], one["northing_m"] - other["northing_m"])
            if gap < 1.3 * max(one["diameter_mm"], other["diameter_mm"]) / 1000:
                raise ValueError("two piles of the design are too near")


def reconcile(site):
    limits = site.limits
    design = in_force(site.rows, site.instructions)
    check_room(list(design.values()))
    counted = {name: bore for name, bore in site.counted().items() if not name.startswith("TP")}
    lost = [
        bore
        for bore in site.bores
        if bore["pile"].startswith("P") and bore["outcome"] != "probe" and counted.get(bore["pile"]) is not bore
    ]
    accepted = {
        item["pile"]
        for entry in site.instructions
        if entry["status"] == "issued"
        for item in entry["items"]
        if item["action"] == "accept"
    }
    built = sorted(name for name in design if name in counted)
    off_position, off_level, short, wrong_diameter, overbreak, failed, untested = [], [], [], [], [], [], []
    sums = {}
    released = 0
    for name in built:
        pile, bore = design[name], counted[name]
        reading = last_of(
            site.surveys, bore, lambda one: one["kind"] == "as-built" and not one["remark"].startswith("rejected")
        )
        east, north, level = to_site(site.control, reading)
        deviation = 1000 * math.hypot(east - pile["easting_m"], north - pile["northing_m"])
        limit = limits[f"{pile['type']}_mm"]
        clear_of(deviation, limit, 2)
        if deviation > limit:
            off_position.append({"pile": name, "deviation_mm": deviation})
        rise = 1000 * abs(level - pile["cut_off_m"])
        clear_of(rise, limits["level_mm"], 3)
        if rise > limits["level_mm"]:
            off_level.append(name)
        depth = bore["depth"] * bore["unit_m"]
        shortfall = pile["cut_off_m"] - pile["toe_m"] - (level - bore["platform_m"] + depth)
        clear_of(shortfall, limits["length_m"], 0.015)
        if shortfall > limits["length_m"]:
            short.append({"pile": name, "shortfall_m": shortfall})
        if bore["diameter_mm"] != pile["diameter_mm"]:
            wrong_diameter.append(name)
        theory, placed = theoretical_m3(bore), placed_m3(site, bore)
        ratio = placed / theory
        clear_of(ratio, limits["least_ratio"], 0.006)
        clear_of(ratio, limits["most_ratio"], 0.006)
        if not limits["least_ratio"] <= ratio <= limits["most_ratio"]:
            overbreak.append({"pile": name, "ratio": ratio})
        test = last_of(site.tests, bore, lambda one: one["class"] != "V")
        if test is None:
            untested.append(name)
        elif test["class"] in "CD" and name not in accepted:
            failed.append(name)
        sound = test is not None and (test["class"] in "AB" or name in accepted)
        released += (
            sound
            and deviation <= limit
            and rise <= limits["level_mm"]
            and shortfall <= limits["length_m"]
            and bore["diameter_mm"] == pile["diameter_mm"]
            and limits["least_ratio"] <= ratio <= limits["most_ratio"]
        )
        row = sums.setdefault(bore["diameter_mm"], [0, 0.0, 0.0, 0.0])
        for at, value in enumerate((1, depth, theory, placed)):
            row[at] += value
    count, bored, theory, placed = (sum(row[at] for row in sums.values()) for at in range(4))
    return {
        "design_piles": len(design),
        "built_piles": count,
        "missing_piles": sorted(name for name in design if name not in counted),
        "extra_piles": sorted(name for name in counted if name not in design),
        "off_position_piles": off_position,
        "off_level_piles": off_level,
        "short_piles": short,
        "wrong_diameter_piles": wrong_diameter,
        "overbreak_piles": overbreak,
        "failed_piles": failed,
        "untested_piles": untested,
        "released_piles": released,
        "bored_length_m": bored,
        "lost_boring_m": sum(bore["depth"] * bore["unit_m"] for bore in lost),
        "theoretical_concrete_m3": theory,
        "placed_concrete_m3": placed,
        "overbreak_percent": 100 * (placed / theory - 1),
        "by_diameter": [
            {
                "diameter_mm": diameter,
                "piles": sums[diameter][0],
                "bored_m": sums[diameter][1],
                "theoretical_m3": sums[diameter][2],
                "placed_m3": sums[diameter][3],
            }
            for diameter in sorted(sums)
        ],
    }


def compute(
    schedule_seed,
    piles,
    rigs,
    revisions,
    instructions,
    rebores,
    retests,
    main_diameter_mm,
    pile_length_m,
    position_tolerance_mm,
    length_tolerance_m,
    max_overbreak_ratio,
    addendum,
    length_units,
    grid,
):
    answers = reconcile(Site(dict(locals())))
    for name, value in answers.items():
        # Abandoned bores are part of the sites that have re-bores.
        if value in ([], 0) and not (name == "lost_boring_m" and rebores == 0):
            raise ValueError(f"{name} has nothing to find")
    return answers


def build_sources(params):
    return documents(Site(params))
