"""Draws a project: texts of clauses, plant items, vendors' data sheets, deviations and requests for information."""

import datetime
import random

from plant_subjects import (
    DUTY,
    FIELD_UNITS,
    GENERAL,
    GRAVITY,
    NEGOTIABLE,
    NOT_FOR,
    OWN,
    PLAIN,
    SECTIONS,
    SUBJECTS,
    UNITS,
    WATER_KG_PER_M3,
    figures,
    head_m,
    limit,
    meets,
    offered,
    subjects_of,
    too_near,
)

MOTORS_KW = [4, 5.5, 7.5, 11, 15, 18.5, 22, 30, 37, 45, 55]
FIRST_TAGS = {"P": 101, "F": 201, "AHU": 301, "CH": 401}
SPEEDS_RPM = {3000: [2900, 2930, 2950], 1500: [1450, 1465, 1480], 1000: [960, 970, 980]}
# What befalls the items, one each; the first ones are in every project of the kind.
STORIES = {
    "plain": ["tightened", "relaxed", "section strict", "section lenient", "general failed", "clean"],
    "deviations": ["allowed", "refused", "exceeded", "duty changed", "duty open"],
    "two addenda": ["tightened twice", "relaxed twice", "clause deleted", "lapsed", "general tightened", "allowed"],
}
# In the longest projects the addenda have enough to say without these.
SHORTER = ["tightened", "general failed", "clean"]
MORE = ["section failed", "clean", "relaxed", "clean"]


class Retry(Exception):
    """This draw does not work out."""


class Dice:
    """Draws from random() alone, which is the same in every version of Python."""

    def __init__(self, seed):
        self.next = random.Random(seed).random

    def between(self, low, high):
        return low + (high - low) * self.next()

    def below(self, count):
        return int(self.next() * count)

    def pick(self, choices):
        if not choices:
            raise Retry
        return choices[self.below(len(choices))]

    def chance(self, share):
        return self.next() < share

    def shuffled(self, items):
        pool = list(items)
        return [pool.pop(self.below(len(pool))) for _ in range(len(pool))]


def draw(project_seed, items, plant, addenda, deviations, resubmittals, unit_mix):
    """The project of a seed: the first attempt in which every item ends as it is meant to, far from every limit."""
    if items < 8 or addenda not in (1, 2) or not 0 <= resubmittals <= 5 or unit_mix not in (1, 2, 3):
        raise ValueError("no such project")
    for attempt in range(400):
        try:
            seed = project_seed * 1000 + attempt
            return _Draw(seed, items, plant, addenda, deviations, resubmittals, unit_mix).site()
        except Retry:
            continue
    raise ValueError("no project in 400 attempts")


class _Draw:
    def __init__(self, seed, items, plant, addenda, deviations, resubmittals, unit_mix):
        self.dice = Dice(seed)
        self.count, self.addenda, self.resubmittals, self.mix = items, addenda, resubmittals, unit_mix
        self.with_register = deviations == "registered"
        self.kinds = ["P", "F", "AHU" if plant == "air" else "CH"]
        start = datetime.date(2024, 1, 8) + datetime.timedelta(days=self.dice.below(420))
        self.dates = {
            "issue": start,
            "addendum 1": start + datetime.timedelta(days=30 + self.dice.below(8)),
            "addendum 2": start + datetime.timedelta(days=88 + self.dice.below(10)),
        }
        self.subjects = {}
        for name, spec in SUBJECTS.items():
            self.subjects[name] = dict(spec)
            if "vary" in spec:
                self.subjects[name]["base"] = round(spec["base"] + spec["vary"] * (self.dice.below(5) - 2), 4)
        # Rungs of the texts of each clause, oldest first.
        self.general = {name: [("general requirements", 1)] for name in GENERAL}
        self.own = {(kind, name): [("section", 1)] for kind in self.kinds for name in OWN[kind]}
        self.taken = set()
        self.register = []
        self.rfis = []

    def site(self):
        kinds = [self.kinds[index % 3] for index in range(self.count)]
        stories = list(STORIES["plain"])
        if self.with_register:
            stories += STORIES["deviations"]
        if self.addenda == 2:
            stories = [story for story in stories if story not in SHORTER] + STORIES["two addenda"]
        while len(stories) < self.count:
            stories.append(MORE[(len(stories) + self.count) % len(MORE)])
        stories = self.dice.shuffled(stories[: self.count])
        items = []
        for kind in self.kinds:
            for index in range(kinds.count(kind)):
                items.append({"tag": f"{kind}-{FIRST_TAGS[kind] + index}", "kind": kind})
        for item, story in zip(items, stories):
            item["story"] = story
        # Stories on clauses of sections first, as there are fewer of those.
        for item in sorted(items, key=lambda item: item["story"] in ("allowed", "refused", "exceeded", "clean")):
            self.tell(item)
        self.unused_changes()
        for item in items:
            self.equip(item)
        self.number_clauses()
        self.deviate(items)
        self.resubmit(items)
        site = {
            "kinds": self.kinds,
            "items": items,
            "subjects": self.subjects,
            "general": self.general,
            "own": self.own,
            "clauses": self.clauses,
            "fillers": self.fillers,
            "in_force": {kind: self.in_force(kind) for kind in self.kinds},
            "deviations": self.register,
            "rfis": self.rfis,
            "dates": self.dates,
            "addenda": self.addenda,
            "registered": self.with_register,
            "seed": self.dice.below(10**9),
        }
        self.outsiders(site)
        self.check(site)
        return site

    # Stories: which clause an item is about, how its texts differ, and how good the item is between them.

    def free(self, kind, names):
        return [name for name in names if (kind, name) not in self.taken and name not in NOT_FOR.get(kind, [])]

    def silent(self, kind):
        """General subjects on which nothing has been said yet."""
        names = [name for name in GENERAL if name != "weight" and (kind, name) not in self.own]
        return self.free(kind, [name for name in names if len(self.general[name]) == 1])

    def tell(self, item):
        kind, story, dice = item["kind"], item["story"], self.dice
        of_section = self.free(kind, [name for name in OWN[kind] if name != "flow"])
        between = dice.between(0.36, 0.64)
        item["subject"], item["quality"], item["fails"] = None, None, False

        def about(name, quality, fails, *texts):
            item["subject"], item["quality"], item["fails"] = name, quality, fails
            self.taken.add((kind, name))
            if texts:
                self.own.setdefault((kind, name), [])
                self.own[kind, name] += texts

        if story == "tightened":
            about(dice.pick(of_section), 1 + between, True, ("addendum 1", 2))
        elif story == "relaxed":
            about(dice.pick(of_section), between, False, ("addendum 1", 0))
        elif story == "tightened twice":
            about(dice.pick(of_section), 1 + between, True, ("addendum 1", 0), ("addendum 2", 2))
        elif story == "relaxed twice":
            about(dice.pick(of_section), between, False, ("addendum 1", 2), ("addendum 2", 0))
        elif story == "section strict":
            about(dice.pick(self.silent(kind)), 1 + between, True, ("section", 2))
        elif story == "section lenient":
            about(dice.pick(self.silent(kind)), between, False, ("section", 0))
        elif story == "clause deleted":
            strict = dice.chance(0.4)
            quality = 1 + between if strict else between
            rung = 2 if strict else 0
            about(dice.pick(self.silent(kind)), quality, not strict, ("section", rung), ("addendum 2", None))
        elif story == "general tightened":
            free = [name for name in self.silent(kind) if not any((other, name) in self.taken for other in self.kinds)]
            name = dice.pick(free)
            about(name, 1 + between, True)
            self.general[name].append(("addendum 1", 2))
        elif story == "general failed":
            about(dice.pick(self.silent(kind)), between, True)
        elif story == "section failed":
            about(dice.pick(self.free(kind, [n for n in of_section if n not in DUTY.values()])), between, True)
        elif story == "lapsed":
            names = [name for name in of_section if name in NEGOTIABLE]
            about(dice.pick(names), 0.45 + between / 5, True, ("addendum 2", dice.pick([1, 2])))
            if self.own[kind, item["subject"]][-1][1] == 1:
                # The same limit in new words would be no change, so the old one was another.
                self.own[kind, item["subject"]][0] = ("section", 2)
        elif story in ("allowed", "refused", "exceeded"):
            names = [name for name in self.free(kind, subjects_of(kind)) if name in NEGOTIABLE]
            if not self.untouched(kind, names):
                raise Retry
            about(dice.pick(self.untouched(kind, names)), 0.42 + between / 8, story != "allowed")
        elif story == "duty changed":
            about(dice.pick(self.free(kind, [DUTY[kind]])), None, dice.chance(0.5))
        elif story == "duty open":
            about(dice.pick(self.free(kind, [DUTY[kind]])), None, False)

    def untouched(self, kind, names):
        """Subjects whose text in force is the first one, on the usual rung."""
        return [
            name
            for name in names
            if ((kind, name) in self.own and self.own[kind, name] == [("section", 1)])
            or ((kind, name) not in self.own and len(self.general[name]) == 1)
        ]

    def unused_changes(self):
        """Clauses of sections on general subjects, and changes by addenda, on which no item depends."""
        for kind in self.kinds:
            for _ in range(2):
                name = self.dice.pick(self.silent(kind))
                self.own[kind, name] = [("section", self.dice.pick([0, 2]))]
                self.taken.add((kind, name))
        for source in [f"addendum {number + 1}" for number in range(self.addenda)]:
            kind = self.dice.pick(self.kinds)
            names = self.untouched(kind, [name for name in OWN[kind] if name != "flow"])
            names = self.free(kind, names)
            if names:
                name = self.dice.pick(names)
                self.own[kind, name].append((source, self.dice.pick([0, 2])))
                self.taken.add((kind, name))

    def rungs(self, kind, name):
        """Rungs of all texts that ever were, also of the general clause."""
        texts = self.own.get((kind, name), []) + self.general.get(name, [])
        return [rung for _, rung in texts if rung is not None]

    # Data sheets.

    def quality(self, item, name):
        """How good an item is: as its story says, else better than every text there ever was."""
        if item["subject"] == name and item["quality"] is not None:
            return item["quality"]
        best = max(self.rungs(item["kind"], name))
        return best + self.dice.between(0.42, 1.6 if name in ("flow", "head", "pressure", "capacity") else 0.85)

    def equip(self, item):
        """Data sheet and schedule row that belong together."""
        dice, kind = self.dice, item["kind"]
        want = {name: offered(self.subjects[name], self.quality(item, name)) for name in subjects_of(kind)}
        duty = {"duty_units": dice.pick([1, 1, 2, 2, 3]), "standby_units": 0 if kind == "AHU" else dice.pick([0, 1, 1])}
        raw = {name: want[name] for name in ("sound", "vibration", "ip", "warranty", "delivery")}
        scale = 1 + want[DUTY[kind]] / 100
        if kind != "CH":
            raw["ie"] = want["ie"]
            raw["motor"] = dice.pick(MOTORS_KW)
            raw["absorbed"] = raw["motor"] / (1 + want["motor"] / 100)
        if kind == "P":
            raw["efficiency"] = want["efficiency"]
            head = dice.between(16, 42)
            flow = raw["absorbed"] * want["efficiency"] / 100 / (WATER_KG_PER_M3 * GRAVITY * head) * 1e6
            duty["head_m"] = round(head / scale, 1)
            duty["flow_l_per_s"] = round(flow / (1 + want["flow"] / 100), 1)
            raw["head"] = duty["head_m"] * scale
            raw["flow"] = duty["flow_l_per_s"] * (1 + want["flow"] / 100)
            raw["absorbed"] = WATER_KG_PER_M3 * GRAVITY * raw["flow"] * raw["head"] / want["efficiency"] / 1e4
            duty["npsh_available_m"] = round(dice.between(4.5, 9), 1)
            raw["npsh"] = duty["npsh_available_m"] - want["npsh"]
            raw["speed"] = dice.pick(SPEEDS_RPM[want["speed"]])
            weight = 90 + 22 * raw["motor"] ** 0.9 * dice.between(0.85, 1.15)
        elif kind == "F":
            raw["efficiency"] = want["efficiency"]
            drive = dice.between(0.85, 0.92)
            flow = raw["absorbed"] / drive / want["sfp"] * 1000
            pressure = want["efficiency"] / 100 * drive * want["sfp"] * 1000
            duty["pressure_pa"] = float(round(pressure / scale / 5) * 5)
            duty["flow_l_per_s"] = float(round(flow / (1 + want["flow"] / 100) / 10) * 10)
            raw["pressure"] = duty["pressure_pa"] * scale
            raw["flow"] = duty["flow_l_per_s"] * (1 + want["flow"] / 100)
            raw["absorbed"] = raw["flow"] * raw["pressure"] / want["efficiency"] / 1e4
            raw["input"] = raw["flow"] * want["sfp"] / 1000
            raw["speed"] = dice.pick([960, 1180, 1465, 1720])
            weight = 120 + 30 * raw["motor"] ** 0.9 * dice.between(0.85, 1.15)
        elif kind == "AHU":
            flow = raw["absorbed"] / 0.88 / dice.between(1.5, 2.1) * 1000
            duty["pressure_pa"] = float(round(dice.between(250, 480) / 5) * 5)
            duty["flow_l_per_s"] = float(round(flow / (1 + want["flow"] / 100) / 10) * 10)
            raw["pressure"] = duty["pressure_pa"] * scale
            raw["flow"] = duty["flow_l_per_s"] * (1 + want["flow"] / 100)
            raw["coil_height"] = round((raw["flow"] * 620 / want["face"]) ** 0.5 / 5) * 5
            raw["coil_width"] = round(raw["flow"] * 1000 / want["face"] / raw["coil_height"] / 5) * 5
            raw["recovery"], raw["leakage"] = want["recovery"], want["leakage"]
            weight = 480 + 75 * raw["motor"] ** 0.9 * dice.between(0.85, 1.15)
        else:
            capacity = dice.between(280, 980)
            duty["capacity_kw"] = float(round(capacity / scale / 5) * 5)
            duty["flow_l_per_s"] = round(duty["capacity_kw"] / 4.19 / 6, 1)
            raw["flow"] = duty["flow_l_per_s"]
            raw["capacity"] = duty["capacity_kw"] * scale
            raw["absorbed"] = raw["capacity"] / want["cop"]
            raw["drop"], raw["turndown"] = want["drop"], want["turndown"]
            weight = raw["capacity"] * dice.between(6.5, 8.5)
        raw["weight"] = weight
        duty["weight_allowance_kg"] = float(round(weight / want["weight"] * 100 / 5) * 5)
        item["duty"] = duty
        item["schedule"] = dict(duty)
        item["raw"] = raw
        item["units"] = self.units(kind)
        item["submissions"] = [{"letter": "A", "sheet": self.printed(item, raw), "withdrawn": False}]
        item["counts"] = 0
        if item["story"] in ("duty changed", "duty open"):
            self.ask(item)

    def units(self, kind):
        """Units of a vendor's data sheet."""
        one = lambda name: self.dice.pick(FIELD_UNITS[name][self.mix - 1])
        power = one("power")
        return {
            "flow": one("water flow" if kind in ("P", "CH") else "air flow"),
            "head": one("head"),
            "pressure": one("pressure"),
            "motor": "kW",
            "absorbed": power,
            "input": power,
            "capacity": one("capacity"),
            "weight": one("weight"),
            "vibration": one("vibration"),
            "npsh": one("suction head"),
            "drop": one("drop"),
            "delivery": one("delivery"),
            "warranty": one("warranty"),
            "efficiency": "%",
            "recovery": "%",
            "turndown": "%",
            "sound": "dB(A)",
            "speed": "rpm",
            "coil_width": "mm",
            "coil_height": "mm",
            "ie": "",
            "ip": "",
            "leakage": "",
        }

    def printed(self, item, raw):
        """Every field as it is printed, and the value that the print has in the unit of the schedule."""
        sheet = {}
        for name, value in raw.items():
            unit = item["units"][name]
            factor, digits = UNITS[unit]
            if name == "motor":
                digits = 1
            shown = value / head_m(1, unit) if name == "head" else value / factor
            # Whole days of delivery are those of whole weeks.
            if name == "delivery":
                shown = round(value) / factor
            text = f"{shown:.{digits}f}"
            back = head_m(float(text), unit) if name == "head" else float(text) * factor
            sheet[name] = {"text": text, "unit": unit, "value": back}
        return sheet

    def ask(self, item):
        """A request for information about the duty; the schedule keeps the value it had."""
        dice, name = self.dice, DUTY[item["kind"]]
        key = {"head": "head_m", "pressure": "pressure_pa", "capacity": "capacity_kw"}[name]
        step = {"head": 0.1, "pressure": 5, "capacity": 5}[name]
        right = item["duty"][key]
        worse = 1 + dice.between(0.075, 0.11)
        if item["story"] == "duty open" or item["fails"]:
            other = round(round(right * worse / step) * step, 1)
        else:
            other = round(round(right * (worse + 0.03) / step) * step, 1)
        request = {"item": item["tag"], "key": key, "open": item["story"] == "duty open"}
        if item["story"] == "duty open":
            request |= {"old": right, "new": other}
        elif item["fails"]:
            request |= {"old": right, "new": other}
            item["duty"][key] = other
        else:
            request |= {"old": other, "new": right}
            item["schedule"][key] = other
        self.rfis.append(request)

    # Numbers of clauses.

    def number_clauses(self):
        """Clauses in order, with others between them that the review is not about."""
        dice = self.dice
        self.clauses, self.fillers = {}, {}
        for section in ["20"] + self.kinds:
            parts = [["duty", []], ["construction", []], ["other", []]]
            names = GENERAL if section == "20" else [n for n in subjects_of(section) if (section, n) in self.own]
            for name in names:
                if name in ("ie", "ip", "motor", "speed", "leakage", "face"):
                    parts[1][1].append(name)
                elif name in ("warranty", "delivery", "weight"):
                    parts[2][1].append(name)
                else:
                    parts[0][1].append(name)
            for at, (part, inside) in enumerate(parts):
                number = dice.below(1000)
                extra = 2 + number % 2
                entries = dice.shuffled(inside + [("filler", part, index) for index in range(extra)])
                for place, entry in enumerate(entries, 1):
                    clause = f"{SECTIONS.get(section, section)}.{at + 2}.{place}"
                    if isinstance(entry, tuple):
                        self.fillers[section, at, place] = (clause, part, entry[2], number)
                    else:
                        self.clauses[section, entry] = clause

    def in_force(self, kind):
        """The text that counts on each subject."""
        texts = {}
        for name in subjects_of(kind):
            own = self.own.get((kind, name))
            if own and own[-1][1] is not None:
                source, rung = own[-1]
                clause = self.clauses[kind, name]
            else:
                source, rung = self.general[name][-1]
                clause = self.clauses["20", name]
            texts[name] = {"clause": clause, "source": source, "limit": limit(self.subjects[name], rung)}
        return texts

    # Deviations.

    def deviate(self, items):
        if not self.with_register:
            return
        dice = self.dice
        after = self.dates[f"addendum {self.addenda}"]
        entries, kept = [], False
        for item in items:
            story, kind, name = item["story"], item["kind"], item["subject"]
            if story not in ("allowed", "refused", "exceeded", "lapsed"):
                continue
            text = self.in_force(kind)[name]
            shift = 0.26 if story == "exceeded" else -0.26
            bound = round(offered(self.subjects[name], item["quality"] + shift), SUBJECTS[name]["digits"])
            # One of those that hold was given before the last addendum, which leaves its clause alone.
            early = story == "lapsed" or (story == "allowed" and self.addenda == 2 and not kept)
            kept = kept or story == "allowed"
            if early:
                decided = self.dates["addendum 1"] + datetime.timedelta(days=22 + dice.below(18))
            else:
                decided = after + datetime.timedelta(days=14 + dice.below(12))
            fate = dice.pick(["refused", "revoked", "pending"]) if story == "refused" else "accepted"
            entries.append(
                {
                    "item": item["tag"],
                    "kind": kind,
                    "subject": name,
                    "clause": text["clause"],
                    "bound": bound,
                    "fate": fate,
                    "decided": decided,
                    "valid": fate == "accepted" and story != "lapsed",
                }
            )
        # Accepted for other items that turn out not to need them, on the clauses where the real ones fail.
        for entry in [entry for entry in entries if not entry["valid"]][:2]:
            others = [
                item
                for item in items
                if item["kind"] == entry["kind"] and item["tag"] != entry["item"] and item["story"] not in ("lapsed",)
            ]
            if others:
                item = dice.pick(others)
                bound = round(offered(self.subjects[entry["subject"]], 0.1), SUBJECTS[entry["subject"]]["digits"])
                decided = after + datetime.timedelta(days=12 + dice.below(12))
                changed = {"item": item["tag"], "bound": bound, "fate": "accepted", "valid": True, "decided": decided}
                entries.append(entry | changed)
        for number, entry in enumerate(dice.shuffled(entries), 1):
            entry["number"] = f"DEV-{number:02d}"
            self.register.append(entry)

    # Resubmittals.

    def resubmit(self, items):
        """Further submissions, so that taking the wrong one gives another verdict."""
        for item in items:
            item["dated"] = [self.dates[f"addendum {self.addenda}"] - datetime.timedelta(days=30 - self.dice.below(10))]
        if not self.resubmittals:
            return
        dice = self.dice
        fine = [item for item in items if not item["fails"]]
        bad = [item for item in items if item["fails"] and item["subject"] in PLAIN and item["quality"] is not None]
        chosen = [(dice.pick(bad), "worsened")]
        for index, item in enumerate(dice.shuffled(fine)[: self.resubmittals - 1]):
            chosen.append((item, "withdrawn" if index % 2 == 0 else "improved"))
        if len(chosen) < self.resubmittals:
            raise Retry
        for item, how in chosen:
            kind = item["kind"]
            names = [name for name in self.free(kind, PLAIN) if name in subjects_of(kind)]
            raw = dict(item["raw"])
            if how == "worsened":
                name = item["subject"]
                value = offered(self.subjects[name], max(self.rungs(kind, name)) + 0.6)
            else:
                name = dice.pick([n for n in names if min(self.rungs(kind, n)) >= 1])
                value = offered(self.subjects[name], min(self.rungs(kind, name)) - dice.between(0.5, 0.8))
            raw[name] = value
            # Another selection: another impeller or coil, so power and weight are others as well.
            factor = dice.pick([dice.between(0.955, 0.975), dice.between(1.02, 1.035)])
            raw["absorbed"] *= factor
            raw["weight"] *= dice.between(0.9, 0.97)
            if "efficiency" in raw:
                raw["efficiency"] /= factor
            if "input" in raw:
                raw["input"] *= factor
            other = {"sheet": self.printed(item, raw), "withdrawn": how == "withdrawn"}
            counting = item["submissions"][0]
            item["submissions"] = [counting, other] if how == "withdrawn" else [other, counting]
            item["counts"] = 0 if how == "withdrawn" else 1
            for letter, submission in zip("AB", item["submissions"]):
                submission["letter"] = letter
            item["dated"].append(self.dates["addendum 2"] + datetime.timedelta(days=10 + dice.below(15)))

    def outsiders(self, site):
        """Rows of the schedule that are not reviewed; what others supply has a submittal all the same."""
        dice = self.dice
        site["outsiders"] = []
        reasons = ["deleted", "existing", "by others"]
        for index, kind in enumerate(self.kinds):
            like = dice.pick([item for item in site["items"] if item["kind"] == kind])
            tag = f"{kind}-{FIRST_TAGS[kind] + sum(item['kind'] == kind for item in site['items'])}"
            site["outsiders"].append({"tag": tag, "kind": kind, "like": like, "status": reasons[index]})
        raw = dict(like["raw"])
        raw["absorbed"] *= dice.between(0.94, 0.97)
        raw["weight"] *= dice.between(0.95, 0.99)
        raw["sound"] += dice.between(-2, 2)
        site["stray"] = {
            "tag": tag,
            "kind": kind,
            "submissions": [{"letter": "A", "sheet": self.printed(like, raw), "withdrawn": False}],
            "dated": [like["dated"][0] + datetime.timedelta(days=dice.below(6))],
        }

    # A project is taken only if nothing is near an edge and every item ends as its story says.

    def check(self, site):
        accepted = {kind: 0 for kind in self.kinds}
        for item in site["items"]:
            kind = item["kind"]
            sheet = item["submissions"][item["counts"]]["sheet"]
            found = figures(kind, sheet, item["duty"])
            failed, covered = [], []
            for name, text in site["in_force"][kind].items():
                bounds = [entry for entry in self.register if entry["item"] == item["tag"] and entry["subject"] == name]
                near = [text["limit"]] + [entry["bound"] for entry in bounds]
                if any(too_near(name, found[name], bound) for bound in near):
                    raise Retry
                if meets(name, found[name], text["limit"]):
                    continue
                held = [e for e in bounds if e["valid"] and meets(name, found[name], e["bound"])]
                (covered if held else failed).append(name)
            expected = [item["subject"]] if item["fails"] else []
            if failed != expected or covered != ([item["subject"]] if item["story"] == "allowed" else []):
                raise Retry
            accepted[kind] += not failed
        if accepted["P"] < 2 or accepted["F"] < 1:
            raise Retry
