//! A picture, and what its own first bytes say that it is: neither a name nor whoever sends it is believed.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The most bytes of a picture: as much as stays within 5 MiB in base64, which is how it is sent and how Anthropic counts
/// (platform.claude.com/docs/en/build-with-claude/vision; "image exceeds 5 MB maximum" in github.com/lobehub/lobehub/pull/14711).
pub const LARGEST_PICTURE: u64 = (5 << 20) / 4 * 3;

/// The most pixels of a side (the same page).
const LONGEST_SIDE: usize = 8000;

/// What a picture is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// Its kind: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
    /// How many bytes there are.
    pub bytes: u64,
}

/// Why bytes are no picture that can be sent to a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// They begin as no picture of a known kind does.
    #[error("this is no picture in PNG, JPEG, GIF or WebP")]
    Unknown,
    /// They begin as a picture and do not say how large it is.
    #[error("this {kind} picture is damaged: it does not say how large it is")]
    Damaged {
        /// Which kind, such as `PNG`.
        kind: &'static str,
    },
    /// There are too many bytes.
    #[error("make it smaller: {LARGEST_PICTURE} bytes are the most, and this picture has {bytes}")]
    TooLarge {
        /// How many there are.
        bytes: u64,
    },
    /// There are too many pixels.
    #[error("make it smaller: {LONGEST_SIDE} pixels are the most of a side, and this picture has {width}×{height}")]
    TooLong {
        /// From left to right.
        width: usize,
        /// From top to bottom.
        height: usize,
    },
}

impl Picture {
    /// What the picture is that these bytes are. Nothing is decoded.
    ///
    /// # Errors
    /// Where they are none that can be sent to a model.
    pub fn of(bytes: &[u8]) -> Result<Picture, PictureError> {
        let (kind, media_type) = kind(bytes).ok_or(PictureError::Unknown)?;
        let count = bytes.len() as u64;
        if count > LARGEST_PICTURE {
            return Err(PictureError::TooLarge { bytes: count });
        }
        let imagesize::ImageSize { width, height } = imagesize::blob_size(bytes).map_err(|_| PictureError::Damaged { kind })?;
        if width == 0 || height == 0 {
            return Err(PictureError::Damaged { kind });
        }
        if width > LONGEST_SIDE || height > LONGEST_SIDE {
            return Err(PictureError::TooLong { width, height });
        }
        let pixels = |side: usize| u32::try_from(side).expect("a side was compared with the longest");
        Ok(Picture { media_type: media_type.to_owned(), width: pixels(width), height: pixels(height), bytes: count })
    }

    /// Whether bytes that begin so are meant to be a picture.
    pub fn begins(bytes: &[u8]) -> bool {
        kind(bytes).is_some()
    }
}

/// What the first bytes say: the name of the format, and its media type.
fn kind(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    match imagesize::image_type(bytes).ok()? {
        imagesize::ImageType::Png => Some(("PNG", "image/png")),
        imagesize::ImageType::Jpeg => Some(("JPEG", "image/jpeg")),
        imagesize::ImageType::Gif => Some(("GIF", "image/gif")),
        imagesize::ImageType::Webp => Some(("WebP", "image/webp")),
        // The other formats are not compiled in.
        _ => None,
    }
}

/// In a few words, for people and models: `picture 640×480 png, 12 kB`.
impl fmt::Display for Picture {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.media_type.strip_prefix("image/").unwrap_or(&self.media_type);
        write!(out, "picture {}×{} {kind}, ", self.width, self.height)?;
        match self.bytes {
            0..1_000 => write!(out, "{} bytes", self.bytes),
            1_000..1_000_000 => write!(out, "{} kB", self.bytes.div_ceil(1_000)),
            _ => write!(out, "{}.{} MB", self.bytes / 1_000_000, self.bytes % 1_000_000 / 100_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// The head of a PNG of so many pixels.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        [&head[..], &width.to_be_bytes(), &height.to_be_bytes(), b"\x08\x06\0\0\0"].concat()
    }

    fn check(bytes: &[u8], expected: Expect) {
        let said = match Picture::of(bytes) {
            Ok(picture) => picture.to_string(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&said);
    }

    #[test]
    fn a_picture_is_what_its_bytes_say() {
        check(&png(640, 480), expect!["picture 640×480 png, 29 bytes"]);
        check(&[&png(1, 8000)[..], &[0; 12_000]].concat(), expect!["picture 1×8000 png, 13 kB"]);
        check(&[&png(1, 1)[..], &[0; 1_250_000]].concat(), expect!["picture 1×1 png, 1.2 MB"]);
        check(b"GIF89a\x10\0\x09\0\0\0\0", expect!["picture 16×9 gif, 13 bytes"]);
        let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x11\x08\0\x09\0\x10\x03\x01\x22\0";
        check(jpeg, expect!["picture 16×9 jpeg, 33 bytes"]);
        let webp = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\x0f\0\x02\0\0\0\0\0\0\0\0\0\0\0";
        check(webp, expect!["picture 16×9 webp, 35 bytes"]);
    }

    #[test]
    fn what_is_none_is_told() {
        check(b"", expect!["this is no picture in PNG, JPEG, GIF or WebP"]);
        check(b"<svg/>", expect!["this is no picture in PNG, JPEG, GIF or WebP"]);
        check(b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0", expect!["this is no picture in PNG, JPEG, GIF or WebP"]);
        check(&png(640, 480)[..12], expect!["this PNG picture is damaged: it does not say how large it is"]);
        check(&png(0, 480), expect!["this PNG picture is damaged: it does not say how large it is"]);
        check(&png(8001, 1), expect!["make it smaller: 8000 pixels are the most of a side, and this picture has 8001×1"]);
        check(
            &[&png(1, 1)[..], &[0; 5 << 20]].concat(),
            expect!["make it smaller: 3932160 bytes are the most, and this picture has 5242909"],
        );
    }

    #[test]
    fn the_largest_stays_within_the_limit_in_base64() {
        assert_eq!(LARGEST_PICTURE.div_ceil(3) * 4, 5 << 20);
    }
}
