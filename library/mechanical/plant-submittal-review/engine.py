"""Review of vendors' submittals for plant against a specification with addenda, deviations and resubmittals."""

import plant_project
import plant_wording
from plant_subjects import figures, meets


def verdict(plant, item, sheet):
    """Clauses that a data sheet does not meet: those that a deviation covers, and the rest."""
    duty = item["duty"]
    found = figures(item["kind"], sheet, duty)
    covered, failed = [], []
    for subject, text in plant["in_force"][item["kind"]].items():
        if meets(subject, found[subject], text["limit"]):
            continue
        numbers = [
            entry["number"]
            for entry in plant["deviations"]
            if entry["valid"]
            and entry["item"] == item["tag"]
            and entry["clause"] == text["clause"]
            and meets(subject, found[subject], entry["bound"])
        ]
        if numbers:
            covered.append((subject, numbers[0]))
        else:
            failed.append((subject, text))
    return found, covered, failed


def compute(project_seed, items, plant, addenda, deviations, resubmittals, unit_mix):
    site = plant_project.draw(project_seed, items, plant, addenda, deviations, resubmittals, unit_mix)
    return answers(site)


def answers(site):
    statuses, rejected, used, resubmitted = [], [], [], []
    power = 0.0
    heads, suctions, weights, fan_powers = [], [], [], []
    for item in site["items"]:
        counting = item["submissions"][item["counts"]]
        sheet = counting["sheet"]
        found, covered, failed = verdict(site, item, sheet)
        if len(item["submissions"]) > 1:
            resubmitted.append({"item": item["tag"], "submission": counting["letter"]})
        if failed:
            if len(failed) > 1:
                raise ValueError(f"{item['tag']} fails more than one clause")
            text = failed[0][1]
            statuses.append({"item": item["tag"], "status": "rejected"})
            rejected.append({"item": item["tag"], "clause": text["clause"], "source": text["source"]})
            continue
        statuses.append({"item": item["tag"], "status": "accepted with deviation" if covered else "compliant"})
        used += [number for _, number in covered]
        power += sheet["absorbed"]["value"] * item["duty"]["duty_units"]
        weights.append(sheet["weight"]["value"])
        if item["kind"] == "P":
            heads.append(found["head"])
            suctions.append(found["npsh"])
        if item["kind"] == "F":
            fan_powers.append(found["sfp"])
    return {
        "items_reviewed": len(site["items"]),
        "item_status": statuses,
        "rejected_items": rejected,
        "total_absorbed_power_kw": power,
        "least_head_margin_percent": min(heads),
        "heaviest_operating_weight_kg": max(weights),
        "least_npsh_margin_m": min(suctions),
        "greatest_specific_fan_power_w_s_per_l": max(fan_powers),
        "deviations_relied_on": sorted(used),
        "counting_submissions": resubmitted,
    }


def build_sources(params):
    return plant_wording.files(plant_project.draw(**params))
