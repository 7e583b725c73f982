//! A chart of scores by cycle: above, the mean reward of the best after each cycle and of each candidate; below, the
//! gain of each candidate. It works without a script, its shapes tell the same as its colours, and the table of cycles
//! has the same numbers.

use std::collections::HashMap;

use aec_base::decimal::{rounded, signed};
use aec_base::name::Name;
use aec_base::text;
use aec_evolve::gate::Rejection;
use aec_evolve::view::{CandidateView, CycleView, View};
use aec_report::stats::Interval;

use super::run::span;
use crate::html::Html;
use crate::words;

/// In the units of the drawing: about a pixel each on a wide screen.
const WIDTH: f64 = 1200.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 1040.0;
const MEANS: (f64, f64) = (226.0, 44.0);
const GAINS: (f64, f64) = (422.0, 276.0);
const HEIGHT: f64 = 466.0;

/// Most steps of the line; of more cycles, only some at equal distances are drawn.
const STEPS: usize = 400;

/// Most candidates that are drawn: accepted ones first, then others at equal distances.
const MARKS: usize = 160;

/// With more candidates, bars are thin.
const MANY: usize = 60;

/// Approximate number of ticks on an axis.
const TICKS: f64 = 5.0;

/// The result of a candidate, as a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Accepted,
    /// Tested but not accepted.
    Tested,
    Untested,
}

impl Shape {
    fn of(cycle: &CycleView) -> Self {
        let untested = [Rejection::WorseThanParent, Rejection::NoTestLeft];
        match cycle.accepted {
            true => Self::Accepted,
            false if untested.iter().any(|why| why.words() == cycle.outcome) => Self::Untested,
            false => Self::Tested,
        }
    }
}

struct Mark<'a> {
    /// The index of the cycle, in the order in which they ended.
    at: usize,
    cycle: &'a CycleView,
    name: &'a Name,
    candidate: Option<&'a CandidateView>,
}

pub(super) fn show(html: &mut Html, view: &View) {
    let cycles = &view.cycles;
    html.raw("<figure><figcaption>Score by cycle</figcaption>\n");
    if cycles.is_empty() {
        html.hint("No cycle is over yet.").raw("</figure>\n");
        return;
    }
    let marks = marks(view);
    html.raw("<div class=\"scroll\"><svg class=\"wide scores")
        .raw(if marks.len() > MANY { " many" } else { "" })
        .raw("\" viewBox=\"0 0 ")
        .text(&number(WIDTH))
        .raw(" ")
        .text(&number(HEIGHT))
        .raw("\" role=\"img\" aria-labelledby=\"scores-title scores-text\">\n<title id=\"scores-title\">")
        .text(&format!("Mean reward and gain by cycle of {}", view.run))
        .raw("</title>\n<desc id=\"scores-text\">")
        .text(&described(view))
        .raw("</desc>\n");
    legend(html);
    means(html, view, &marks);
    gains(html, view, &marks);
    numbers_of_cycles(html, cycles.len());
    html.raw("</svg></div>\n");
    let all = cycles.iter().filter(|cycle| cycle.candidate.is_some()).count();
    if all > marks.len() {
        html.hint(&format!(
            "{} of {} are drawn: accepted ones, and some of the others. The table of cycles has all.",
            words::count(marks.len()),
            text::count(all, "candidate")
        ));
    }
    html.hint("Cycles are in the order in which they ended. Bars are 95 % intervals: of the mean above; below, of the gain, valid at every look. The table of cycles has the numbers.");
    html.raw("</figure>\n");
}

fn number(value: f64) -> String {
    // Adding zero turns a negative zero into zero.
    let shown = rounded(value, 1);
    shown.strip_suffix(".0").unwrap_or(&shown).to_owned()
}

/// The drawing in words.
fn described(view: &View) -> String {
    let mean = |cycle: Option<&CycleView>| words::share(cycle.and_then(|cycle| cycle.best_mean));
    let accepted: Vec<String> = view
        .cycles
        .iter()
        .enumerate()
        .filter(|(_, cycle)| cycle.accepted)
        .take(20)
        .map(|(at, cycle)| {
            let gain = cycle.standing.as_ref().map(|standing| standing.difference);
            let name = cycle.candidate.as_ref().map(Name::as_str).unwrap_or_default();
            format!("{name} in place {} with a gain of {}", at + 1, words::signed(gain))
        })
        .collect();
    let accepted = if accepted.is_empty() { "none".to_owned() } else { accepted.join("; ") };
    format!(
        "After the first of {} the best has a mean reward of {}, after the last {}. Accepted: {accepted}.",
        text::count(view.cycles.len(), "cycle"),
        mean(view.cycles.first()),
        mean(view.cycles.last()),
    )
}

fn marks(view: &View) -> Vec<Mark<'_>> {
    let known: HashMap<&Name, &CandidateView> =
        view.candidates.iter().map(|candidate| (&candidate.name, candidate)).collect();
    let all = view.cycles.iter().enumerate().filter_map(|(at, cycle)| {
        let name = cycle.candidate.as_ref()?;
        Some(Mark { at, cycle, name, candidate: known.get(name).copied() })
    });
    let (mut marks, others): (Vec<Mark<'_>>, Vec<Mark<'_>>) = all.partition(|mark| mark.cycle.accepted);
    let skipped = marks.len().saturating_sub(MARKS);
    marks.drain(..skipped);
    let (room, count) = (MARKS - marks.len(), others.len());
    // Spreads the drawn candidates evenly over all of them.
    let is_drawn = |at: usize| room >= count || (at + 1) * room / count > at * room / count;
    marks.extend(others.into_iter().enumerate().filter(|(at, _)| is_drawn(*at)).map(|(_, mark)| mark));
    marks.sort_by_key(|mark| mark.at);
    marks
}

/// Converts values to positions.
#[derive(Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn place(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values within the range.
    fn ticks(&self) -> Vec<f64> {
        let raw = (self.high - self.low) / TICKS;
        let power = 10_f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
        let step = step.into_iter().find(|step| *step >= raw - 1e-12).unwrap_or(power * 10.0);
        let first = (self.low / step - 1e-9).ceil();
        (0..20)
            .map(|at| (first + f64::from(at)) * step)
            .take_while(|value| *value <= self.high + 1e-9)
            .collect()
    }
}

/// The horizontal position of a cycle: the middle of its slot.
#[expect(clippy::cast_precision_loss, reason = "cycles are few")]
fn middle(at: usize, cycles: usize) -> f64 {
    LEFT + (at as f64 + 0.5) / cycles as f64 * (RIGHT - LEFT)
}

#[expect(clippy::cast_precision_loss, reason = "cycles are few")]
fn edge(at: usize, cycles: usize) -> f64 {
    LEFT + at as f64 / cycles as f64 * (RIGHT - LEFT)
}

fn line(html: &mut Html, class: &'static str, from: (f64, f64), to: (f64, f64)) {
    html.raw("<path class=\"")
        .raw(class)
        .raw("\" d=\"M")
        .text(&point(from))
        .raw("L")
        .text(&point(to))
        .raw("\"/>\n");
}

fn point((x, y): (f64, f64)) -> String {
    format!("{},{}", number(x), number(y))
}

fn label(html: &mut Html, class: &'static str, anchor: &'static str, place: (f64, f64), text: &str) {
    html.raw("<text class=\"").raw(class).raw("\" text-anchor=\"").raw(anchor).raw("\" x=\"");
    html.text(&number(place.0)).raw("\" y=\"").text(&number(place.1)).raw("\">").text(text).raw("</text>\n");
}

/// A panel's ticks, rules and title.
fn axis(html: &mut Html, scale: &Scale, title: &str, tick: impl Fn(f64) -> String) {
    for value in scale.ticks() {
        let y = scale.place(value);
        line(html, "rule", (LEFT, y), (RIGHT, y));
        label(html, "tick", "end", (LEFT - 8.0, y + 4.0), &tick(value));
    }
    label(html, "heading", "start", (0.0, scale.to - 12.0), title);
}

/// A shape with its interval, and its description in words.
fn mark(
    html: &mut Html,
    shape: Shape,
    x: f64,
    scale: &Scale,
    value: f64,
    interval: Option<Interval>,
    said: &str,
) {
    let y = scale.place(value);
    let colour = match shape {
        Shape::Accepted => "s2",
        Shape::Tested => "s1",
        Shape::Untested => "s6",
    };
    html.raw("<g class=\"").raw(colour).raw("\"><title>").text(said).raw("</title>");
    if let Some(interval) = interval {
        let (low, high) = (scale.place(interval.low), scale.place(interval.high));
        line(html, "whisker", (x, low), (x, high));
    }
    drawn(html, shape, x, y);
    html.raw("</g>\n");
}

fn drawn(html: &mut Html, shape: Shape, x: f64, y: f64) {
    let at = |dx: f64, dy: f64| point((x + dx, y + dy));
    let (class, path) = match shape {
        Shape::Accepted => ("mark", format!("M{}a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0", at(-4.5, 0.0))),
        Shape::Tested => ("mark hollow", format!("M{}l5,5l-5,5l-5,-5z", at(0.0, -5.0))),
        Shape::Untested => {
            ("whisker", format!("M{}L{}M{}L{}", at(-4.0, -4.0), at(4.0, 4.0), at(-4.0, 4.0), at(4.0, -4.0)))
        }
    };
    html.raw("<path class=\"").raw(class).raw("\" d=\"").text(&path).raw("\"/>");
}

fn legend(html: &mut Html) {
    let y = 14.0;
    html.raw("<g class=\"s0\">");
    line(html, "curve best", (420.0, y), (446.0, y));
    html.raw("</g>");
    label(html, "tick", "start", (452.0, y + 4.0), "mean of the best");
    for (shape, colour, x, words) in [
        (Shape::Accepted, "<g class=\"s2\">", 590.0, "accepted"),
        (Shape::Tested, "<g class=\"s1\">", 690.0, "tested, not accepted"),
        (Shape::Untested, "<g class=\"s6\">", 850.0, "not tested"),
    ] {
        html.raw(colour);
        drawn(html, shape, x, y);
        html.raw("</g>");
        label(html, "tick", "start", (x + 10.0, y + 4.0), words);
    }
}

/// The range of some values, extended to include `low` and `high`.
fn range(values: impl Iterator<Item = f64>, low: f64, high: f64) -> (f64, f64) {
    values
        .filter(|value| value.is_finite())
        .fold((low, high), |(low, high), value| (low.min(value), high.max(value)))
}

fn means(html: &mut Html, view: &View, marks: &[Mark<'_>]) {
    let cycles = &view.cycles;
    let of_marks = marks
        .iter()
        .filter_map(|mark| mark.candidate)
        .flat_map(|candidate| [candidate.low, candidate.high, candidate.mean]);
    let values = cycles.iter().map(|cycle| cycle.best_mean).chain(of_marks).flatten();
    // Rewards are between 0 and 1 unless the data tell otherwise.
    let (low, high) = range(values, 0.0, 1.0);
    let scale = Scale { low, high, from: MEANS.0, to: MEANS.1 };
    axis(html, &scale, "Mean reward", |value| rounded(value, 1));
    for mark_ in marks {
        let Some(candidate) = mark_.candidate else { continue };
        let Some(mean) = candidate.mean.filter(|mean| mean.is_finite()) else { continue };
        let interval = span(candidate.low, candidate.high);
        let said = format!(
            "{}: mean {} ({}), {}",
            mark_.name,
            words::share(Some(mean)),
            words::span(interval),
            mark_.cycle.outcome
        );
        mark(html, Shape::of(mark_.cycle), middle(mark_.at, cycles.len()), &scale, mean, interval, &said);
    }
    if let Some((path, last)) = steps(cycles, &scale) {
        html.raw("<g class=\"s0\"><path class=\"curve best\" d=\"").text(&path).raw("\"/></g>\n");
        let value = cycles.iter().rev().find_map(|cycle| cycle.best_mean);
        label(html, "number", "start", (RIGHT + 8.0, last), view.best.as_str());
        label(html, "number", "start", (RIGHT + 8.0, last + 14.0), &words::share(value));
    }
}

/// The mean of the best after each cycle, as steps, and where the line ends.
fn steps(cycles: &[CycleView], scale: &Scale) -> Option<(String, f64)> {
    let every = cycles.len().div_ceil(STEPS).max(1);
    let mut path = String::new();
    let mut last = None;
    for (at, cycle) in cycles.iter().enumerate() {
        let is_drawn = at % every == 0 || at + 1 == cycles.len();
        let Some(mean) = cycle.best_mean.filter(|mean| mean.is_finite() && is_drawn) else { continue };
        let y = scale.place(mean);
        if last.is_none() {
            path.push_str(&format!("M{}", point((edge(at, cycles.len()), y))));
        } else if last != Some(y) {
            path.push_str(&format!("H{}V{}", number(edge(at, cycles.len())), number(y)));
        }
        last = Some(y);
    }
    let last = last?;
    path.push_str(&format!("H{}", number(RIGHT)));
    Some((path, last))
}

fn gains(html: &mut Html, view: &View, marks: &[Mark<'_>]) {
    let standings = marks.iter().filter_map(|mark| mark.cycle.standing.as_ref());
    let values = standings.flat_map(|standing| [standing.low, standing.high, standing.difference]);
    let threshold = view.settings.as_ref().map(|settings| settings.acceptance.improvement_threshold);
    let (low, high) = range(values.chain(threshold), -0.1, 0.1);
    let scale = Scale { low, high, from: GAINS.0, to: GAINS.1 };
    axis(
        html,
        &scale,
        "Gain in reward",
        |value| {
            if value.abs() < 1e-9 { "0".to_owned() } else { signed(value, 2) }
        },
    );
    line(html, "axis", (LEFT, scale.place(0.0)), (RIGHT, scale.place(0.0)));
    if let Some(threshold) = threshold.filter(|threshold| threshold.is_finite()) {
        let y = scale.place(threshold);
        line(html, "front", (LEFT, y), (RIGHT, y));
        label(
            html,
            "number",
            "start",
            (RIGHT + 8.0, y + 4.0),
            &format!("accepted above {}", words::signed(Some(threshold))),
        );
    }
    for mark_ in marks {
        let Some(standing) = mark_.cycle.standing.as_ref().filter(|standing| standing.difference.is_finite())
        else {
            continue;
        };
        let interval = span(Some(standing.low), Some(standing.high));
        let said = format!(
            "{}: gain {} ({}) over {}, {}",
            mark_.name,
            words::signed(Some(standing.difference)),
            words::signed_span(interval),
            text::count(standing.pairs, "pair"),
            mark_.cycle.outcome
        );
        mark(
            html,
            Shape::of(mark_.cycle),
            middle(mark_.at, view.cycles.len()),
            &scale,
            standing.difference,
            interval,
            &said,
        );
    }
}

/// Numbers of cycles below both panels.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cycles are few"
)]
fn numbers_of_cycles(html: &mut Html, cycles: usize) {
    let y = GAINS.0 + 18.0;
    if cycles <= 24 {
        for at in 0..cycles {
            label(html, "tick", "middle", (middle(at, cycles), y), &(at + 1).to_string());
        }
    } else {
        let scale =
            Scale { low: 1.0, high: cycles as f64, from: middle(0, cycles), to: middle(cycles - 1, cycles) };
        let ticks = scale.ticks();
        for value in std::iter::once(1.0).chain(ticks.into_iter().filter(|value| *value > 1.0)) {
            label(html, "tick", "middle", (scale.place(value), y), &words::count(value as usize));
        }
    }
    label(html, "tick", "end", (RIGHT, y + 18.0), "cycle");
}
