//! Grades fields and whole submissions.

use super::MAX_BLOCKS;
use super::answers::{Answers, Column, Field, Shape};
use super::reading::{Content, Reading, agree, matches_want, read};
use super::report::{FieldScore, Score, Status, Unreadable};
use super::spec::Want;
use super::submission::{Claim, Unread, claims_of};
use super::text::shorten;

/// Scores the bytes of a submission.
pub fn score(answers: &Answers, submission: &[u8]) -> Score {
    match claims_of(answers, submission) {
        Ok(claims) => {
            let graded = answers.fields.iter().zip(claims).map(|(field, values)| grade(field, &values));
            total(answers, graded.collect(), None)
        }
        Err(unread) => unscored(answers, &unread),
    }
}

/// Scores a submission that could not be read.
pub fn score_unreadable(answers: &Answers, why: Unreadable) -> Score {
    unscored(answers, &Unread { problem: why.problem(), status: Status::Missing })
}

fn unscored(answers: &Answers, unread: &Unread) -> Score {
    let fields = answers.fields.iter().map(|field| result(field, 0.0, unread.status, None, unread.problem));
    total(answers, fields.collect(), Some(unread.problem.to_owned()))
}

/// The reward, in the same order of operations as `verify.py`.
fn total(answers: &Answers, fields: Vec<FieldScore>, problem: Option<String>) -> Score {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (field, result) in answers.fields.iter().zip(&fields) {
        sum += field.weight * result.score;
        weights += field.weight;
    }
    let perfect = fields.iter().all(|result| result.status == Status::Correct);
    // Rounded, but never up to 1, which only a flawless answer gets.
    let reward =
        if perfect { 1.0 } else { ((sum / weights * 1e6_f64 + 0.5).floor() / 1e6).clamp(0.0, 0.999_999) };
    Score { reward, fields, problem }
}

fn result(field: &Field, score: f64, status: Status, got: Option<String>, message: &str) -> FieldScore {
    FieldScore {
        name: field.name.clone(),
        score,
        status,
        expected: shorten(field.shown.clone()),
        got,
        message: message.to_owned(),
    }
}

/// Grades a field by all claims for it.
fn grade(field: &Field, claims: &[Claim]) -> FieldScore {
    if let Some(first) = claims.first().filter(|_| claims.len() > MAX_BLOCKS) {
        let got = Some(shorten(first.value.show()));
        return result(field, 0.0, Status::Contradictory, got, "more than 64 values for one key");
    }
    let readings = claims.iter().map(|claim| (read(field, claim), claim));
    let mut given: Vec<(Reading, &Claim)> = readings
        .filter(|(reading, _)| reading.fault.is_none_or(|(status, _)| status != Status::Missing))
        .collect();
    if !given.iter().all(|(_, claim)| claim.deeper) {
        // One level deeper, the same name may also stand for a unit or a note.
        given.retain(|(reading, claim)| reading.fault.is_none() || !claim.deeper);
    }
    let Some(((first, claim), others)) = given.split_first() else {
        return result(field, 0.0, Status::Missing, None, "no value");
    };
    let got = Some(shorten(claim.value.show()));
    // Two accepted texts are the same answer in other words.
    let both_accepted = |other: &Content| match &field.shape {
        Shape::One { want: want @ Want::Texts(_), .. } => {
            matches_want(want, &first.content) && matches_want(want, other)
        }
        _ => false,
    };
    let consistent = |other: &Reading| agree(&first.content, &other.content) || both_accepted(&other.content);
    if !others.iter().all(|(other, _)| consistent(other)) {
        return result(field, 0.0, Status::Contradictory, got, "different values for one key");
    }
    if let Some((status, message)) = first.fault {
        return result(field, 0.0, status, got, message);
    }
    match (&field.shape, &first.content) {
        (Shape::One { want, .. }, content) if matches_want(want, content) => {
            result(field, 1.0, Status::Correct, got, "")
        }
        (Shape::List { wants, ordered, .. }, Content::List(contents)) => {
            let (score, status) = grade_list(wants, *ordered, contents);
            let message = format!("{} given, {} expected", contents.len(), wants.len());
            result(field, score, status, got, &message)
        }
        (Shape::Table { columns, rows, .. }, Content::List(contents)) => {
            let (score, status) = grade_table(columns, rows, contents);
            let message = format!("{} given, {} expected", contents.len(), field.shown);
            result(field, score, status, got, &message)
        }
        _ => result(field, 0.0, Status::Wrong, got, "not the expected value"),
    }
}

fn share(right: usize, total: usize) -> (f64, Status) {
    if right == total {
        return (1.0, Status::Correct);
    }
    if right == 0 {
        return (0.0, Status::Wrong);
    }
    #[expect(clippy::cast_precision_loss, reason = "both are far below 2^53")]
    let share = right as f64 / total as f64;
    (share, Status::Partial)
}

fn grade_list(wants: &[Want], ordered: bool, contents: &[Content]) -> (f64, Status) {
    let right = if ordered {
        wants.iter().zip(contents).filter(|(want, content)| matches_want(want, content)).count()
    } else {
        let edges: Vec<Vec<usize>> = wants
            .iter()
            .map(|want| (0..contents.len()).filter(|at| matches_want(want, &contents[*at])).collect())
            .collect();
        Matching { edges: &edges, owner: vec![None; contents.len()], seen: vec![false; contents.len()] }
            .size()
    };
    share(right, wants.len().max(contents.len()))
}

/// The largest number of expected items that can be matched with distinct given items (Kuhn's augmenting paths).
struct Matching<'a> {
    edges: &'a [Vec<usize>],
    owner: Vec<Option<usize>>,
    seen: Vec<bool>,
}

impl Matching<'_> {
    fn size(mut self) -> usize {
        let mut count = 0;
        for item in 0..self.edges.len() {
            // Items that a failed search has seen lead nowhere until another search succeeds.
            if self.place(item) {
                count += 1;
                self.seen.fill(false);
            }
        }
        count
    }

    fn place(&mut self, item: usize) -> bool {
        let edges = self.edges;
        for &at in &edges[item] {
            if std::mem::replace(&mut self.seen[at], true) {
                continue;
            }
            if self.owner[at].is_none_or(|other| self.place(other)) {
                self.owner[at] = Some(item);
                return true;
            }
        }
        false
    }
}

fn grade_table(columns: &[Column], wants: &[Vec<Want>], contents: &[Content]) -> (f64, Status) {
    let rows = contents.iter().filter_map(|row| match row {
        Content::List(cells) if !cells.is_empty() => Some(cells.as_slice()),
        _ => None,
    });
    let (mut kept, mut torn, mut count): (Vec<&[Content]>, Vec<&Content>, usize) =
        (Vec::new(), Vec::new(), 0);
    for row in rows {
        let first = match &row[0] {
            Content::Unread(_) => None,
            key => kept.iter().find(|one| one[0] == *key),
        };
        match first {
            None => kept.push(row),
            Some(first) if all_agree(first, row) => continue,
            Some(_) => torn.push(&row[0]),
        }
        count += 1;
    }
    let mut right = 0;
    for want in wants {
        let found: Vec<&&[Content]> = kept.iter().filter(|row| matches_want(&want[0], &row[0])).collect();
        // Rows under two accepted spellings of a key must agree, like rows under one spelling.
        let sound = |row: &&&[Content]| !torn.contains(&&row[0]) && all_agree(&found[0][1..], &row[1..]);
        if !found.is_empty() && found.iter().all(sound) {
            right += want
                .iter()
                .zip(found[0].iter())
                .skip(1)
                .filter(|(want, cell)| matches_want(want, cell))
                .count();
        }
    }
    share(right, (columns.len() - 1) * wants.len().max(count))
}

fn all_agree(one: &[Content], other: &[Content]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| agree(one, other))
}
