//! Pictures that a tool names on lines `IMAGE:<path>`: the model sees them beside the text.

use aec_model::message::Part;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::workspace::Workspace;

/// The beginning of a line that names a picture.
const MARK: &str = "IMAGE:";
/// Bytes of one picture.
const LARGEST: u64 = 5 * 1024 * 1024;
/// Most pictures of one call.
const MOST: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Images {
    /// The pictures for the model.
    pub(crate) parts: Vec<Part>,
    pub(crate) paths: Vec<String>,
    /// Why other pictures are not shown.
    pub(crate) remarks: Vec<String>,
}

/// The pictures that an output names.
pub(crate) async fn named_in(workspace: &Workspace, output: &str) -> Images {
    let mut images = Images::default();
    let lines = output.lines().filter_map(|line| line.trim().strip_prefix(MARK)).map(str::trim);
    for (index, path) in lines.filter(|path| !path.is_empty()).enumerate() {
        if index == MOST {
            images.remarks.push(format!("[only the first {MOST} pictures are shown]"));
            break;
        }
        let shown = aec_base::text::printable(path).into_owned();
        let why_not = match workspace.read(path, LARGEST).await {
            Err(error) => error.to_string(),
            Ok(bytes) => match media_type(&bytes) {
                None => "it is not a PNG, JPEG, GIF or WebP picture".to_owned(),
                Some(media_type) => {
                    let media_type = media_type.to_owned();
                    images.parts.push(Part::Image { media_type, data: STANDARD.encode(&bytes) });
                    images.paths.push(shown);
                    continue;
                }
            },
        };
        images.remarks.push(format!("[the picture {shown} is not shown: {why_not}]"));
    }
    images
}

/// The type according to the first bytes; file names are not trusted.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
