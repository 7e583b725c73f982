"""Combinations of actions of EN 1990 (6.10, 6.10a/b and the three serviceability ones) for a simply supported roof beam."""

GAMMA_G = 1.35
GAMMA_G_FAVOURABLE = 1.0
GAMMA_Q = 1.5
XI = 0.85


def compute(
    span_m,
    permanent_kn_per_m,
    post_load_kn,
    imposed_kn_per_m,
    snow_kn_per_m,
    uplift_kn_per_m,
    psi0_imposed,
    psi1_imposed,
    psi2_imposed,
    psi0_snow,
    psi1_snow,
    psi2_snow,
):
    if min(span_m, permanent_kn_per_m, imposed_kn_per_m, snow_kn_per_m) <= 0 or post_load_kn < 0:
        raise ValueError("span and loads must be positive")
    if not (psi2_imposed <= psi1_imposed <= psi0_imposed and psi2_snow <= psi1_snow <= psi0_snow):
        raise ValueError("combination factors must not increase from psi0 to psi2")

    def effects(on_permanent, on_imposed, on_snow):
        udl = on_permanent * permanent_kn_per_m + on_imposed * imposed_kn_per_m + on_snow * snow_kn_per_m
        post = on_permanent * post_load_kn
        return udl * span_m**2 / 8 + post * span_m / 4, udl * span_m / 2 + post / 2

    imposed_leads = effects(GAMMA_G, GAMMA_Q, GAMMA_Q * psi0_snow)
    snow_leads = effects(GAMMA_G, GAMMA_Q * psi0_imposed, GAMMA_Q)
    a = effects(GAMMA_G, GAMMA_Q * psi0_imposed, GAMMA_Q * psi0_snow)
    b_imposed = effects(XI * GAMMA_G, GAMMA_Q, GAMMA_Q * psi0_snow)
    b_snow = effects(XI * GAMMA_G, GAMMA_Q * psi0_imposed, GAMMA_Q)
    b_moment = max(b_imposed[0], b_snow[0])
    b_shear = max(b_imposed[1], b_snow[1])
    characteristic = max(effects(1, 1, psi0_snow)[0], effects(1, psi0_imposed, 1)[0])
    frequent = max(effects(1, psi1_imposed, psi2_snow)[0], effects(1, psi2_imposed, psi1_snow)[0])
    least = (GAMMA_G_FAVOURABLE * permanent_kn_per_m - GAMMA_Q * uplift_kn_per_m) * span_m / 2
    least += GAMMA_G_FAVOURABLE * post_load_kn / 2
    return {
        "moment_imposed_leading_kn_m": imposed_leads[0],
        "moment_snow_leading_kn_m": snow_leads[0],
        "design_shear_kn": max(imposed_leads[1], snow_leads[1]),
        "characteristic_moment_kn_m": characteristic,
        "frequent_moment_kn_m": frequent,
        "quasi_permanent_moment_kn_m": effects(1, psi2_imposed, psi2_snow)[0],
        "least_reaction_kn": least,
        "moment_610a_kn_m": a[0],
        "moment_610b_kn_m": b_moment,
        "shear_610ab_kn": max(a[1], b_shear),
        "saving_percent": 100 * (1 - max(a[0], b_moment) / max(imposed_leads[0], snow_leads[0])),
        "leading_action": "imposed" if imposed_leads[0] >= snow_leads[0] else "snow",
    }
