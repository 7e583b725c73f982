//! Reads exports back.

use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use ::parquet::record::{Field, RowAccessor as _};
use aec_judge::verdict::Outcome;

use super::*;
use crate::example;
use crate::index::{Attempts, Filter, Index};
use crate::record::TrialRecord;

fn ledger(records: &[TrialRecord]) -> (tempfile::TempDir, Ledger, Vec<(RecordFile, u64)>) {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(directory.path().join("ledger"));
    for record in records {
        example::write(&ledger, record);
    }
    let filter = Filter { attempts: Attempts::All, ..Filter::default() };
    let (files, _) = Index::ask(&ledger, |index| index.files(&filter)).unwrap();
    (directory, ledger, files)
}

fn of(files: &[(RecordFile, u64)]) -> Chosen<'_> {
    Chosen { files, withheld: &[] }
}

fn records() -> Vec<TrialRecord> {
    let mut odd = example::with_outcome(example::record("b", "t", 1), Outcome::AgentFault);
    odd.fault.as_mut().unwrap().message = "=HYPERLINK(\"http://x\"), \"two\"\nlines".to_owned();
    odd.cost.estimated_cost_usd = None;
    vec![example::record("b", "t", 2), odd, example::record("a", "z", 1)]
}

#[test]
fn json_lines_are_whole_records_in_order() {
    let (_directory, ledger, files) = ledger(&records());
    let path = files[0].0.path(&ledger);
    let text = fs_err::read_to_string(&path).unwrap();
    fs_err::write(&path, text.replacen('{', "{\"later\": [1.50, 2]  ,", 1)).unwrap();
    let mut out = Vec::new();
    let exported = export(&ledger, of(&files), Format::Jsonl, &mut out).unwrap();
    assert_eq!((exported.records, exported.left_out), (3, 0));
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("{\"later\":[1.50,2],"), "{text}");
    let back: Vec<TrialRecord> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<_> = back.iter().map(|record| (record.experiment_id.as_str(), record.attempt)).collect();
    assert_eq!(ids, [("a", 1), ("b", 1), ("b", 2)]);
    assert_eq!(back[1], records()[1]);
}

#[test]
fn csv_has_a_row_per_attempt_and_no_formula() {
    let (_directory, ledger, files) = ledger(&records());
    let mut out = Vec::new();
    export(&ledger, of(&files), Format::Csv, &mut out).unwrap();
    let mut reader = ::csv::Reader::from_reader(out.as_slice());
    let header = reader.headers().unwrap().clone();
    assert_eq!(header.len(), COLUMNS.len());
    let rows: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let cell = |row: usize, name: &str| {
        rows[row].get(header.iter().position(|known| known == name).unwrap()).unwrap().to_owned()
    };
    assert_eq!(rows.len(), 3);
    assert_eq!((cell(0, "experiment_id"), cell(0, "reward")), ("a".to_owned(), "0.75".to_owned()));
    assert_eq!((cell(1, "reward"), cell(1, "cost_usd")), (String::new(), String::new()));
    assert_eq!(cell(1, "fault_message"), "'=HYPERLINK(\"http://x\"), \"two\"\nlines");
    assert_eq!(
        (cell(0, "sandbox"), cell(0, "judged"), cell(0, "output_source")),
        ("namespaces".into(), "native".into(), "file".into())
    );
    assert_eq!(cell(2, "attempt"), "2");
}

#[test]
fn parquet_is_read_back_with_types_and_empty_cells() {
    let (directory, ledger, files) = ledger(&records());
    let path = directory.path().join("out.parquet");
    export_to(&ledger, of(&files), Format::Parquet, &path, Existing::Keep).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 3);
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let at = |name: &str| COLUMNS.iter().position(|column| column.name == name).unwrap();
    assert_eq!(rows[0].len(), COLUMNS.len());
    assert_eq!(rows[0].get_string(at("experiment_id")).unwrap(), "a");
    assert_eq!(rows[2].get_long(at("attempt")).unwrap(), 2);
    assert!((rows[0].get_double(at("reward")).unwrap() - 0.75).abs() < f64::EPSILON);
    let field = |row: usize, name: &str| rows[row].get_column_iter().nth(at(name)).unwrap().1.clone();
    assert_eq!(field(1, "reward"), Field::Null);
    assert_eq!(field(1, "outcome"), Field::Str("agent_fault".to_owned()));
    assert!(matches!(field(1, "fault_message"), Field::Str(text) if text.starts_with("=HYPERLINK")));
}

#[test]
fn nothing_exports_too() {
    let (directory, ledger, files) = ledger(&[]);
    for (format, size) in [(Format::Jsonl, 0), (Format::Csv, 1), (Format::Parquet, 1)] {
        let path = directory.path().join(format!("out.{format:?}"));
        assert_eq!(export_to(&ledger, of(&files), format, &path, Existing::Keep).unwrap().records, 0);
        assert!(path.metadata().unwrap().len() >= size);
    }
    let file = std::fs::File::open(directory.path().join("out.Parquet")).unwrap();
    assert_eq!(SerializedFileReader::new(file).unwrap().metadata().file_metadata().num_rows(), 0);
}

#[test]
fn what_cannot_be_read_is_left_out_and_told() {
    let (_directory, ledger, files) = ledger(&records());
    fs_err::write(files[0].0.path(&ledger), "torn").unwrap();
    let mut out = Vec::new();
    let exported = export(&ledger, of(&files), Format::Jsonl, &mut out).unwrap();
    assert_eq!((exported.records, exported.left_out, exported.problems.len()), (2, 1, 1));
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 2);
}

#[test]
fn an_output_appears_whole_and_is_not_replaced_by_accident() {
    let (directory, ledger, files) = ledger(&records());
    let path = directory.path().join("deep/out.csv");
    export_to(&ledger, of(&files), Format::Csv, &path, Existing::Keep).unwrap();
    let before = fs_err::read(&path).unwrap();
    let again = export_to(&ledger, of(&[]), Format::Csv, &path, Existing::Keep);
    assert!(matches!(again, Err(ExportError::Exists(_))));
    assert_eq!(fs_err::read(&path).unwrap(), before);
    export_to(&ledger, of(&[]), Format::Csv, &path, Existing::Replace).unwrap();
    assert!(fs_err::read(&path).unwrap().len() < before.len());
    assert_eq!(fs_err::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file stays");
}

#[test]
fn pieces_are_bounded_and_lose_nothing() {
    let file = |size: u64| (RecordFile { experiment: name("e"), trial: name("t"), attempt: 1 }, size);
    let files: Vec<_> = [1, PIECE, 5, 6, 3 * PIECE, u64::MAX, 2].map(file).into();
    let sizes: Vec<Vec<u64>> =
        pieces(&files).map(|piece| piece.iter().map(|(_, size)| *size).collect()).collect();
    assert_eq!(sizes, [vec![1], vec![PIECE], vec![5, 6], vec![3 * PIECE], vec![u64::MAX], vec![2]]);
    assert_eq!(pieces(&[]).count(), 0);
}

fn name(text: &str) -> aec_base::name::Name {
    aec_base::name::Name::parse(text).unwrap()
}
