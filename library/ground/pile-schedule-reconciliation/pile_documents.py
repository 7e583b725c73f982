"""Prints a piling site as the documents that its parties would write."""

from pile_site import BACKFILL_MIX, LEAST_RATIO, PILE_MIX, Dice

MONTHS = (
    "January February March April May June July August September October November December".split()
)
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
FOREMEN = ["K. Brandt", "T. Okafor", "M. Silva", "J. Hale", "R. Novak"]
WEATHER = ["dry, light wind", "showers until noon", "overcast", "dry and cold", "heavy rain from 15:00", "fog"]
REMARKS = [
    "cage in without trouble",
    "casing 4 m - pulled after the pour",
    "some water at 7 m",
    "stiff layer at 9 m - slow progress",
    "tremie used",
    "cage spacers added",
    "base cleaned twice",
]
REASONS = {
    "delete": [
        "The load of this cap has been reduced and the remaining piles carry it.",
        "The lift pit has been moved and the pile would stand in its sump.",
        "The cap has been redesigned with one pile less.",
    ],
    "relocate": [
        "The position clashes with an existing culvert.",
        "A disused duct bank was found in the trial pit.",
        "The column line has been adjusted by the architect.",
    ],
    "toe": [
        "The last borehole found the sand deeper than assumed.",
        "The weathered layer is thicker here than the ground model says.",
    ],
    "add": [
        "The caps concerned are extended; revised cap drawings follow.",
        "The additional piles carry the plant loads of the revised roof.",
    ],
    "query": [
        "The contractor's proposal to move pile {pile} by 300 mm to the north is not agreed; nothing changes.",
        "The contractor asked whether pile {pile} may end 1 m higher. It may not; the schedule stands for this pile.",
    ],
}


def long_date(date):
    return f"{date.day} {MONTHS[date.month - 1]} {date.year}"


def number_of(pile):
    return int(pile[1:])


def schedule(site):
    lines = ["rev,issued,pile,type,cap,diameter_mm,easting_m,northing_m,cut_off_m,toe_m,status"]
    for row in site.rows:
        lines.append(
            f"{row['rev']},{row['issued'].isoformat()},{row['pile']},{row['type']},{row['cap']},{row['diameter_mm']},"
            f"{row['easting_m']:.3f},{row['northing_m']:.3f},{row['cut_off_m']:.2f},{row['toe_m']:.2f},{row['status']}"
        )
    return "\n".join(lines) + "\n"


def specification(site):
    limits = site.limits
    return f"""# Particular specification - bored cast-in-place piles

## 1 General

1.1 The works comprise the rotary bored piles of the pile schedule. Preliminary trial piles (TP) are paid for separately
and are not part of the schedule.

1.2 Levels (RL) and coordinates in the schedule are on the site datum and the site grid. The as-built survey is
delivered on the national grid and datum; the setting-out note ties the two together.

1.3 The pile schedule is revised by re-issue of the rows concerned. Between revisions the engineer changes it by
numbered instructions (EI). Instructions are listed in the document register.

## 2 Materials

2.1 Pile concrete is mix {PILE_MIX}, characteristic cylinder strength 40 MPa, slump 180 mm to 220 mm, aggregate 14 mm.

2.2 Mix {BACKFILL_MIX} (lean mix) is used to backfill bores that are given up. It is not pile concrete.

2.3 Concrete older than two hours or outside the slump range is rejected at the gate and taken away.

2.4 Reinforcement cages are to have 75 mm cover, with at least three rows of spacers in each 4 m.

## 3 Boring

3.1 Piles within three diameters of a pile that has been concreted less than 24 hours before shall not be bored.

3.2 Bored depths are measured from the piling platform. The rig's daily record states the level of the platform.

3.3 A bore that cannot be completed is recorded as abandoned, backfilled and, if the engineer so decides, bored again.

3.4 A pile that is found faulty may be drilled out and bored again under the same number. The first bore is then
of no further account.

## 4 Records

4.1 For each bore the rig's record states date, pile, diameter, bored depth and top of the concrete as cast.

4.2 Concrete is recorded by docket. Volumes are as batched; what goes back in the truck is noted as returned.

## 5 Tolerances

5.1 The bored diameter shall be the scheduled one.

5.2 The horizontal distance between the as-built and the design position, at cut-off level, shall not exceed

- {limits['first_bearing_mm']} mm for bearing piles,
- {limits['wall_mm']} mm for wall piles.

5.3 The as-built cut-off level shall not differ from the design by more than {limits['level_mm']} mm, up or down.

5.4 The inclination shall not exceed 1 in 75. It is checked by the contractor and is not part of this review.

5.5 The as-built length, from the as-built cut-off level to the toe, shall not be less than the design length by
more than {limits['length_m']:.2f} m. The design length is the difference of the scheduled cut-off and toe levels.

## 6 Concreting

6.1 Concrete is placed in one operation, to between 0.3 m and 0.8 m above the cut-off level.

6.2 The overbreak ratio is the concrete placed divided by the theoretical volume, which is that of a cylinder of the
bored diameter from the toe to the top of the concrete as cast.

6.3 The overbreak ratio shall not be less than {LEAST_RATIO:.2f} and not more than {limits['first_most_ratio']:.2f}.

## 7 Integrity tests

7.1 Every pile is tested by the low-strain method, not earlier than four days after casting.

7.2 Results are classed: A sound; B minor deviation, acceptable; C anomaly; D defect; V no valid signal. Classes A and B
are accepted. Classes C and D are a failure. Class V is no result.

7.3 A valid retest supersedes the earlier result, whichever way it goes.

7.4 The engineer may accept a failed pile by an instruction.
"""


def addenda(site):
    limits = site.limits
    two = limits["second_bearing_mm"] != limits["bearing_mm"]
    position = limits["second_bearing_mm"] if two else limits["bearing_mm"]
    text = f"""# Addenda to the particular specification

An addendum replaces what it names. A later addendum prevails over an earlier one.

## Addendum 1

Issued {long_date(site.day(-24))}, after the tender queries 11 to 19.

- Clause 5.2: the position tolerance of bearing piles is changed to {position} mm. Wall piles are not affected.
- Clause 2.1: the slump range becomes 190 mm to 230 mm.
"""
    change = (
        f"- Clause 6.3: the upper limit of the overbreak ratio is changed to {limits['most_ratio']:.2f}. "
        "The lower limit stays.\n"
    )
    if not two:
        return text + change
    return f"""{text}
## Addendum 2

Issued {long_date(site.day(-6))}, after the review of the trial piles.

- Clause 5.2: the position tolerance of bearing piles is changed once more, to {limits['bearing_mm']} mm.
  Addendum 1 is void in this point.
{change}- Clause 7.1: the four days become three days for piles of 750 mm diameter and less.
"""


def pile_table(piles):
    lines = [
        "| pile | type | cap | diameter (mm) | E (m) | N (m) | cut-off RL (m) | toe RL (m) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for pile in piles:
        lines.append(
            f"| {pile['pile']} | {pile['type']} | {pile['cap']} | {pile['diameter_mm']} | {pile['easting_m']:.3f} "
            f"| {pile['northing_m']:.3f} | {pile['cut_off_m']:.2f} | {pile['toe_m']:.2f} |"
        )
    return "\n".join(lines)


def item_text(item, dice):
    action = item["action"]
    reason = dice.pick(REASONS[action]) if action in REASONS else ""
    if action == "delete":
        if item.get("failed"):
            reason = "It failed its integrity test and is replaced by the two piles of another item."
        return dice.pick(["Pile {} is deleted. ", "Delete pile {}. "]).format(item["pile"]) + reason
    if action == "relocate":
        if item["relative"]:
            east = f"{abs(item['east_m']):.2f} m {'east' if item['east_m'] > 0 else 'west'}"
            north = f"{abs(item['north_m']):.2f} m {'north' if item['north_m'] > 0 else 'south'}"
            return f"Pile {item['pile']} is moved {east} and {north} from its present design position. {reason}"
        return (
            f"Pile {item['pile']} is relocated to E {item['easting_m']:.3f} m, N {item['northing_m']:.3f} m "
            f"on the site grid. {reason}"
        )
    if action == "toe":
        names = " and ".join(item["names"])
        words = f"piles {names}" if len(item["names"]) > 1 else f"pile {names}"
        return f"The toe level of {words} is changed to RL {item['toe_m']:.2f} m. {reason}"
    if action == "add":
        if item.get("failed"):
            reason = "They stand near the pile that failed and carry its load."
        return f"Add the following piles. {reason}\n\n{pile_table(item['piles'])}\n"
    if action == "cancel":
        return f"Item {item['item']} of {item['of']} is cancelled, as if it had not been issued."
    if action == "accept":
        return (
            f"The result of test {item['test']} on pile {item['pile']} is accepted; the pile is taken as it is. "
            "The assessment of the pile designer is on file."
        )
    return reason.format(pile=item["pile"])


def instruction(entry, dice):
    opening = dice.pick(
        [
            "Under the conditions of contract you are instructed as follows.",
            "The following changes to the piling works are instructed herewith.",
            "Please carry out the works with the changes below; costs are agreed separately.",
        ]
    )
    background = dice.pick(
        [
            "This instruction was discussed in the weekly site meeting, with the pile designer present.",
            "This instruction follows from the designer's review of the records up to this week.",
            "This instruction answers the contractor's technical queries of last week as far as they concern piles.",
            "This instruction confirms what was said on site; nothing said on site and not written here is instructed.",
        ]
    )
    items = "\n".join(f"{number}. {item_text(item, dice)}" for number, item in enumerate(entry["items"], 1))
    return f"""# Engineer's instruction {entry['number']}

Date of issue: {long_date(entry['date'])}
To: piling contractor
Copies: site office, surveyor, pile designer

{opening} {background} What is not named here stays as it is. Positions and levels are on the site grid and datum.

{items}

Acknowledge receipt within two working days. Drawings are updated with the next revision of the schedule.
"""


def rig_one(bores, dice):
    lines = ["date,pile,diameter_mm,platform_rl_m,bored_depth_m,concrete_top_depth_m,start,outcome,remarks"]
    hour = 7
    for bore in bores:
        top = f"{bore['top']:.2f}" if bore["outcome"] == "complete" else ""
        remark = dice.pick(REMARKS) if dice.chance(0.5) else ""
        if bore["outcome"] == "abandoned":
            remark = "obstruction - backfilled with lean mix"
        elif bore["outcome"] == "probe":
            remark = "probe bore for old foundations - backfilled with arisings"
        lines.append(
            f"{bore['date'].isoformat()},{bore['pile']},{bore['diameter_mm']},{bore['platform_m']:.3f},"
            f"{bore['depth']:.2f},{top},{hour:02d}:{10 * dice.below(6):02d},{bore['outcome']},{remark}"
        )
        hour = 7 + (hour - 4) % 10
    return "\n".join(lines) + "\n"


def rig_two(bores, dice, part):
    """Daily sheets in words; this foreman notes the level of the concrete instead of its depth."""
    lines = [f"RIG 2 - DAILY PILING RECORDS{part}", ""]
    lines += ["Depths in metres below the platform of the day. Levels RL, site datum.", ""]
    sheet = 0
    date = None
    foreman = dice.pick(FOREMEN)
    for bore in bores:
        if bore["date"] != date:
            date = bore["date"]
            sheet += 1
            lines += [
                "-" * 72,
                f"Sheet {sheet}   {DAYS[date.weekday()]} {long_date(date)}   foreman {foreman}   "
                f"weather: {dice.pick(WEATHER)}",
                f"Platform RL {bore['platform_m']:.3f}",
                "",
            ]
        depth = bore["depth"]
        fill, clay = round(1.2 + dice.between(0, 1.4), 1), round(depth * dice.between(0.45, 0.7), 1)
        lines.append(f"  Pile {number_of(bore['pile'])}   auger {bore['diameter_mm']} mm")
        lines.append(f"    ground: fill to {fill} m, clay to {max(clay, fill + 0.5):.1f} m, dense sand below")
        if bore["outcome"] == "abandoned":
            lines.append(f"    bored to {depth:.2f} m; boulder, no progress with the core barrel")
            lines.append("    result: ABANDONED, filled with lean mix the same day")
        else:
            lines.append(f"    bored to {depth:.2f} m; cage set; concrete cast to RL {bore['top_level']:.2f}")
            lines.append(f"    result: complete; {dice.pick(REMARKS)}")
        lines.append("")
    return "\n".join(lines)


def rig_three(bores, site):
    """The depth counter of this rig reads in feet."""
    first, later = site.platforms[2], round(site.platforms[2] - 0.45, 3)
    unit = "ft" if bores[0]["unit_m"] != 1 else "m"
    lines = [
        "RIG 3  BORE LOG  (printout of the rig computer)",
        f"counter unit: {unit}, depths below platform   (1 ft = 0.3048 m)" if unit == "ft" else "counter unit: m",
        "dates: dd/mm/yy",
        f"platform RL {first:.3f} m up to and including {site.day(site.relevelled_day - 1):%d/%m/%y}",
        f"platform RL {later:.3f} m from {site.day(site.relevelled_day):%d/%m/%y} (re-levelled)",
        "codes: C = cast, X = abandoned",
        "",
        "date     | pile  | tool mm | bored | conc. top | code | note",
    ]
    dice = Dice(site.params["schedule_seed"] + 3)
    for bore in bores:
        top = f"{bore['top']:.1f}" if bore["outcome"] == "complete" else "-"
        code = "C" if bore["outcome"] == "complete" else "X"
        note = (dice.pick(REMARKS) if dice.chance(0.4) else "") if code == "C" else "sheet pile hit, lean mix fill"
        lines.append(
            f"{bore['date']:%d/%m/%y} | P-{number_of(bore['pile']):<3} | {bore['diameter_mm']:>7} "
            f"| {bore['depth']:>5.1f} | {top:>9} | {code:<4} | {note}".rstrip()
        )
    return "\n".join(lines) + "\n"


def dockets(site):
    lines = ["docket,date,pile,mix,volume,returned,unit,remark"]
    for docket in site.dockets:
        places = 0 if docket["unit"] == "L" else 1
        pile = docket["pile"] if docket["rig"] < 3 else f"P{number_of(docket['pile'])}"
        lines.append(
            f"{docket['number']},{docket['date'].isoformat()},{pile},{docket['mix']},{docket['volume']:.{places}f},"
            f"{docket['returned']:.{places}f},{docket['unit']},{docket['remark']}"
        )
    return "\n".join(lines) + "\n"


def survey(site):
    lines = ["date,pile,kind,national_easting_m,national_northing_m,national_level_m,remark"]
    for reading in site.surveys:
        lines.append(
            f"{reading['date'].isoformat()},{reading['pile']},{reading['kind']},{reading['east']:.3f},"
            f"{reading['north']:.3f},{reading['level']:.3f},{reading['remark']}"
        )
    return "\n".join(lines) + "\n"


def setting_out(site):
    control = site.control
    (e_site, n_site, rl_site), (e_nat, n_nat, rl_nat) = control["site"], control["national"]
    turn = control["rotation_deg"]
    grids = (
        f"The site grid is turned against the national grid by t = {turn:.2f} degrees."
        if turn
        else "The site grid is parallel to the national grid (t = 0.00 degrees)."
    )
    return f"""# Setting-out note

Control station ST1 is known in both systems and is used for the whole site.

| system | easting (m) | northing (m) | level (m) |
|---|---|---|---|
| site grid and datum | {e_site:.3f} | {n_site:.3f} | {rl_site:.3f} |
| national grid and datum | {e_nat:.3f} | {n_nat:.3f} | {rl_nat:.3f} |

{grids} Scale is 1. With dE and dN the national coordinates of a point less those of ST1, its site coordinates are

- easting = easting of ST1 + dE cos t + dN sin t
- northing = northing of ST1 - dE sin t + dN cos t

Levels differ by the same amount everywhere. Pile heads are shot at the centre, at the cut-off level after trimming.
Pegs are shot on top of the peg, which says nothing about a pile.
"""


def integrity(site):
    lines = ["test,date,pile,method,class,remark"]
    for test in site.tests:
        lines.append(
            f"{test['number']},{test['date'].isoformat()},{test['pile']},low strain,{test['class']},{test['remark']}"
        )
    return "\n".join(lines) + "\n"


def documents(site):
    """All files by their paths, the register last, as it lists the others."""
    dice = Dice(site.params["schedule_seed"] + 1)
    last = site.day(site.last_day + 28)
    files = {}
    entries = []

    def add(path, title, date, text, status="issued", remark=""):
        files[path] = text
        entries.append(f"{len(entries) + 1:02d},{path},{title},{date.isoformat()},{status},{remark}")

    add("design/pile-schedule.csv", "pile schedule with all revisions", site.rows[-1]["issued"], schedule(site))
    add("design/specification.md", "particular specification for piling", site.day(-40), specification(site))
    if site.limits["first_bearing_mm"] != site.limits["bearing_mm"]:
        add("design/addenda.md", "addenda to the specification", site.day(-6), addenda(site))
    for entry in site.instructions:
        path = f"instructions/{entry['number']}.md"
        title = f"engineer's instruction {entry['number']}"
        remark = "withdrawn in full by the engineer's letter" if entry["status"] == "withdrawn" else ""
        add(path, title, entry["date"], instruction(entry, dice), entry["status"], remark)
    of_rig = {rig: [bore for bore in site.bores if bore["rig"] == rig] for rig in (1, 2, 3)}
    add("rig-logs/rig-1.csv", "rig 1 bore list", last, rig_one(of_rig[1], dice))
    if of_rig[2] and site.params["rigs"] == 2:
        add("rig-logs/rig-2.txt", "rig 2 daily records", last, rig_two(of_rig[2], dice, ""))
    elif of_rig[2]:
        early = [bore for bore in of_rig[2] if bore["day"] < 6]
        late = [bore for bore in of_rig[2] if bore["day"] >= 6]
        add("rig-logs/rig-2-week-1.txt", "rig 2 daily records week 1", last, rig_two(early, dice, ", FIRST WEEK"))
        text = rig_two(late, dice, ", AFTER THE FIRST WEEK")
        add("rig-logs/rig-2-later.txt", "rig 2 daily records after week 1", last, text)
    if of_rig[3]:
        add("rig-logs/rig-3.txt", "rig 3 bore log", last, rig_three(of_rig[3], site))
    add("concrete/dockets.csv", "concrete delivery dockets", last, dockets(site))
    add("survey/as-built.csv", "as-built survey of pile heads", last, survey(site))
    add("survey/setting-out.md", "setting-out note", site.day(-20), setting_out(site))
    add("integrity/tests.csv", "integrity tests", last, integrity(site))
    register = ["no,file,title,date,status,remark", *entries]
    files["document-register.csv"] = "\n".join(register) + "\n"
    return files
