//! Images of tasks: built from `environment/`, found again by a digest of what they were built from.
//!
//! The image of a room has three parts: the result of the task's `Dockerfile`, the extensions that the task asks for,
//! and our small program together with a copy of `/workspace`, which is a new directory in every room. The image of a
//! container beside a room is what its service names, the files that are copied into it, and that program.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aec_base::digest::Hasher;
use aec_sandbox::wire::SEED;
use aec_task::compose::{Build, COMPOSE_FILES, Compose, Service, Source};

use crate::context::{BuildContext, directory, file, text};
use crate::entry::Entry;

pub const DOCKERFILE: &str = "Dockerfile";
/// The name of images of rooms and services.
pub(crate) const ROOM_IMAGES: &str = "localhost/aec-bench/room";
/// Changes when the structure of images changes.
const FORMAT: &str = "1";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskImage {
    /// The task's `environment/`.
    pub environment: PathBuf,
    /// Names of extensions.
    pub extensions: Vec<String>,
    /// How long a build may take.
    pub build_timeout: Duration,
}

impl TaskImage {
    /// The files for the task's own build, without those that describe services or belong only to services.
    fn context(&self) -> io::Result<BuildContext> {
        let mut left_out = services(&self.environment)?.private();
        left_out.extend(COMPOSE_FILES.map(PathBuf::from));
        BuildContext::read_without(&self.environment, &left_out)
    }

    /// The extensions. An unknown one is an error.
    pub(crate) fn layers(&self) -> io::Result<Vec<Extension>> {
        let known = |name: &String| {
            Extension::parse(name)
                .ok_or_else(|| io::Error::other(format!("the extension `{name}` is unknown")))
        };
        self.extensions.iter().map(known).collect()
    }
}

/// The services of a task.
pub(crate) fn services(environment: &Path) -> io::Result<Compose> {
    Compose::read(environment).map_err(|problems| {
        let what = problems.first().map_or("it cannot be read", |problem| problem.what.as_str());
        io::Error::other(format!("the containers of environment/ are not understood: {what}"))
    })
}

/// How many different images some tasks need: tasks with the same inputs share one.
pub fn different<'a>(images: impl IntoIterator<Item = &'a TaskImage>) -> io::Result<usize> {
    let mut found = BTreeSet::new();
    for image in images {
        let layers: Vec<&str> = image.layers()?.iter().map(|layer| layer.name()).collect();
        found.insert((image.context()?.digest, layers));
    }
    Ok(found.len())
}

/// A layer that tasks request by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// The Claude command line, for agents that are separate programs.
    ClaudeCli,
    /// Python packages for pictures and PDF files.
    Multimodal,
    /// Reading text in pictures.
    Ocr,
}

impl Extension {
    pub const ALL: [Self; 3] = [Self::ClaudeCli, Self::Multimodal, Self::Ocr];

    /// The name as written in `task.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCli => "claude-cli",
            Self::Multimodal => "multimodal",
            Self::Ocr => "ocr",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|extension| extension.name() == name)
    }

    /// Its build instructions. They need an image of the Debian family and, while they run, a network.
    pub fn layer(self) -> &'static str {
        match self {
            Self::ClaudeCli => {
                "RUN apt-get update && apt-get install -y --no-install-recommends nodejs npm \
                 && npm install -g @anthropic-ai/claude-code && rm -rf /var/lib/apt/lists/*\n"
            }
            Self::Multimodal => {
                "RUN python3 -m pip install --no-cache-dir --break-system-packages pillow==12.0.0 pypdf==6.1.1\n"
            }
            Self::Ocr => {
                "RUN apt-get update && apt-get install -y --no-install-recommends tesseract-ocr poppler-utils \
                 && rm -rf /var/lib/apt/lists/*\n"
            }
        }
    }
}

/// What all containers of a task are made from, as read for the first caller.
#[derive(Debug)]
pub(crate) struct Kit {
    pub(crate) compose: Compose,
    pub(crate) room: Recipe,
    /// In the order of the services.
    pub(crate) services: Vec<Recipe>,
    /// How long a build may take.
    pub(crate) build_timeout: Duration,
}

impl Kit {
    pub(crate) fn read(wanted: &TaskImage, entry: &Entry) -> io::Result<Self> {
        let compose = services(&wanted.environment)?;
        let recipes =
            compose.services.iter().map(|service| Recipe::of_service(&wanted.environment, service, entry));
        Ok(Self {
            services: recipes.collect::<io::Result<_>>()?,
            room: Recipe::of_room(wanted, entry)?,
            build_timeout: wanted.build_timeout,
            compose,
        })
    }
}

/// The names of two images: the result of the task's own instructions, and the image of its containers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Names {
    pub(crate) own: String,
    pub(crate) room: String,
}

#[derive(Debug)]
pub(crate) struct Recipe {
    pub(crate) names: Names,
    /// The task's own build; absent if the image comes from a registry.
    own: Option<(BuildContext, Build)>,
    /// The instructions that are added to it.
    instructions: String,
    /// Files for those instructions, each below a directory of the given name.
    files: Vec<(String, BuildContext)>,
}

impl Recipe {
    pub(crate) fn of_room(wanted: &TaskImage, entry: &Entry) -> io::Result<Self> {
        let (context, build) = (wanted.context()?, Build::default());
        if !context.has(&build.dockerfile) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no environment/Dockerfile"));
        }
        let layers = wanted.layers()?;
        let layers: String = layers.iter().map(|extension| extension.layer()).collect();
        let own = built_name(&context, &build);
        // Copying an empty directory creates `/workspace` if the image does not have it.
        let instructions = format!(
            "FROM {own} AS task\nUSER 0\nCOPY nothing/ /workspace/\n{layers}FROM task\n\
             COPY --from=task /workspace/ {SEED}/\n"
        );
        Ok(Self::new(own, Some((context, build)), instructions, Vec::new(), entry))
    }

    /// The image of a container beside a room.
    pub(crate) fn of_service(environment: &Path, service: &Service, entry: &Entry) -> io::Result<Self> {
        let (own, build) = match &service.source {
            Source::Image(name) => (name.clone(), None),
            Source::Build(build) => {
                let context = BuildContext::read(&environment.join(&build.context))?;
                (built_name(&context, build), Some((context, build.clone())))
            }
        };
        let mut instructions = format!("FROM {own}\n");
        let mut files = Vec::new();
        for (number, given) in service.files.iter().enumerate() {
            let path = environment.join(&given.source);
            let name = format!("given-{number}");
            // A single file is copied as the only one of its directory.
            let (context, from, to) = if path.is_dir() {
                (BuildContext::read(&path)?, format!("{name}/"), format!("{}/", given.target))
            } else {
                let context = BuildContext::of_file(&path)?;
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                (context, format!("{name}/{file}"), given.target.clone())
            };
            instructions.push_str(&format!("COPY {}\n", serde_json::json!([from, to])));
            files.push((name, context));
        }
        Ok(Self::new(own, build, instructions, files, entry))
    }

    fn new(
        own: String,
        build: Option<(BuildContext, Build)>,
        mut instructions: String,
        files: Vec<(String, BuildContext)>,
        entry: &Entry,
    ) -> Self {
        instructions.push_str(&format!("COPY entry/ {}/\n", Entry::place()));
        let mut parts = vec![own.as_bytes(), instructions.as_bytes(), entry.digest.bytes()];
        parts.extend(files.iter().map(|(_, context)| context.digest.bytes().as_slice()));
        let room = format!("{ROOM_IMAGES}:{}", digest(&parts));
        Self { names: Names { own, room }, own: build, instructions, files }
    }

    /// Whether its input files have changed since they were read.
    pub(crate) fn has_changed(&self) -> bool {
        let own = self.own.iter().map(|(context, _)| context);
        own.chain(self.files.iter().map(|(_, context)| context)).any(|context| !context.is_as_read())
    }

    /// The task's own build.
    pub(crate) fn own(&self) -> Option<(&BuildContext, &Build)> {
        self.own.as_ref().map(|(context, build)| (context, build))
    }

    /// The second build: an archive with instructions, files and this program.
    pub(crate) fn archive(&self, entry: &Entry, to: impl io::Write) -> io::Result<()> {
        let mut archive = tar::Builder::new(to);
        text(&mut archive, DOCKERFILE, &self.instructions)?;
        directory(&mut archive, Path::new("nothing"))?;
        for (name, context) in &self.files {
            context.archive(Path::new(name), &mut archive)?;
        }
        for (name, path) in entry.files() {
            let opened = fs_err::File::open(path)?.into_parts().0;
            file(&mut archive, &Path::new("entry").join(name), opened, 0o755)?;
        }
        archive.finish()
    }
}

fn built_name(context: &BuildContext, build: &Build) -> String {
    let mut parts = vec![context.digest.bytes().to_vec()];
    if *build != Build::default() {
        let Build { context: _, dockerfile, args, target } = build;
        parts.push(format!("{}\0{args:?}\0{target:?}", dockerfile.display()).into_bytes());
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    format!("localhost/aec-bench/task:{}", digest(&parts))
}

fn digest(parts: &[&[u8]]) -> String {
    let mut hasher = Hasher::default();
    hasher.part(FORMAT.as_bytes());
    for part in parts {
        hasher.part(part);
    }
    hasher.finish().hex()[..24].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs_err::write(directory.path().join(DOCKERFILE), "FROM python:3.12-slim\n").unwrap();
        fs_err::create_dir_all(directory.path().join("db/sql")).unwrap();
        fs_err::write(directory.path().join("db/Dockerfile"), "FROM x\n").unwrap();
        fs_err::write(directory.path().join("db/sql/begin.sql"), "select 1;\n").unwrap();
        directory
    }

    fn service(environment: &Path, text: &str) -> Service {
        fs_err::write(environment.join("docker-compose.yaml"), format!("services:\n  db: {text}\n")).unwrap();
        let mut compose = Compose::read(environment).unwrap();
        fs_err::remove_file(environment.join("docker-compose.yaml")).unwrap();
        compose.services.remove(0)
    }

    #[test]
    fn names_change_with_whatever_images_are_made_from() {
        let directory = environment();
        let entry = Entry::of(std::env::current_exe().unwrap()).unwrap();
        let names = |extensions: &[Extension]| {
            let wanted = TaskImage {
                environment: directory.path().to_owned(),
                extensions: extensions.iter().map(|extension| extension.name().to_owned()).collect(),
                build_timeout: Duration::ZERO,
            };
            Recipe::of_room(&wanted, &entry).unwrap().names
        };
        let first = names(&[]);
        assert_eq!(names(&[]), first);
        let with_ocr = names(&[Extension::Ocr]);
        assert_eq!(with_ocr.own, first.own);
        assert_ne!(with_ocr.room, first.room);
        let file = directory.path().join("db/sql/begin.sql");
        fs_err::write(&file, "select 2;\n").unwrap();
        assert_ne!(names(&[]).own, first.own);
        fs_err::write(&file, "select 1;\n").unwrap();
        assert_eq!(names(&[]), first);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(directory.path().join(DOCKERFILE), executable).unwrap();
        assert_ne!(names(&[]).own, first.own);
        fs_err::remove_file(directory.path().join(DOCKERFILE)).unwrap();
        let wanted = TaskImage {
            environment: directory.path().to_owned(),
            extensions: Vec::new(),
            build_timeout: Duration::ZERO,
        };
        assert!(Recipe::of_room(&wanted, &entry).unwrap_err().to_string().contains("Dockerfile"));
    }

    #[test]
    fn images_beside_a_room_have_their_files_and_this_program() {
        let directory = environment();
        let entry = Entry::of(std::env::current_exe().unwrap()).unwrap();
        let recipe = |text: &str| {
            Recipe::of_service(directory.path(), &service(directory.path(), text), &entry).unwrap()
        };
        let plain = recipe("{ image: postgres:16 }");
        assert_eq!((plain.names.own.as_str(), plain.own().is_none()), ("postgres:16", true));
        let given = "{ image: postgres:16, volumes: [\"./db/sql:/begin\", \"./db/Dockerfile:/etc/d\"] }";
        let with_files = recipe(given);
        assert_ne!(with_files.names.room, plain.names.room);
        assert_eq!(
            with_files.instructions,
            "FROM postgres:16\nCOPY [\"given-0/\",\"/begin/\"]\n\
             COPY [\"given-1/Dockerfile\",\"/etc/d\"]\nCOPY entry/ /.aec-bench/entry/\n"
        );
        let mut bytes = Vec::new();
        with_files.archive(&entry, &mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned())
            .collect();
        assert!(
            names.starts_with(
                &["Dockerfile", "nothing", "given-0/begin.sql", "given-1/Dockerfile", "entry/aec-bench"]
                    .map(str::to_owned)
            ),
            "{names:?}"
        );
        let built = recipe("{ build: db }");
        let argued = recipe("{ build: { context: db, args: { A: b } } }");
        assert_ne!(built.names.own, argued.names.own);
        fs_err::write(directory.path().join("db/sql/begin.sql"), "select 2;\n").unwrap();
        assert_ne!(recipe(given).names.room, with_files.names.room);
    }

    #[test]
    fn images_of_the_same_are_one() {
        let (one, two) = (environment(), environment());
        let image = |directory: &tempfile::TempDir, extensions: &[&str]| TaskImage {
            environment: directory.path().to_owned(),
            extensions: extensions.iter().map(|name| (*name).to_owned()).collect(),
            build_timeout: Duration::ZERO,
        };
        let count = |images: &[TaskImage]| different(images).unwrap();
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[image(&one, &[]), image(&two, &[]), image(&one, &["ocr"])]), 2);
        fs_err::write(two.path().join("more.txt"), "").unwrap();
        assert_eq!(count(&[image(&one, &[]), image(&two, &[])]), 2);
        assert!(different(&[image(&one, &["none"])]).is_err());
    }

    #[test]
    fn extensions_have_names_of_their_own() {
        for extension in Extension::ALL {
            assert_eq!(Extension::parse(extension.name()), Some(extension));
            assert!(extension.layer().starts_with("RUN ") && extension.layer().ends_with('\n'));
        }
        assert_eq!(
            Extension::ALL.map(Extension::name),
            aec_task::validate::EXTENSIONS,
            "what tasks may ask for"
        );
        assert_eq!(Extension::parse("claude"), None);
    }
}
