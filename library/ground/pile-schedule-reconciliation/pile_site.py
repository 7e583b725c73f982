"""Draws a piling site: schedule rows, instructions, bores, dockets, survey readings and tests, each as printed."""

import datetime
import math
import random

FOOT = 0.3048
DIAMETERS_MM = [600, 750, 900, 1050, 1200]
LEVEL_TOLERANCE_MM = 50
LEAST_RATIO = 1.0
PILE_MIX = "P40"
BACKFILL_MIX = "LM5"


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

    def some(self, items, count):
        pool = list(items)
        if len(pool) < count:
            raise ValueError("the site is too small for what should happen on it")
        return [pool.pop(self.below(len(pool))) for _ in range(count)]


class Calendar:
    """Working days, Monday to Saturday; day 0 is the Monday on which piling starts."""

    def __init__(self, dice):
        self.start = datetime.date(2024, 3, 4) + datetime.timedelta(weeks=dice.below(26))

    def day(self, number):
        return self.start + datetime.timedelta(days=number + number // 6)


def in_force(rows, instructions, until=None):
    """Piles of the design after everything issued up to a day, in the order of the dates of issue."""
    issued = [entry for entry in instructions if entry["status"] == "issued" and (not until or entry["date"] < until)]
    cancelled = {
        (item["of"], item["item"]) for entry in issued for item in entry["items"] if item["action"] == "cancel"
    }
    steps = [(row["issued"], 0, row) for row in rows if row["status"] != "for comment"]
    steps += [
        (entry["date"], 1, item)
        for entry in issued
        for number, item in enumerate(entry["items"], 1)
        if (entry["number"], number) not in cancelled
    ]
    piles = {}
    for date, kind, what in sorted(steps, key=lambda step: step[:2]):
        if until and date >= until:
            continue
        if kind == 0:
            piles.pop(what["pile"], None)
            if what["status"] == "construction":
                piles[what["pile"]] = {key: what[key] for key in PILE_KEYS}
        else:
            apply_item(piles, what)
    return piles


PILE_KEYS = ("pile", "type", "cap", "diameter_mm", "easting_m", "northing_m", "cut_off_m", "toe_m")


def apply_item(piles, item):
    action = item["action"]
    if action == "delete":
        piles.pop(item["pile"], None)
    elif action == "add":
        for pile in item["piles"]:
            piles[pile["pile"]] = dict(pile)
    elif action == "relocate":
        piles[item["pile"]] = {
            **piles[item["pile"]],
            "easting_m": item["easting_m"],
            "northing_m": item["northing_m"],
        }
    elif action == "toe":
        for name in item["names"]:
            piles[name] = {**piles[name], "toe_m": item["toe_m"]}


def draw_layout(dice, count, main_diameter_mm, length_m):
    """Piles in caps on a column grid, numbered from cap to cap."""
    size = DIAMETERS_MM.index(main_diameter_mm)
    piles = []
    bay = 0
    while len(piles) < count:
        east, north = 120 + 7.5 * (bay % 6), 240 + 8.1 * (bay // 6)
        wall = bay % 6 == 5
        diameter = DIAMETERS_MM[max(0, size - 1)] if wall or dice.chance(0.25) else main_diameter_mm
        if not wall and dice.chance(0.2):
            diameter = DIAMETERS_MM[min(len(DIAMETERS_MM) - 1, size + 1)]
        cut_off = round(dice.between(9.2, 10.1) * 20) / 20
        length = round((length_m + dice.between(-2, 3)) * 2) / 2
        members = min(2 + dice.below(3), count - len(piles))
        for member in range(members):
            spacing = 3 * diameter / 1000
            piles.append(
                {
                    "pile": f"P{len(piles) + 1:03d}",
                    "type": "wall" if wall else "bearing",
                    "cap": f"{'ABCDEF'[bay % 6]}{bay // 6 + 1}",
                    "diameter_mm": diameter,
                    "easting_m": round(east + spacing * (member % 2), 3),
                    "northing_m": round(north + spacing * (member // 2), 3),
                    "cut_off_m": cut_off,
                    "toe_m": round(cut_off - length, 2),
                }
            )
        bay += 1
    return piles


class Site:
    """Everything that happened, drawn in the order in which it happened."""

    def __init__(self, params):
        self.params = params
        self.dice = Dice(params["schedule_seed"])
        self.calendar = Calendar(self.dice)
        self.limits = self.draw_limits()
        self.rows = []
        self.instructions = []
        self.bores = []
        self.dockets = []
        self.surveys = []
        self.tests = []
        self.touched = set()
        self.new_piles = []
        self.next_number = params["piles"]
        self.plan_boring()
        self.draw_design()
        self.draw_bores()
        self.draw_records()
        self.close_out()

    def day(self, number):
        return self.calendar.day(number)

    def draw_limits(self):
        """Limits in force, and those that addenda have replaced."""
        params = self.params
        position, ratio = params["position_tolerance_mm"], params["max_overbreak_ratio"]
        side = {"none": 0, "tighter": 1, "looser": -1}[params["addendum"]]
        two = params["instructions"] > 3
        return {
            "bearing_mm": position,
            "wall_mm": 40,
            "level_mm": LEVEL_TOLERANCE_MM,
            "length_m": params["length_tolerance_m"],
            "least_ratio": LEAST_RATIO,
            "most_ratio": ratio,
            "first_bearing_mm": position + 25 * side,
            "second_bearing_mm": position + 10 * side if two else position,
            "first_most_ratio": round(ratio + 0.05 * side, 2),
        }

    def plan_boring(self):
        """Which rig is to bore which scheduled pile on which working day."""
        dice, rigs = self.dice, self.params["rigs"]
        layout = draw_layout(dice, self.params["piles"], self.params["main_diameter_mm"], self.params["pile_length_m"])
        self.scheduled = {pile["pile"]: pile for pile in layout}
        names = list(self.scheduled)
        block = math.ceil(len(names) / rigs)
        self.rig_of, self.day_of = {}, {}
        for rig in range(rigs):
            mine = names[rig * block : (rig + 1) * block]
            # The rig jumps between the two halves of its block, so that concrete can set before the neighbour is bored.
            half = math.ceil(len(mine) / 2)
            order = [name for pair in zip(mine[:half], mine[half:] + [None]) for name in pair if name]
            day, left = 0, 2 + dice.below(2)
            for name in order:
                if not left:
                    day, left = day + 1, 2 + dice.below(3)
                self.rig_of[name], self.day_of[name], left = rig + 1, day, left - 1
        self.last_day = max(self.day_of.values())

    # The design and its changes

    def free(self, day, built):
        """Scheduled piles of the design that no other change names, bored before a day or to be bored after it."""
        current = in_force(self.rows, self.instructions)
        return [
            name
            for name in self.scheduled
            if name in current
            and name not in self.touched
            and ((self.day_of[name] < day) if built else (self.day_of[name] > day))
        ]

    def take(self, day, built, count=1):
        names = self.dice.some(self.free(day, built), count)
        self.touched.update(names)
        return sorted(names)

    def altered(self, pile):
        """Another version of a pile: somewhere else, deeper, or of another diameter."""
        dice = self.dice
        other = dict(pile)
        kind = dice.below(3)
        if kind == 0:
            other["easting_m"] = round(pile["easting_m"] + dice.pick([-1, 1]) * round(dice.between(0.3, 0.9), 2), 3)
        elif kind == 1:
            other["toe_m"] = round(pile["toe_m"] - dice.pick([1.5, 2.0, 2.5]), 2)
        else:
            size = DIAMETERS_MM.index(pile["diameter_mm"])
            other["diameter_mm"] = DIAMETERS_MM[size + 1 if size + 1 < len(DIAMETERS_MM) else size - 1]
            other["cut_off_m"] = round(pile["cut_off_m"] - 0.15, 2)
        return other

    def new_pile(self, beside):
        """A pile that is added near another one, two diameters at least from all others."""
        self.next_number += 1
        name = f"P{self.next_number:03d}"
        taken = [*self.scheduled.values(), *in_force(self.rows, self.instructions).values(), *self.new_piles]
        for _ in range(60):
            steps = [self.dice.pick([-1, 1]) * round(self.dice.between(1.2, 4.2) * 20) / 20 for _ in range(2)]
            east, north = round(beside["easting_m"] + steps[0], 3), round(beside["northing_m"] + steps[1], 3)
            gaps = [math.hypot(east - pile["easting_m"], north - pile["northing_m"]) for pile in taken]
            if min(gaps) >= 2 * beside["diameter_mm"] / 1000:
                pile = {**beside, "pile": name, "easting_m": east, "northing_m": north}
                self.new_piles.append(pile)
                return pile
        raise ValueError("there is no room for another pile")

    def issue_rows(self, rev, day, piles, status="construction"):
        for pile in piles:
            self.rows.append({"rev": rev, "issued": self.day(day), "status": status, **pile})

    def revision(self, rev, day, changes, deletions, additions, again=()):
        current = in_force(self.rows, self.instructions)
        changed = [self.altered(current[name]) for name in self.take(day + 1, False, changes)]
        # A pile that an instruction has moved before comes once more, as the designer finally places it.
        # One that an instruction has deleted is taken back into the design.
        for name in again:
            final = dict(current.get(name) or self.scheduled[name])
            final["northing_m"] = round(final["northing_m"] + self.dice.pick([-0.35, 0.35]), 3)
            changed.append(final)
        deleted = [current[name] for name in self.take(day + 1, False, deletions)]
        added = [self.new_pile(current[name]) for name in self.dice.some(self.free(-99, False), additions)]
        self.added.extend(pile["pile"] for pile in added)
        self.touched.update(pile["pile"] for pile in added)
        self.issue_rows(rev, day, changed + added)
        self.issue_rows(rev, day, deleted, "deleted")

    def instruction(self, day, menu, status="issued"):
        """Issues an instruction with the items of a menu, in drawn order."""
        items = []
        current = in_force(self.rows, self.instructions)
        for action, built, count, *after in menu:
            seen = after[0] if after else day
            if action == "delete":
                items += [{"action": "delete", "pile": name} for name in self.take(seen, built, count)]
            elif action == "relocate":
                for name in self.take(seen, built, count):
                    east = self.dice.pick([-1, 1]) * round(self.dice.between(0.3, 0.8), 2)
                    north = self.dice.pick([-1, 1]) * round(self.dice.between(0.2, 0.6), 2)
                    pile = current[name]
                    items.append(
                        {
                            "action": "relocate",
                            "pile": name,
                            "relative": self.dice.chance(0.5),
                            "east_m": east,
                            "north_m": north,
                            "easting_m": round(pile["easting_m"] + east, 3),
                            "northing_m": round(pile["northing_m"] + north, 3),
                        }
                    )
            elif action == "toe":
                names = self.take(seen, built, count)
                lowest = min(current[name]["toe_m"] for name in names)
                items.append({"action": "toe", "names": names, "toe_m": round(lowest - 1.5, 2)})
            elif action == "add":
                piles = [self.new_pile(current[name]) for name in self.dice.some(self.free(-99, False), count)]
                self.touched.update(pile["pile"] for pile in piles)
                (self.added if status == "issued" else self.unwarranted).extend(pile["pile"] for pile in piles)
                items.append({"action": "add", "piles": piles})
            elif action == "query":
                items.append({"action": "query", "pile": self.dice.pick(self.free(-99, False))})
        items = self.dice.some(items, len(items))
        number = f"EI-{len(self.instructions) + 1:02d}"
        entry = {"number": number, "date": self.day(day), "status": status, "items": items}
        self.instructions.append(entry)
        return entry

    def one_of_each(self, entry):
        """A pile that an instruction moves and one that it deletes."""
        return [
            next(item["pile"] for item in entry["items"] if item["action"] == action)
            for action in ("relocate", "delete")
        ]

    def draw_design(self):
        self.added, self.unwarranted = [], []
        self.issue_rows("A", -30, self.scheduled.values())
        revisions, instructions = self.params["revisions"], self.params["instructions"]
        share = max(3, self.params["piles"] // 10)
        again = []
        if instructions == 3:
            first = self.instruction(-13, [("relocate", False, 2), ("delete", False, 2), ("query", False, 1)])
            again = self.one_of_each(first)
        self.revision("B", -9, share, 1 + self.dice.below(3), revisions + self.dice.below(2), again)
        if instructions == 1:
            menu = [("delete", True, 1), ("delete", False, 1), ("relocate", False, 1), ("add", False, 1)]
            self.instruction(4, menu + [("toe", False, 1)])
        elif instructions == 3:
            menu = [("delete", True, 1), ("delete", False, 1), ("relocate", False, 1), ("relocate", True, 1)]
            self.instruction(3, menu + [("add", False, 2), ("toe", False, 2), ("toe", True, 1), ("query", False, 1)])
        elif instructions == 4:
            # The revision on the fifth day comes before the moved piles are bored.
            menu = [("relocate", False, 2, 6), ("delete", False, 2, 6), ("toe", False, 2), ("query", False, 1)]
            again = self.one_of_each(self.instruction(-4, menu))
            menu = [("delete", True, 2), ("delete", False, 1), ("relocate", True, 1), ("add", False, 3)]
            self.instruction(3, menu + [("toe", True, 1), ("query", False, 1)])
            self.revision("C", 5, 2, 1, 0, again)
            menu = [("add", False, 2), ("delete", True, 1), ("relocate", True, 1), ("toe", True, 1)]
            self.instruction(self.last_day + 8, menu, "withdrawn")
            current = in_force(self.rows, self.instructions)
            tentative = [self.altered(current[name]) for name in self.take(6, False, 3)]
            self.issue_rows("D", 8, tentative, "for comment")
        elif instructions != 0:
            raise ValueError("there is no such number of instructions")
        self.rows.sort(key=lambda row: (row["rev"], row["pile"]))

    # Boring

    def platform(self, rig, day):
        base = self.platforms[rig - 1]
        return base if day < self.relevelled_day else round(base - 0.45, 3)

    def bore(self, pile, rig, day, outcome, depth_m=None, diameter_mm=None, short_m=0.0):
        """Notes a bore with depths rounded as the rig's record prints them."""
        dice = self.dice
        platform = self.platform(rig, day)
        top_level = round((pile["cut_off_m"] + dice.between(0.35, 0.75)) * 20) / 20
        if depth_m is None:
            depth_m = platform - pile["toe_m"] + dice.between(0.05, 0.25) - short_m
        feet = rig == 3 and self.params["length_units"] == "mixed"
        step = 0.1 * FOOT if feet else 0.05
        depth = round(math.ceil(depth_m / step), 0)
        top = round((platform - top_level) / step)
        entry = {
            "pile": pile["pile"],
            "rig": rig,
            "date": self.day(day),
            "day": day,
            "diameter_mm": diameter_mm or pile["diameter_mm"],
            "platform_m": platform,
            "depth": round(depth * (0.1 if feet else 0.05), 2),
            "top": round(top * (0.1 if feet else 0.05), 2),
            "unit_m": FOOT if feet else 1,
            "outcome": outcome,
        }
        if rig == 2:
            # This foreman notes the level of the concrete, not its depth.
            entry["top_level"] = top_level
        self.bores.append(entry)
        return entry

    def draw_bores(self):
        dice, params = self.dice, self.params
        self.platforms = [round(dice.between(11.4, 12.0), 3) for _ in range(params["rigs"])]
        self.relevelled_day = 4 + dice.below(3)
        final = in_force(self.rows, self.instructions)
        quiet = [name for name in final if name in self.scheduled and name not in self.touched]
        left_out = dice.some(quiet, 2 + dice.below(3))
        quiet = [name for name in quiet if name not in left_out]
        # One pile has nothing but a bore that was given up; others were bored again later.
        given_up = left_out[:1] if params["rebores"] else []
        again = dice.some(quiet, params["rebores"])
        quiet = [name for name in quiet if name not in again]
        self.short = dice.some(quiet, 1 + params["piles"] // 60 + dice.below(3))
        self.wide = dice.some([name for name in quiet if name not in self.short], 1 + dice.below(2))
        late = self.last_day + 1
        rigs = params["rigs"]
        for name in list(self.scheduled) + self.added:
            if name in left_out and name not in given_up:
                continue
            if name in self.added:
                if name == self.added[-1]:
                    continue
                rig, day = 1 + dice.below(rigs), late + dice.below(2)
            else:
                rig, day = self.rig_of[name], self.day_of[name]
            pile = in_force(self.rows, self.instructions, self.day(day)).get(name)
            if pile is None:
                continue
            if name in given_up or name in again[: params["rebores"] - params["rebores"] // 2]:
                self.bore(pile, rig, day, "abandoned", depth_m=dice.between(4, 9))
                if name in given_up:
                    continue
                day = late + dice.below(3)
            diameter = None
            if name in self.wide:
                size = DIAMETERS_MM.index(pile["diameter_mm"])
                diameter = DIAMETERS_MM[size - 1 if size else size + 1]
            short = dice.between(0.45, 1.3) if name in self.short else 0.0
            self.bore(pile, rig, day, "complete", diameter_mm=diameter, short_m=short)
            if name in again[params["rebores"] - params["rebores"] // 2 :]:
                # Cast, found faulty, drilled out and bored once more.
                self.bore(pile, rig, day + 9 + dice.below(3), "complete")
        for name in self.unwarranted[:1]:
            entry = next(entry for entry in self.instructions if entry["status"] == "withdrawn")
            piles = [pile for item in entry["items"] for pile in item.get("piles", [])]
            pile = next(pile for pile in piles if pile["pile"] == name)
            self.bore(pile, 1 + dice.below(rigs), self.last_day + 10, "complete")
        model = final[quiet[0]]
        for number in (1, 2):
            trial = {**model, "pile": f"TP{number}", "toe_m": round(model["toe_m"] - 1.0, 2)}
            self.bore(trial, 1, -5 + number, "complete")
        for number in range(1, 3):
            self.bore({**model, "pile": f"PB{number}"}, 1, number, "probe", depth_m=dice.between(5, 8))
        self.bores.sort(key=lambda bore: (bore["day"], bore["rig"], bore["pile"]))

    def counted(self):
        """The last completed bore of each pile."""
        return {bore["pile"]: bore for bore in self.bores if bore["outcome"] == "complete"}

    # Concrete, survey, tests

    def draw_records(self):
        dice, limits = self.dice, self.limits
        final = in_force(self.rows, self.instructions)
        built = [
            name
            for name in self.counted()
            if name in final and name not in self.short and name not in self.wide and name not in self.touched
        ]
        amended = limits["first_most_ratio"] != limits["most_ratio"]
        bearing = [name for name in built if final[name]["type"] == "bearing"]
        # Values between the old and the new limit tell who has read the addenda.
        self.between_position = dice.some(bearing, 2 if amended else 0)
        built = [name for name in built if name not in self.between_position]
        # A wall pile that only the tolerance of bearing piles would pass.
        self.far_wall = dice.some([name for name in built if final[name]["type"] == "wall"], 1)
        built = [name for name in built if name not in self.far_wall]
        self.far = dice.some(built, 1 + self.params["piles"] // 60 + dice.below(3))
        built = [name for name in built if name not in self.far]
        self.between_ratio = dice.some(built, 2 if amended else 0)
        built = [name for name in built if name not in self.between_ratio]
        self.over = dice.some(built, 1 + self.params["piles"] // 60 + dice.below(2))
        self.under = dice.some([name for name in built if name not in self.over], 1 + dice.below(2))
        built = [name for name in built if name not in self.over + self.under]
        self.off_level = dice.some(built, 1 + dice.below(3))
        built = [name for name in built if name not in self.off_level]
        self.untested = dice.some(built, 1 + self.params["piles"] // 60 + dice.below(2))
        built = [name for name in built if name not in self.untested]
        self.draw_control()
        # One pile at least has a rejected load and some lean mix, one a rejected reading.
        self.marked, self.misread = dice.some(built, 2)
        counted = self.counted()
        for bore in self.bores:
            if bore["outcome"] == "complete":
                last = counted[bore["pile"]] is bore
                self.pour(bore, last)
                if not bore["pile"].startswith("TP"):
                    self.survey(bore, final, last)
            elif bore["outcome"] == "abandoned":
                volume = math.pi / 4 * (bore["diameter_mm"] / 1000) ** 2 * bore["depth"] * bore["unit_m"]
                self.docket(bore, round(volume, 1), BACKFILL_MIX)
        self.draw_tests(built)

    def docket(self, bore, volume, mix=PILE_MIX, returned=0.0, remark=""):
        mixed = self.params["length_units"] == "mixed"
        litres = mixed and bore["rig"] == 3
        self.dockets.append(
            {
                "date": bore["date"],
                "pile": bore["pile"],
                "mix": mix,
                "volume": round(volume * 1000) if litres else round(volume, 2),
                "returned": round(returned * 1000) if litres else round(returned, 2),
                "unit": "L" if litres else "m3",
                "unit_m3": 0.001 if litres else 1,
                "remark": remark,
                "rig": bore["rig"],
            }
        )

    def pour(self, bore, last):
        """Loads for a bore, whose sum lies in the band that the pile is meant to have."""
        dice, limits = self.dice, self.limits
        name = bore["pile"]
        theory = theoretical_m3(bore)
        low_most = min(limits["most_ratio"], limits["first_most_ratio"])
        high_most = max(limits["most_ratio"], limits["first_most_ratio"])
        band = (LEAST_RATIO + 0.025, low_most - 0.02)
        if last and name in self.over:
            band = (high_most + 0.03, high_most + 0.2)
        elif last and name in self.under:
            band = (LEAST_RATIO - 0.12, LEAST_RATIO - 0.02)
        elif last and name in self.between_ratio:
            band = (low_most + 0.008, high_most - 0.008)
        elif not last:
            band = (1.3, 1.6)
        first, final = math.ceil(band[0] * theory * 10), math.floor(band[1] * theory * 10)
        if first > final:
            raise ValueError("no whole tenth of a cubic metre lies in the band")
        tenths = first + dice.below(final - first + 1)
        if dice.chance(0.06) or name == self.marked:
            self.docket(bore, 6.0, remark=dice.pick(["rejected - slump too low", "rejected - over two hours old"]))
        full = dice.pick([55, 60, 65])
        while tenths > full:
            self.docket(bore, full / 10)
            tenths -= full
        returned = 0
        if self.params["length_units"] == "mixed" and dice.chance(0.3):
            returned = 2 + dice.below(9)
        self.docket(bore, (tenths + returned) / 10, returned=returned / 10)
        if dice.chance(0.1) or name == self.marked:
            self.docket(bore, (5 + dice.below(8)) / 10, BACKFILL_MIX, remark="empty bore filled")

    def draw_control(self):
        dice = self.dice
        rotation = round(dice.between(8, 32), 2) if self.params["grid"] == "rotated" else 0.0
        self.control = {
            "site": (100.0, 220.0, round(dice.between(10.5, 12.5), 3)),
            "national": (
                round(dice.between(412300, 418900), 3),
                round(dice.between(231200, 239700), 3),
                0.0,
            ),
            "rotation_deg": rotation,
        }
        level = round(self.control["site"][2] + dice.between(18, 47), 3)
        self.control["national"] = (*self.control["national"][:2], level)

    def national(self, east, north, level):
        turn = math.radians(self.control["rotation_deg"])
        east -= self.control["site"][0]
        north -= self.control["site"][1]
        return (
            round(self.control["national"][0] + east * math.cos(turn) - north * math.sin(turn), 3),
            round(self.control["national"][1] + east * math.sin(turn) + north * math.cos(turn), 3),
            round(level - self.control["site"][2] + self.control["national"][2], 3),
        )

    def reading(self, name, date, point, kind="as-built", remark=""):
        east, north, level = self.national(*point)
        self.surveys.append(
            {
                "date": date,
                "pile": name,
                "kind": kind,
                "east": east,
                "north": north,
                "level": level,
                "remark": remark,
            }
        )

    def survey(self, bore, final, last):
        """As-built reading some days after the bore, perhaps followed by another one."""
        dice, limits = self.dice, self.limits
        name = bore["pile"]
        design = in_force(self.rows, self.instructions, bore["date"]).get(name) or final.get(name) or self.stray(name)
        least = min(limits["bearing_mm"], limits["first_bearing_mm"], limits["second_bearing_mm"])
        most = max(limits["bearing_mm"], limits["first_bearing_mm"], limits["second_bearing_mm"])
        wall = design["type"] == "wall"
        distance = dice.between(5, 0.7 * (limits["wall_mm"] if wall else least))
        if last and name in self.far:
            limit = limits["wall_mm"] if wall else most
            distance = dice.between(limit + 9, 1.6 * limit + 12)
        elif last and name in self.far_wall:
            distance = dice.between(limits["wall_mm"] + 8, limits["bearing_mm"] - 8)
        elif last and name in self.between_position:
            near = limits["bearing_mm"]
            # Just beyond the limit in force, on the side of those that it replaced.
            other = limits["second_bearing_mm"] if limits["second_bearing_mm"] != near else limits["first_bearing_mm"]
            distance = near + (other - near) * dice.between(0.4, 0.7)
        rise = dice.between(-0.03, 0.03)
        if last and name in self.off_level:
            rise = dice.pick([-1, 1]) * dice.between(0.062, 0.095)
        angle = dice.between(0, 2 * math.pi)
        point = (
            design["easting_m"] + distance / 1000 * math.cos(angle),
            design["northing_m"] + distance / 1000 * math.sin(angle),
            design["cut_off_m"] + rise,
        )
        worse = (point[0] + dice.pick([-1, 1]) * 0.16, point[1] + 0.05, point[2] + 0.31)
        day = bore["day"] + 3 + dice.below(2)
        share = 0.05 + 0.01 * self.params["retests"]
        if last and name != self.misread and dice.chance(share):
            self.reading(name, self.day(day), worse, remark="pile head not yet trimmed")
            self.reading(name, self.day(day + 3), point, remark="after trimming")
        elif last and (name == self.misread or dice.chance(share)):
            self.reading(name, self.day(day), point)
            remark = dice.pick(["rejected - prism pole not on the mark", "rejected - wrong pile head shot"])
            self.reading(name, self.day(day + 2), worse, remark=remark)
        else:
            self.reading(name, self.day(day), point)

    def stray(self, name):
        """The pile of a withdrawn instruction, or one that a later change took away."""
        for entry in self.instructions:
            for item in entry["items"]:
                for pile in item.get("piles", []):
                    if pile["pile"] == name:
                        return pile
        return self.scheduled[name]

    def test(self, name, date, grade, remark=""):
        self.tests.append({"pile": name, "date": date, "class": grade, "remark": remark})

    def draw_tests(self, sound):
        dice, retests = self.dice, self.params["retests"]
        counted = self.counted()
        more = dice.below(3)
        cast = [bore for bore in self.bores if bore["outcome"] == "complete"]
        twice = [bore["pile"] for bore in cast if counted[bore["pile"]] is not bore]
        fails = dice.some([name for name in sound if name not in twice], 3 + retests + more)
        # Fates of the piles that fail first: left so, proved sound, failed again, void retest, accepted, deleted.
        fates = ["open"] * (1 + more) + ["proved", "failed again", "void", "turned", "proved", "void"][:retests]
        fates += ["accepted", "replaced"] if self.params["instructions"] > 1 else ["open", "good"]
        self.accepted, self.replaced = [], []
        # One pile failed, was bored again and has not been tested since.
        self.unproved = twice[0] if twice else None
        fate_of = dict(zip(fails, fates))
        for bore in self.bores:
            name = bore["pile"]
            if bore["outcome"] != "complete":
                continue
            date = self.day(bore["day"] + 5 + dice.below(2))
            later = self.day(bore["day"] + 9 + dice.below(2))
            good, bad = ("A" if dice.chance(0.75) else "B"), dice.pick(["C", "C", "D"])
            fate = fate_of.get(name)
            if counted[name] is not bore:
                self.test(name, date, "D", "necking or inclusion below 5 m")
            elif name == self.unproved:
                continue
            elif name in self.untested:
                if name != self.untested[0] or not retests:
                    continue
                self.test(name, date, "V", "no clear toe reflection - head too rough")
            elif fate in (None, "good"):
                self.test(name, date, good)
            elif fate == "turned":
                self.test(name, date, good)
                self.test(name, later, bad, "tested again by the engineer's order")
            else:
                self.test(name, date, bad, dice.pick(["impedance change at 4 m", "anomaly at 6 to 7 m", "weak toe"]))
                if fate == "proved":
                    self.test(name, later, good, "retest after trimming to sound concrete")
                elif fate == "failed again":
                    self.test(name, later, "C", "retest - anomaly confirmed")
                elif fate == "void":
                    self.test(name, later, "V", "retest - loose concrete at the head - no usable signal")
                elif fate == "accepted":
                    self.accepted.append(name)
                elif fate == "replaced":
                    self.replaced.append(name)
        self.tests.sort(key=lambda test: (test["date"], test["pile"]))
        for number, test in enumerate(self.tests, 1):
            test["number"] = f"IT-{number:03d}"
        self.doubtful = [name for name, fate in fate_of.items() if fate == "open"]

    # What the office adds at the end

    def close_out(self):
        dice, params = self.dice, self.params
        self.dockets.sort(key=lambda docket: (docket["date"], docket["rig"]))
        number = 40210 + dice.below(3000)
        for docket in self.dockets:
            number += 1 + dice.below(3)
            docket["number"] = f"D{number}"
        if params["length_units"] == "mixed":
            for docket in dice.some([docket for docket in self.dockets if not docket["remark"]], 4):
                at = self.dockets.index(docket)
                self.dockets.insert(at + 2, dict(docket))
        final = in_force(self.rows, self.instructions)
        pegs = [self.marked, self.misread] + dice.some(list(final), 3 + params["piles"] // 12)
        for number, name in enumerate(dict.fromkeys(pegs)):
            pile = final[name]
            point = (pile["easting_m"] + dice.between(-0.004, 0.004), pile["northing_m"], pile["cut_off_m"] + 1.6)
            late = (self.last_day + 18, "offset peg 1 m east of the pile - check shot", 1.0)
            day, remark, offset = late if number < 2 else dice.pick([(-2, "setting-out peg", 0.0), late])
            self.reading(name, self.day(day), (point[0] + offset, *point[1:]), "peg", remark)
        self.surveys.sort(key=lambda survey: (survey["date"], survey["pile"]))
        if params["instructions"] > 1:
            items = [{"action": "accept", "pile": name, "test": self.last_test(name)} for name in self.accepted]
            for name in self.replaced:
                items.append({"action": "delete", "pile": name, "failed": True})
                pair = [self.new_pile(final[name]), self.new_pile(final[name])]
                items.append({"action": "add", "piles": pair, "failed": True})
            if params["instructions"] == 4:
                second = next(entry for entry in self.instructions if entry["number"] == "EI-02")
                at = [i for i, item in enumerate(second["items"], 1) if item["action"] == "delete"]
                built = [i for i in at if second["items"][i - 1]["pile"] in self.counted()]
                items.append({"action": "cancel", "of": "EI-02", "item": built[0]})
                withdrawn = next(entry for entry in self.instructions if entry["status"] == "withdrawn")
                # An acceptance can only follow its test.
                tested = [test for test in self.tests if test["date"] < withdrawn["date"]]
                doubtful = [test for test in tested if test["pile"] in self.doubtful]
                if not doubtful:
                    raise ValueError("no open result to accept wrongly")
                test = doubtful[0]
                withdrawn["items"].append({"action": "accept", "pile": test["pile"], "test": test["number"]})
            items = dice.some(items, len(items))
            number = f"EI-{len(self.instructions) + 1:02d}"
            date = self.day(self.last_day + 26)
            self.instructions.append({"number": number, "date": date, "status": "issued", "items": items})

    def last_test(self, name):
        return [test["number"] for test in self.tests if test["pile"] == name][-1]


def theoretical_m3(bore):
    """Volume of the bore from its toe to the top of the concrete."""
    depth = bore["depth"] * bore["unit_m"]
    top = bore["platform_m"] - bore["top_level"] if "top_level" in bore else bore["top"] * bore["unit_m"]
    return math.pi / 4 * (bore["diameter_mm"] / 1000) ** 2 * (depth - top)
