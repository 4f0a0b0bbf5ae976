//! Pictures that a person gives with a task or a message: read and looked at before anything begins, kept with the run.

use super::failure::Failure;
use anyhow::{Context, anyhow};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use trace::{LARGEST_PICTURE, ModelSpec, Part, Picture, PictureError, Record};

/// Pictures that were read and are not kept yet.
#[derive(Default)]
pub struct Pictures(Vec<Given>);

struct Given {
    path: PathBuf,
    picture: Picture,
    bytes: Vec<u8>,
}

impl Pictures {
    /// Reads the pictures at `paths`.
    pub fn read(paths: &[PathBuf]) -> Result<Pictures, Failure> {
        let read = |path: &PathBuf| {
            let given = read(path).with_context(|| format!("reading the picture {} (--image)", path.display()));
            given.map_err(Failure::Usage)
        };
        paths.iter().map(read).collect::<Result<_, _>>().map(Pictures)
    }

    /// Refuses pictures that the model would not be sent.
    pub fn refuse_unseen(&self, spec: &ModelSpec) -> Result<(), Failure> {
        let pixels = self.0.iter().map(|given| given.picture.width.max(given.picture.height)).max().unwrap_or_default();
        let (given, most) = (self.0.len() as u64, spec.most_images(pixels).unwrap_or(u64::MAX));
        if given > most {
            return Err(Failure::usage(format!(
                "`{}` takes {most} of these {given} pictures at once: give fewer --image, or choose another model with --model",
                spec.id
            )));
        }
        let unseen = self.0.iter().find(|given| !model::takes(spec, &given.picture.media_type));
        unseen.map_or(Ok(()), |given| {
            let what = if spec.images == Some(false) { "pictures" } else { given.picture.media_type.as_str() };
            Err(Failure::usage(format!(
                "`{}` takes no {what}, so it would not see {}: leave --image out, or choose another model with --model",
                spec.id,
                given.path.display()
            )))
        })
    }

    /// Keeps them in `record`, and puts them before `text`: so models see best what is asked about them.
    pub fn before(&self, text: &str, record: &Record) -> Result<Vec<Part>, Failure> {
        let keep = |Given { path, picture, bytes }: &Given| {
            if !record.secrets().places(bytes).is_empty() {
                return Err(Failure::usage(format!("the picture {} holds a secret: leave it out", path.display())));
            }
            let blob = record.blobs().put(bytes).map_err(|error| {
                Failure::Infrastructure(anyhow!("keeping the picture {} with the run: {error}", path.display()))
            })?;
            Ok(Part::Image { blob, picture: picture.clone() })
        };
        self.0.iter().map(keep).chain([Ok(Part::text(text))]).collect()
    }
}

fn read(path: &Path) -> anyhow::Result<Given> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(LARGEST_PICTURE + 1).read_to_end(&mut bytes)?;
    let picture = match Picture::of(&bytes) {
        Err(PictureError::TooLarge { bytes }) => Err(PictureError::TooLarge { bytes: length.max(bytes) }),
        other => other,
    };
    Ok(Given { path: path.to_owned(), picture: picture?, bytes })
}
