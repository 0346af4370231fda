//! The bodies of a session in one file, `bodies.zst`: a single zstd stream, so that a prompt that
//! repeats all of the one before costs next to nothing.
//!
//! Framed within: a JSON line ([`BodyLine`]), then as many bytes as it says are stored, then a
//! line feed. Flushed after each body: a file whose writer was killed is readable up to there.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The name of the file in a session's folder.
pub const BODIES_FILE: &str = "bodies.zst";

/// How far back repetition is found: 16 MiB, many prompts. Also about the memory that a session's
/// stream takes while it is written.
const WINDOW_LOG: u32 = 24;

/// Which body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyKind {
    /// As the client sent it, before any nonce.
    Request,
    /// As the server sent it.
    Response,
}

/// Why not all bytes of a body are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Omitted {
    /// Bodies were not to be kept.
    NotKept,
    /// It is compressed, and could hide a secret.
    Encoded,
    /// Only its beginning is stored; the rest was too long.
    TooLong,
    /// The disk was slower than the agents.
    Dropped,
}

/// What is known of a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyLine {
    /// The request's number, as in `requests.jsonl`.
    pub number: u32,
    /// Request or response.
    pub kind: BodyKind,
    /// Bytes that passed; of a dropped one, those that were seen.
    pub length: u64,
    /// SHA-256 of what passed, hexadecimal; `null` when it was dropped.
    pub sha256: Option<String>,
    /// Bytes that follow this line.
    pub stored: u64,
    /// Why those are not all; `null` when they are.
    pub omitted: Option<Omitted>,
    /// Whether secrets were taken out.
    pub redacted: bool,
}

/// A file of bodies that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BodiesError {
    /// No such file, or no access.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not what flashrig writes.
    #[error("{path}: body {index} is not framed as flashrig frames it: {message}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Which body of the file, from 1.
        index: usize,
        /// What is wrong.
        message: String,
    },
}

/// A file of bodies being written.
pub struct BodiesFile {
    path: PathBuf,
    encoder: zstd::Encoder<'static, File>,
}

impl BodiesFile {
    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut encoder = zstd::Encoder::new(File::create(path)?, 3)?;
        encoder.window_log(WINDOW_LOG)?;
        encoder.long_distance_matching(true)?;
        encoder.include_checksum(true)?;
        Ok(Self {
            path: path.to_owned(),
            encoder,
        })
    }

    /// Appends a body and flushes it. `line.stored` must be the length of `body`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, line: &BodyLine, body: &[u8]) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.encoder.write_all(&text)?;
        self.encoder.write_all(body)?;
        self.encoder.write_all(b"\n")?;
        self.encoder.flush()
    }

    /// Ends the stream; the length of the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> io::Result<u64> {
        Ok(self.encoder.finish()?.metadata()?.len())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads a session's bodies in the order in which they were written. `take` gets each and says
/// whether to go on. `false` when the file is cut off: its writer is still at it, or was killed.
///
/// # Errors
/// See [`BodiesError`].
pub fn read_bodies(
    path: &Path,
    mut take: impl FnMut(BodyLine, Vec<u8>) -> bool,
) -> Result<bool, BodiesError> {
    let unreadable = |source| BodiesError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut reader = BufReader::new(zstd::Decoder::new(file).map_err(unreadable)?);
    for index in 1.. {
        match read_one(&mut reader) {
            Ok(Some((line, body))) => {
                if !take(line, body) {
                    break;
                }
            }
            Ok(None) => break,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => {
                return Err(BodiesError::Invalid {
                    path: path.to_owned(),
                    index,
                    message: e.to_string(),
                });
            }
        }
    }
    Ok(true)
}

fn read_one(reader: &mut impl BufRead) -> io::Result<Option<(BodyLine, Vec<u8>)>> {
    let mut text = Vec::new();
    if reader.read_until(b'\n', &mut text)? == 0 {
        return Ok(None);
    }
    if text.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let line: BodyLine = serde_json::from_slice(&text)?;
    // Not sized by what the line says: a file from elsewhere may say anything.
    let mut body = Vec::new();
    reader.by_ref().take(line.stored).read_to_end(&mut body)?;
    let mut end = [0];
    reader.read_exact(&mut end)?;
    Ok(Some((line, body)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn line(number: u32, kind: BodyKind, body: &[u8]) -> BodyLine {
        BodyLine {
            number,
            kind,
            length: body.len() as u64,
            sha256: Some("00".into()),
            stored: body.len() as u64,
            omitted: None,
            redacted: false,
        }
    }

    /// Text that does not compress by itself.
    fn noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..bytes)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                b' ' + (state % 90) as u8
            })
            .collect()
    }

    fn all(path: &Path) -> (Vec<(BodyLine, Vec<u8>)>, bool) {
        let mut found = Vec::new();
        let whole = read_bodies(path, |line, body| {
            found.push((line, body));
            true
        });
        (found, whole.unwrap())
    }

    #[test]
    fn sixty_turns_of_growing_100_kb_prompts_take_far_less_than_6_mb() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join(BODIES_FILE);
        let mut file = BodiesFile::create(&path).unwrap();
        let mut prompt = noise(100 * 1024, 1);
        let mut written = Vec::new();
        for turn in 1..=60 {
            let answer = noise(2048, 1000 + u64::from(turn));
            for (kind, body) in [(BodyKind::Request, &prompt), (BodyKind::Response, &answer)] {
                file.append(&line(turn, kind, body), body).unwrap();
                written.push(body.clone());
            }
            prompt.extend(answer);
        }
        let bytes = file.finish().unwrap();
        // 100 KB of noise and 60 answers of 2 KB, each once as an answer and once in a prompt.
        assert!(bytes < 400 * 1024, "{bytes}");
        let (found, whole) = all(&path);
        assert!(whole);
        let bodies: Vec<Vec<u8>> = found.into_iter().map(|(_, body)| body).collect();
        assert!(bodies == written);
    }

    #[test]
    fn a_file_whose_writer_was_killed_is_readable_up_to_the_last_body() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join(BODIES_FILE);
        let mut file = BodiesFile::create(&path).unwrap();
        for number in 1..=3 {
            let body = noise(5000, number.into());
            file.append(&line(number, BodyKind::Request, &body), &body)
                .unwrap();
        }
        // As a kill leaves it: no end of the stream, nothing of what was still in memory.
        std::mem::forget(file);
        let (found, whole) = all(&path);
        assert_eq!(found.len(), 3);
        assert!(!whole);
        assert!(found[2].1 == noise(5000, 3));

        let length = std::fs::metadata(&path).unwrap().len();
        let cut = File::options().write(true).open(&path).unwrap();
        cut.set_len(length - 100).unwrap();
        let (found, whole) = all(&path);
        assert_eq!((found.len(), whole), (2, false));
    }

    #[test]
    fn a_file_of_something_else_is_an_error_that_says_so() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join(BODIES_FILE);
        std::fs::write(&path, "hello, this is no zstd").unwrap();
        let error = read_bodies(&path, |_, _| true).unwrap_err().to_string();
        assert!(error.contains("bodies.zst"), "{error}");
    }
}
