//! Faults that the server can produce, and for which requests.

use std::str::FromStr;

use aec_base::text;

use crate::draw::{mix, unit};

/// A kind of fault. Each has its own form in each wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum FaultKind {
    /// Too many requests, with the wait in seconds or milliseconds.
    Rate,
    /// Too many requests, with the wait as a date.
    RateDate,
    /// An internal error.
    Server,
    /// The service is unavailable.
    Unavailable,
    /// The service is overloaded; a stream reports it midway.
    Overloaded,
    /// No answer at all until the client goes away.
    Timeout,
    /// The connection is closed without an answer.
    Reset,
    /// The answer ends midway: fewer bytes than announced, or a stream without its closing event.
    Cut,
    /// The connection breaks midway.
    Broken,
    /// The answer stops midway and the connection stays open.
    Stall,
    /// A success whose body does not match its content type.
    Garbage,
    /// A success with a wrong type in a field that every client reads.
    Malformed,
    /// A success without content.
    Empty,
    /// The content filter refuses the request.
    Filter,
    /// The content filter ends the answer.
    FilterStop,
    /// The request is longer than the context.
    Overlong,
    /// The key is refused.
    Auth,
    /// The answer ends at the token limit.
    Length,
}

impl FaultKind {
    pub const ALL: [Self; 18] = [
        Self::Rate,
        Self::RateDate,
        Self::Server,
        Self::Unavailable,
        Self::Overloaded,
        Self::Timeout,
        Self::Reset,
        Self::Cut,
        Self::Broken,
        Self::Stall,
        Self::Garbage,
        Self::Malformed,
        Self::Empty,
        Self::Filter,
        Self::FilterStop,
        Self::Overlong,
        Self::Auth,
        Self::Length,
    ];

    /// The name on the command line and in headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::RateDate => "rate_date",
            Self::Server => "server",
            Self::Unavailable => "unavailable",
            Self::Overloaded => "overloaded",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::Cut => "cut",
            Self::Broken => "broken",
            Self::Stall => "stall",
            Self::Garbage => "garbage",
            Self::Malformed => "malformed",
            Self::Empty => "empty",
            Self::Filter => "filter",
            Self::FilterStop => "filter_stop",
            Self::Overlong => "overlong",
            Self::Auth => "auth",
            Self::Length => "length",
        }
    }
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| format!("there is no fault `{}`; {}", text::printable(name), names()))
    }
}

fn names() -> String {
    format!("there is {}", text::one_of(&FaultKind::ALL.map(FaultKind::name)))
}

/// A kind of fault and the share of requests that get it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    /// From 0 to 1.
    pub probability: f64,
}

impl FromStr for Fault {
    type Err = String;

    /// `KIND=PROBABILITY`; a kind alone has probability 1.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, share) = text.split_once('=').unwrap_or((text, "1"));
        let kind = name.trim().parse()?;
        let probability: f64 =
            share.trim().parse().map_err(|_| format!("`{share}` is not a number from 0 to 1"))?;
        if !(0.0..=1.0).contains(&probability) {
            return Err(format!("{share} is not a number from 0 to 1"));
        }
        Ok(Self { kind, probability })
    }
}

/// The fault of a request, if any. It depends on the seed, the digest of the request's body and how often this digest
/// came before, so the order of different requests does not matter.
pub(crate) fn draw(faults: &[Fault], seed: u64, digest: u64, repetition: u32) -> Option<FaultKind> {
    if faults.is_empty() {
        return None;
    }
    let mut share = unit(mix(mix(seed, digest), u64::from(repetition)));
    for fault in faults {
        if share < fault.probability {
            return Some(fault.kind);
        }
        share -= fault.probability;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name_and_stands_at_its_index() {
        for (index, kind) in FaultKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind as usize, index);
        }
        assert!("rat".parse::<FaultKind>().unwrap_err().contains("rate_date"));
    }

    #[test]
    fn faults_as_written() {
        assert_eq!("rate=0.1".parse(), Ok(Fault { kind: FaultKind::Rate, probability: 0.1 }));
        assert_eq!("cut".parse(), Ok(Fault { kind: FaultKind::Cut, probability: 1.0 }));
        for wrong in ["rate=", "rate=2", "rate=-1", "rate=NaN", "=1", "", "rates=0.1"] {
            assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn faults_come_as_often_as_asked_and_the_same_ones_again() {
        let faults = [
            Fault { kind: FaultKind::Rate, probability: 0.2 },
            Fault { kind: FaultKind::Cut, probability: 0.1 },
        ];
        let drawn: Vec<_> = (0..10_000).map(|digest| draw(&faults, 3, digest, 0)).collect();
        let share = |kind| drawn.iter().filter(|found| **found == kind).count();
        assert!((1_850..2_150).contains(&share(Some(FaultKind::Rate))));
        assert!((900..1_100).contains(&share(Some(FaultKind::Cut))));
        assert_eq!(drawn, (0..10_000).map(|digest| draw(&faults, 3, digest, 0)).collect::<Vec<_>>());
        assert_ne!(drawn, (0..10_000).map(|digest| draw(&faults, 4, digest, 0)).collect::<Vec<_>>());
        assert_ne!(drawn, (0..10_000).map(|digest| draw(&faults, 3, digest, 1)).collect::<Vec<_>>());
    }
}
