//! Flat rows as Parquet: every column is optional and compressed with Snappy, in row groups of bounded size.

use std::io::{self, Write};
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;

use super::Sink;
use super::columns::{self, COLUMNS, Cell, Column, Kind};
use crate::expected::Absent;
use crate::read::Stored;

const GROUP_ROWS: usize = 20_000;
/// Bytes of text in one group.
const GROUP_BYTES: usize = 32 * 1024 * 1024;

/// A file being written, and the rows of the group being filled.
pub(super) struct File<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
    rows: usize,
    bytes: usize,
}

/// The values of one column, and for each row whether it has one.
struct Buffer {
    values: Values,
    present: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
}

impl Buffer {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Integer => Values::Integer(Vec::new()),
            Kind::Number => Values::Number(Vec::new()),
        };
        Self { values, present: Vec::new() }
    }

    /// Adds a value and returns its bytes of text.
    fn push(&mut self, cell: Cell) -> usize {
        let (present, bytes) = match (&mut self.values, cell) {
            (Values::Text(values), Cell::Text(Some(text))) => {
                let bytes = text.len();
                values.push(text.into_bytes().into());
                (true, bytes)
            }
            (Values::Integer(values), Cell::Integer(Some(number))) => {
                values.push(number);
                (true, 0)
            }
            (Values::Number(values), Cell::Number(Some(number))) => {
                values.push(number);
                (true, 0)
            }
            _ => (false, 0),
        };
        self.present.push(present.into());
        bytes
    }
}

impl<W: Write + Send> File<W> {
    pub(super) fn new(to: W) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("aec-bench {}", env!("CARGO_PKG_VERSION")))
            .build();
        let schema = schema().map_err(failed)?;
        let writer = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
        Ok(Self { writer, columns: buffers(), rows: 0, bytes: 0 })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns = std::mem::replace(&mut self.columns, buffers());
        (self.rows, self.bytes) = (0, 0);
        let mut group = self.writer.next_row_group()?;
        for Buffer { values, present } in columns {
            let Some(mut column) = group.next_column()? else {
                return Err(ParquetError::General("the schema has too few columns".to_owned()));
            };
            match values {
                Values::Text(values) => {
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&present), None)?
                }
                Values::Integer(values) => {
                    column.typed::<Int64Type>().write_batch(&values, Some(&present), None)?
                }
                Values::Number(values) => {
                    column.typed::<DoubleType>().write_batch(&values, Some(&present), None)?
                }
            };
            column.close()?;
        }
        group.close()?;
        Ok(())
    }
}

impl<W: Write + Send> Sink for File<W> {
    fn take(&mut self, stored: &Stored, _: &[u8]) -> io::Result<()> {
        self.push(|column| (column.value)(stored))
    }

    fn withheld(&mut self, absent: &Absent) -> io::Result<()> {
        self.push(|column| columns::withheld(column, absent))
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.write_group().map_err(failed)?;
        let mut to = self.writer.into_inner().map_err(failed)?;
        to.flush()
    }
}

impl<W: Write + Send> File<W> {
    fn push(&mut self, cell: impl Fn(&Column) -> Cell) -> io::Result<()> {
        for (column, buffer) in COLUMNS.iter().zip(&mut self.columns) {
            self.bytes += buffer.push(cell(column));
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.write_group().map_err(failed)?;
        }
        Ok(())
    }
}

fn buffers() -> Vec<Buffer> {
    COLUMNS.iter().map(|column| Buffer::new(column.kind)).collect()
}

fn schema() -> Result<Type, ParquetError> {
    let mut fields = Vec::with_capacity(COLUMNS.len());
    for column in &COLUMNS {
        let (physical, logical) = match column.kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Integer => (Physical::INT64, None),
            Kind::Number => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(field));
    }
    Type::group_type_builder("attempt").with_fields(fields).build()
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
