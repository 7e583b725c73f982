//! A task's files for the long-document harnesses: their settings, and the template of the report to write.
//!
//! Everything here is pure: text in, values and [`Problem`](aec_base::problem::Problem)s out.
//!
//! Ids of problems begin with `O`. Besides those that all formats share (001 to 007):
//!
//! | number | meaning |
//! |---|---|
//! | 060 | note: a bare `null` was read as "not set" |
//! | 061 | a part of the format that is not supported here |
//! | 062 | a path that is not a plain path below its directory |
//! | 063 | a name that Python cannot have, or that is taken |
//! | 064 | a sub-call that is not offered, or has no implementation |
//! | 065 | warning: a share written where per cent are meant |
//! | 066 | two sections, fields or entries of one name |
//! | 067 | a section that depends on one that does not exist, on itself, or on one twice |
//! | 068 | sections that wait for each other in a circle |
//! | 069 | dependencies in a template of the tier `flat` |
//! | 070 | note: a part of the template that is read by others and ignored here |
//! | 071 | a mapping that names a section or source that does not exist |
//! | 072 | the file is too large |
//! | 073 | a file that settings name and the task does not have, or that agents must not see |

pub mod files;
pub mod settings;
pub mod template;

mod source_file;

use aec_base::document::Family;

/// Ids of problems of the long-document harnesses begin with `O`.
pub const FAMILY: Family = Family('O');

/// The numbers of problems that only these files have.
mod number_of {
    pub(super) const NULL: u32 = 60;
    pub(super) const UNSUPPORTED: u32 = 61;
    pub(super) const PATH: u32 = 62;
    pub(super) const NAME: u32 = 63;
    pub(super) const SUBCALL: u32 = 64;
    pub(super) const SHARE: u32 = 65;
    pub(super) const TWICE: u32 = 66;
    pub(super) const DEPENDENCY: u32 = 67;
    pub(super) const CYCLE: u32 = 68;
    pub(super) const FLAT: u32 = 69;
    pub(super) const IGNORED: u32 = 70;
    pub(super) const MAPPING: u32 = 71;
    pub(super) const TOO_LARGE: u32 = 72;
    pub(super) const ABSENT: u32 = 73;
}
