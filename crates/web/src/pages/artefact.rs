//! Files that trials left, found by the digest in a record, and never served as a page.

use aec_base::digest::Digest;

use super::trial::read;
use crate::href::{Asked, record_file};
use crate::live;
use crate::respond::{self, Answer, Trouble};
use crate::site::Site;

/// Most bytes of a file that is served; the user finds larger ones in the project.
const LIMIT: u64 = 64 * 1024 * 1024;

pub(crate) fn serve(site: &Site, digest: &str, asked: &Asked) -> Result<Answer, Trouble> {
    let missing = || Trouble::missing("no record names such a file", "use the links of a trial's page");
    let is_digest =
        digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let digest =
        Digest::try_from(format!("sha256:{digest}")).ok().filter(|_| is_digest).ok_or_else(missing)?;
    let (experiment, stem) = asked.get("trial").and_then(|id| id.split_once('/')).ok_or_else(missing)?;
    let file =
        record_file(experiment, stem).filter(|file| live::is_recorded(site, file)).ok_or_else(missing)?;
    let record = read(site, &file)?;
    let submitted = record.outputs.submission.iter().flat_map(|submission| &submission.files);
    let (name, size) = record
        .all_artefacts()
        .map(|artefact| (&artefact.path, artefact.digest, artefact.size))
        .chain(submitted.map(|(path, file)| (path, file.digest, file.size)))
        .find(|(_, known, _)| *known == digest)
        .map(|(name, _, size)| (name.clone(), size))
        .ok_or_else(missing)?;
    if size > LIMIT {
        let what = format!("the file has {size} bytes, more than the {LIMIT} that are handed out here");
        return Err(Trouble::senseless(
            what,
            format!("it is in the project's jobs directory, below {}", file.id()),
        ));
    }
    let bytes = site.ledger.contents().read(digest, LIMIT).map_err(|_| {
        Trouble::internal("the content is missing or damaged", "`aec-bench ledger verify` says more")
    })?;
    Ok(respond::artefact(&name, bytes))
}
