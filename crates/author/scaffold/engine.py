"""Simply supported beam under a uniform load, elastic theory."""


def compute(span_m, load_kn_per_m, elastic_modulus_gpa, second_moment_cm4):
    if span_m <= 0 or second_moment_cm4 <= 0:
        raise ValueError("span and second moment of area must be above 0")
    stiffness_kn_m2 = elastic_modulus_gpa * 1e6 * second_moment_cm4 * 1e-8
    deflection_m = 5 * load_kn_per_m * span_m**4 / (384 * stiffness_kn_m2)
    return {
        "reaction_kn": load_kn_per_m * span_m / 2,
        "moment_kn_m": load_kn_per_m * span_m**2 / 8,
        "deflection_mm": deflection_m * 1000,
        "span_to_deflection": span_m / deflection_m,
        "end_rotation_mrad": load_kn_per_m * span_m**3 / (24 * stiffness_kn_m2) * 1000,
    }
