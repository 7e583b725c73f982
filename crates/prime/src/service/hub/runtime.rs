//! The generation of verifiers that a package is for. The hub shows it, and hosted runs choose their runtime by it.

/// A generation of the verifiers interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// `load_environment`, up to verifiers 0.3.
    V0,
    /// Tasksets, from verifiers 0.2 on.
    V1,
}

impl Runtime {
    pub fn hub_name(self) -> &'static str {
        match self {
            Self::V0 => "VERIFIERS_V0",
            Self::V1 => "VERIFIERS_V1",
        }
    }

    /// The generation according to a package's requirements: a lower bound of verifiers of 0.2.0 or more means V1, any
    /// other requirement of it V0; absent without a requirement or with an address.
    pub(crate) fn of_requirements(requirements: &[String]) -> Option<Self> {
        let all: Vec<Requirement<'_>> =
            requirements.iter().filter_map(|text| Requirement::of_verifiers(text)).collect();
        let unconditional: Vec<&Requirement<'_>> = all.iter().filter(|one| !one.conditional).collect();
        let candidates = if unconditional.is_empty() { all.iter().collect() } else { unconditional };
        let chosen = candidates.into_iter().max_by_key(|one| one.lower_bound())?;
        if chosen.is_address {
            return None;
        }
        Some(if chosen.lower_bound() >= [0, 2, 0] { Self::V1 } else { Self::V0 })
    }
}

struct Requirement<'a> {
    bounds: &'a str,
    conditional: bool,
    is_address: bool,
}

impl<'a> Requirement<'a> {
    fn of_verifiers(text: &'a str) -> Option<Self> {
        let (what, marker) = match text.split_once(';') {
            Some((what, marker)) => (what, marker),
            None => (text, ""),
        };
        // A requirement of an extra says nothing about the package.
        if marker.contains("extra") {
            return None;
        }
        let what = what.trim();
        let end = what.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)).unwrap_or(what.len());
        if !what[..end].eq_ignore_ascii_case("verifiers") {
            return None;
        }
        let rest = what[end..].trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(extras) => extras.split_once(']')?.1.trim_start(),
            None => rest,
        };
        let bounds = rest.trim_start_matches('(').trim_end_matches(')');
        Some(Self { bounds, conditional: !marker.trim().is_empty(), is_address: rest.starts_with('@') })
    }

    fn lower_bound(&self) -> [u64; 3] {
        if self.is_address {
            return [0; 3];
        }
        self.bounds.split(',').filter_map(|bound| floor(bound.trim())).max().unwrap_or([0; 3])
    }
}

/// The first three numbers of a version after an operator that sets a lower bound. What follows them does not move a
/// version across 0.2.0, except that a pre-release of 0.2.0 comes before it.
fn floor(bound: &str) -> Option<[u64; 3]> {
    let version = ["===", "==", "~=", ">=", ">"].iter().find_map(|operator| bound.strip_prefix(operator))?;
    let version = version.trim().trim_end_matches(".*");
    let mut numbers = [0; 3];
    for (slot, part) in numbers.iter_mut().zip(version.split('.')) {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        *slot = part[..digits].parse().ok()?;
        if digits < part.len() {
            break;
        }
    }
    let early = ["a", "b", "rc", ".dev"].iter().any(|marker| version.contains(marker));
    Some(if early && numbers == [0, 2, 0] { [0, 1, u64::MAX] } else { numbers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requirement_decides() {
        let of = |list: &[&str]| {
            Runtime::of_requirements(&list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        for v0 in [
            "verifiers",
            "verifiers>=0.1.10",
            "verifiers<0.3",
            "Verifiers[rl]>=0.1",
            "verifiers==0.1.*",
            "verifiers>=0.2.0rc1",
            "verifiers!=0.4",
            "verifiers>=0.1.14,<0.4",
        ] {
            assert_eq!(of(&["datasets", v0]), Some(Runtime::V0), "{v0}");
        }
        for v1 in [
            "verifiers>=0.2.0",
            "verifiers ~= 0.3",
            "verifiers==0.4.0",
            "verifiers>0.2",
            "verifiers[x]>=0.2.1",
            "verifiers>=0.1.14,>=0.3",
            "verifiers===1.0",
            "verifiers (>=0.3)",
        ] {
            assert_eq!(of(&[v1]), Some(Runtime::V1), "{v1}");
        }
        for none in
            ["datasets", "verifiers @ https://a.test/x.whl", "verifiers>=0.4; extra == 'x'", "verifiers-x>=1"]
        {
            assert_eq!(of(&[none]), None, "{none}");
        }
        assert_eq!(of(&["verifiers>=0.4; python_version > '3.11'", "verifiers>=0.1"]), Some(Runtime::V0));
    }
}
