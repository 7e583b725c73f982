"""Section tables of the calculation: rolled H-sections and square hollow sections, as makers' catalogues print them."""

# h, b, tw, tf in mm; A in cm2; mass in kg/m; second moments of area Iy and Iz in cm4.
H_SECTIONS = {
    "HEA 160": (152, 160, 6, 9, 38.8, 30.4, 1673, 615.6),
    "HEA 180": (171, 180, 6, 9.5, 45.3, 35.5, 2510, 924.6),
    "HEA 200": (190, 200, 6.5, 10, 53.8, 42.3, 3692, 1336),
    "HEA 220": (210, 220, 7, 11, 64.3, 50.5, 5410, 1955),
    "HEA 240": (230, 240, 7.5, 12, 76.8, 60.3, 7763, 2769),
    "HEA 260": (250, 260, 7.5, 12.5, 86.8, 68.2, 10450, 3668),
    "HEA 280": (270, 280, 8, 13, 97.3, 76.4, 13670, 4763),
    "HEA 300": (290, 300, 8.5, 14, 112.5, 88.3, 18260, 6310),
    "HEA 320": (310, 300, 9, 15.5, 124.4, 97.6, 22930, 6985),
    "HEA 400": (390, 300, 11, 19, 159, 125, 45070, 8564),
    "HEB 160": (160, 160, 8, 13, 54.3, 42.6, 2492, 889.2),
    "HEB 180": (180, 180, 8.5, 14, 65.3, 51.2, 3831, 1363),
    "HEB 200": (200, 200, 9, 15, 78.1, 61.3, 5696, 2003),
    "HEB 220": (220, 220, 9.5, 16, 91, 71.5, 8091, 2843),
    "HEB 240": (240, 240, 10, 17, 106, 83.2, 11260, 3923),
    "HEB 260": (260, 260, 10, 17.5, 118.4, 93, 14920, 5135),
    "HEB 280": (280, 280, 10.5, 18, 131.4, 103, 19270, 6595),
    "HEB 300": (300, 300, 11, 19, 149.1, 117, 25170, 8563),
    "HEB 320": (320, 300, 11.5, 20.5, 161.3, 127, 30820, 9239),
    "HEB 400": (400, 300, 13.5, 24, 197.8, 155, 57680, 10820),
}

# Side and wall in mm; A in cm2; mass in kg/m; radius of gyration i in cm; how it was made.
HOLLOW_SECTIONS = {
    "SHS 150x8 HF": (150, 8, 44.8, 35.1, 5.77, "hot finished"),
    "SHS 150x10 HF": (150, 10, 54.9, 43.1, 5.68, "hot finished"),
    "SHS 180x8 HF": (180, 8, 54.4, 42.7, 6.99, "hot finished"),
    "SHS 200x8 HF": (200, 8, 60.8, 47.7, 7.81, "hot finished"),
    "SHS 200x10 HF": (200, 10, 74.9, 58.8, 7.72, "hot finished"),
    "SHS 200x12.5 HF": (200, 12.5, 92.1, 72.3, 7.61, "hot finished"),
    "SHS 250x10 HF": (250, 10, 94.9, 74.5, 9.77, "hot finished"),
    "SHS 250x12.5 HF": (250, 12.5, 117, 91.9, 9.66, "hot finished"),
    "SHS 150x8 CF": (150, 8, 43.2, 33.9, 5.71, "cold formed"),
    "SHS 200x8 CF": (200, 8, 59.2, 46.5, 7.76, "cold formed"),
    "SHS 200x10 CF": (200, 10, 72.6, 57, 7.65, "cold formed"),
    "SHS 250x10 CF": (250, 10, 92.6, 72.7, 9.7, "cold formed"),
}

# By mass, so that a neighbour in the list is the section an engineer would try next.
BY_MASS = sorted(
    [*H_SECTIONS, *HOLLOW_SECTIONS],
    key=lambda name: (H_SECTIONS[name][5] if name in H_SECTIONS else HOLLOW_SECTIONS[name][3], name),
)

IMPERFECTION = {"a": 0.21, "b": 0.34, "c": 0.49}
YIELD_MPA = {"S275": (275, 265), "S355": (355, 345)}  # up to 16 mm, above 16 mm up to 40 mm


def mass_kg_per_m(name):
    return H_SECTIONS[name][5] if name in H_SECTIONS else HOLLOW_SECTIONS[name][3]


def column_section(name):
    """Area in mm2, governing thickness in mm, radii of gyration in mm and curves about y and z."""
    if name in HOLLOW_SECTIONS:
        _, wall, area, _, radius, process = HOLLOW_SECTIONS[name]
        curve = "a" if process == "hot finished" else "c"
        return area * 100, wall, (radius * 10, radius * 10), (curve, curve)
    height, width, _, flange, area, _, major, minor = H_SECTIONS[name]
    radii = tuple((moment / area) ** 0.5 * 10 for moment in (major, minor))
    return area * 100, flange, radii, ("a", "b") if height / width > 1.2 else ("b", "c")
