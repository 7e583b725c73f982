"""Armour sizing by the Hudson formula, with layer thickness and placing density of the Shore Protection Manual (1984)."""


def compute(
    design_wave_height_m,
    armour_density_kg_per_m3,
    water_density_kg_per_m3,
    stability_coefficient,
    slope_cot,
    layers,
    layer_coefficient,
    porosity_percent,
    crest_units,
    area_m2,
):
    if min(design_wave_height_m, stability_coefficient, slope_cot, layer_coefficient, area_m2) <= 0:
        raise ValueError("wave height, coefficients, slope and area must be positive")
    if armour_density_kg_per_m3 <= water_density_kg_per_m3:
        raise ValueError("armour must be denser than water")
    if not 0 <= porosity_percent < 100:
        raise ValueError("porosity must be below 100 per cent")
    buoyant = armour_density_kg_per_m3 / water_density_kg_per_m3 - 1
    mass = armour_density_kg_per_m3 * design_wave_height_m**3 / (stability_coefficient * buoyant**3 * slope_cot)
    diameter = (mass / armour_density_kg_per_m3) ** (1 / 3)
    thickness = layers * layer_coefficient * diameter
    solid = 1 - porosity_percent / 100
    per_area = layers * layer_coefficient * solid / diameter**2
    count = per_area * area_m2
    return {
        "relative_buoyant_density": buoyant,
        "unit_mass_t": mass / 1000,
        "unit_weight_kn": mass * 9.81 / 1000,
        "nominal_diameter_m": diameter,
        "stability_number": design_wave_height_m / (buoyant * diameter),
        "layer_thickness_m": thickness,
        "crest_width_m": crest_units * layer_coefficient * diameter,
        "units_per_100_m2": 100 * per_area,
        "armour_units": count,
        "armour_mass_t": count * mass / 1000,
        "placed_volume_m3": thickness * area_m2,
    }
