//! Numbers that JSON can write.

/// A number that is neither infinite nor NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Finite(f64);

impl Finite {
    pub const ZERO: Self = Self(0.0);

    pub fn new(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self(number))
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Finite {
    type Error = &'static str;

    fn try_from(number: f64) -> Result<Self, Self::Error> {
        Self::new(number).ok_or("is not a finite number")
    }
}

impl From<u32> for Finite {
    fn from(number: u32) -> Self {
        Self(number.into())
    }
}

/// Statistics accept numbers up to this size: sums of their squares stay far below the largest float.
pub const LARGEST_COUNTED: f64 = 1e140;

/// Numbers closer to 0 than this count as 0, because their squares are not exact.
const SMALLEST_COUNTED: f64 = 1e-120;

/// The number as statistics use it; absent if it is NaN, infinite or larger than [`LARGEST_COUNTED`].
pub fn countable(number: f64) -> Option<f64> {
    match number.abs() {
        size if size < SMALLEST_COUNTED => Some(0.0),
        size if size <= LARGEST_COUNTED => Some(number),
        _ => None,
    }
}
