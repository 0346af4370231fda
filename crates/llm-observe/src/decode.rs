//! Compressed answers, decoded on a copy while they pass.
//!
//! The client's bytes stay as the server sent them. Decoded bytes go straight on to the reader, in
//! small pieces and up to the last byte that has arrived, so that a compressed stream has the same
//! clocks as a plain one. What is decoded is bounded in proportion to what came, so that a
//! decompression bomb costs neither memory nor time.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::write::Decoder as ZstdDecoder;

/// Decoded bytes that any answer may have.
const BASE_BYTES: u64 = 16 * 1024 * 1024;
/// Decoded bytes that every compressed byte may add. Event streams, the most repetitive of what
/// servers send, stay far below.
const BYTES_PER_BYTE: u64 = 256;
/// The largest window that a zstd answer may ask for, as browsers have it: 8 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;
/// Bytes that the brotli decoder hands out at once.
const BROTLI_BUFFER: usize = 4 * 1024;

/// A writer behind its decoder.
pub(crate) enum Decoder<W: Write> {
    /// Not compressed.
    Identity(W),
    /// `gzip`
    Gzip(Box<MultiGzDecoder<Bounded<W>>>),
    /// `deflate`
    Deflate(Inflate<W>),
    /// `br`
    Brotli(Box<DecompressorWriter<Bounded<W>>>),
    /// `zstd`
    Zstd(Box<ZstdDecoder<'static, Bounded<W>>>),
}

impl<W: Write> Decoder<W> {
    /// A decoder for this `content-encoding`.
    ///
    /// # Errors
    /// The writer, when the encoding is not known.
    pub(crate) fn new(encoding: &str, writer: W) -> Result<Self, W> {
        let bounded = |inner| Bounded {
            inner,
            left: BASE_BYTES,
        };
        Ok(match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Self::Identity(writer),
            "gzip" | "x-gzip" => Self::Gzip(Box::new(MultiGzDecoder::new(bounded(writer)))),
            "deflate" => Self::Deflate(Inflate {
                state: None,
                writer: bounded(writer),
            }),
            "br" => Self::Brotli(Box::new(DecompressorWriter::new(
                bounded(writer),
                BROTLI_BUFFER,
            ))),
            "zstd" => {
                let Ok(raw) = zstd::stream::raw::Decoder::new().and_then(|mut raw| {
                    raw.set_parameter(zstd::stream::raw::DParameter::WindowLogMax(
                        ZSTD_WINDOW_LOG,
                    ))?;
                    Ok(raw)
                }) else {
                    return Err(writer);
                };
                Self::Zstd(Box::new(ZstdDecoder::with_decoder(bounded(writer), raw)))
            }
            _ => return Err(writer),
        })
    }

    /// The writer.
    pub(crate) fn writer(&self) -> &W {
        match self {
            Self::Identity(writer) => writer,
            Self::Gzip(decoder) => &decoder.get_ref().inner,
            Self::Deflate(inflate) => &inflate.writer.inner,
            Self::Brotli(decoder) => &decoder.get_ref().inner,
            Self::Zstd(decoder) => &decoder.get_ref().inner,
        }
    }

    /// The writer.
    pub(crate) fn writer_mut(&mut self) -> &mut W {
        match self {
            Self::Identity(writer) => writer,
            Self::Gzip(decoder) => &mut decoder.get_mut().inner,
            Self::Deflate(inflate) => &mut inflate.writer.inner,
            Self::Brotli(decoder) => &mut decoder.get_mut().inner,
            Self::Zstd(decoder) => &mut decoder.get_mut().inner,
        }
    }

    /// Decodes `bytes` and writes everything that can be told from them.
    ///
    /// # Errors
    /// When they are not what the encoding says, or decode to more than any answer would.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let more = BYTES_PER_BYTE * bytes.len() as u64;
        match self {
            Self::Identity(writer) => writer.write_all(bytes),
            Self::Gzip(decoder) => {
                decoder.get_mut().left += more;
                through(decoder, bytes)
            }
            Self::Deflate(inflate) => {
                inflate.writer.left += more;
                inflate.feed(bytes)
            }
            Self::Brotli(decoder) => {
                decoder.get_mut().left += more;
                through(decoder, bytes)
            }
            Self::Zstd(decoder) => {
                decoder.get_mut().left += more;
                through(decoder, bytes)
            }
        }
    }
}

/// `deflate`, with zlib's frame as the standard has it, or without as some servers send it.
pub(crate) struct Inflate<W> {
    /// Known with the first byte.
    state: Option<Decompress>,
    writer: Bounded<W>,
}

impl<W: Write> Inflate<W> {
    fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut out = [0; 8 * 1024];
        loop {
            let state = self.state.get_or_insert_with(|| {
                // A zlib frame begins with its method, 8, and a window of at most 32 KiB.
                let zlib = bytes.first().is_some_and(|first| first & 0x8f == 0x08);
                Decompress::new(zlib)
            });
            let (taken, given) = (state.total_in(), state.total_out());
            let status = state.decompress(bytes, &mut out, FlushDecompress::None)?;
            let place = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
            bytes = bytes
                .get(place(state.total_in() - taken)..)
                .unwrap_or_default();
            let given = place(state.total_out() - given).min(out.len());
            self.writer.write_all(&out[..given])?;
            let has_more = given == out.len() || (!bytes.is_empty() && given > 0);
            if status == Status::StreamEnd || !has_more {
                return Ok(());
            }
        }
    }
}

fn through(decoder: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    decoder.write_all(bytes)?;
    decoder.flush()
}

/// The answer decodes to far more than it is.
#[derive(Debug, thiserror::Error)]
#[error("it decodes to far more than it is")]
pub(crate) struct TooLarge;

/// Takes no more than it is allowed.
pub(crate) struct Bounded<W> {
    inner: W,
    left: u64,
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            return Err(io::Error::other(TooLarge));
        };
        self.left = left;
        self.inner.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::compressed;

    /// What has come out after each of `parts`, which were flushed one by one.
    fn decoded(encoding: &str, parts: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut decoder = Decoder::new(encoding, Vec::new()).ok().unwrap();
        let reported = |part| {
            decoder.feed(part).unwrap();
            decoder.writer().clone()
        };
        parts.iter().copied().map(reported).collect()
    }

    #[test]
    fn every_encoding_gives_all_of_what_was_flushed_at_once() {
        for encoding in ["gzip", "deflate", "deflate-raw", "br", "zstd", "identity"] {
            let parts = compressed(encoding, &[b"data: one\n\n", b"data: two\n\n"]);
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let name = encoding.trim_end_matches("-raw");
            let after = decoded(name, &parts);
            assert_eq!(after[0], b"data: one\n\n", "{encoding}");
            assert_eq!(after[1], b"data: one\n\ndata: two\n\n", "{encoding}");
            let bytes = parts.concat();
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(decoded(name, &single).last(), after.last(), "{encoding}");
        }
    }

    #[test]
    fn a_decompression_bomb_is_given_up() {
        struct Count(u64);
        impl Write for Count {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                assert!(bytes.len() <= 128 * 1024, "handed out in small pieces");
                self.0 += bytes.len() as u64;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let zeros = vec![0; 24 * 1024 * 1024];
        for encoding in ["gzip", "deflate", "br", "zstd"] {
            let bomb = compressed(encoding, &[&zeros]).concat();
            let mut decoder = Decoder::new(encoding, Count(0)).ok().unwrap();
            assert!(decoder.feed(&bomb).is_err(), "{encoding}");
            let allowed = BASE_BYTES + BYTES_PER_BYTE * bomb.len() as u64;
            assert!(decoder.writer().0 <= allowed, "{encoding}");
        }
    }

    #[test]
    fn rubbish_is_an_error_and_an_unknown_encoding_is_given_back() {
        for encoding in ["gzip", "deflate", "zstd", "br"] {
            let mut decoder = Decoder::new(encoding, Vec::new()).ok().unwrap();
            let rubbish = [0xff_u8, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa].repeat(100);
            assert!(decoder.feed(&rubbish).is_err(), "{encoding}");
        }
        assert!(Decoder::new("compress", Vec::new()).is_err());
        assert!(Decoder::new("gzip, br", Vec::new()).is_err());
    }
}
