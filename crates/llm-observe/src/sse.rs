//! An incremental reader of server-sent events.
//!
//! It takes bytes in any chunking and gives the same events for all of them: line ends may be CR,
//! LF or CRLF, a chunk may end anywhere, also inside a character. Memory is bounded: an event
//! longer than the cap is given out cut short and marked, and reading goes on behind it.

/// The longest event kept, in bytes of field values.
const CAP: usize = 4 * 1024 * 1024;

/// A buffer that grew beyond this is given back after its event.
const KEEP_CAPACITY: usize = 64 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SseEvent<'a> {
    /// The event's name; empty when it has none.
    pub(crate) name: &'a [u8],
    /// The data lines, joined by LF.
    pub(crate) data: &'a [u8],
    /// The data was longer than the cap; `data` holds its start only.
    pub(crate) oversize: bool,
}

/// The reader.
#[derive(Debug)]
pub(crate) struct Parser {
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    oversize: bool,
    line_cut: bool,
    after_cr: bool,
    at_start: bool,
    cap: usize,
}

impl Default for Parser {
    fn default() -> Self {
        Self::with_cap(CAP)
    }
}

impl Parser {
    fn with_cap(cap: usize) -> Self {
        Self {
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            oversize: false,
            line_cut: false,
            after_cr: false,
            at_start: true,
            cap,
        }
    }

    /// Takes more bytes and hands out every event that they complete.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], out: &mut impl FnMut(SseEvent<'_>)) {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                self.extend_line(bytes);
                return;
            };
            self.extend_line(&bytes[..end]);
            self.after_cr = bytes[end] == b'\r';
            self.end_line(out);
            bytes = &bytes[end + 1..];
        }
    }

    /// The stream is over: an event without its closing blank line is handed out too, as clients
    /// commonly do.
    pub(crate) fn finish(&mut self, out: &mut impl FnMut(SseEvent<'_>)) {
        if !self.line.is_empty() {
            self.end_line(out);
        }
        self.dispatch(out);
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        // The field's name and the byte order mark may come on top of the cap.
        let room = (self.cap + 16)
            .saturating_sub(self.line.len())
            .min(bytes.len());
        self.line_cut |= room < bytes.len();
        self.line.extend_from_slice(&bytes[..room]);
    }

    fn end_line(&mut self, out: &mut impl FnMut(SseEvent<'_>)) {
        let mut line = std::mem::take(&mut self.line);
        let cut = std::mem::take(&mut self.line_cut);
        if std::mem::take(&mut self.at_start) && line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        if line.is_empty() {
            self.dispatch(out);
        } else {
            self.field(&line, cut);
        }
        line.clear();
        if line.capacity() <= KEEP_CAPACITY {
            self.line = line;
        }
    }

    fn field(&mut self, line: &[u8], cut: bool) {
        let (name, value) = match line.iter().position(|&b| b == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => value.clone_into(&mut self.name),
            b"data" => self.data_line(value, cut),
            // Older llama.cpp servers report a fault in a field of its own.
            b"error" => {
                self.name = b"error".to_vec();
                self.data_line(value, cut);
            }
            // Comments (an empty name), ids, retry times and unknown fields say nothing here.
            _ => {}
        }
    }

    fn data_line(&mut self, value: &[u8], cut: bool) {
        if std::mem::replace(&mut self.has_data, true) && self.data.len() < self.cap {
            self.data.push(b'\n');
        }
        let room = self.cap.saturating_sub(self.data.len()).min(value.len());
        self.oversize |= cut || room < value.len();
        self.data.extend_from_slice(&value[..room]);
    }

    fn dispatch(&mut self, out: &mut impl FnMut(SseEvent<'_>)) {
        if self.has_data {
            out(SseEvent {
                name: &self.name,
                data: &self.data,
                oversize: self.oversize,
            });
        }
        self.has_data = false;
        self.oversize = false;
        for buffer in [&mut self.name, &mut self.data] {
            buffer.clear();
            if buffer.capacity() > KEEP_CAPACITY {
                *buffer = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (String, String, bool);

    fn events(parser: &mut Parser, chunks: &[&[u8]]) -> Vec<Owned> {
        let mut found = Vec::new();
        let mut out = |event: SseEvent<'_>| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            found.push((text(event.name), text(event.data), event.oversize));
        };
        for chunk in chunks {
            parser.feed(chunk, &mut out);
        }
        parser.finish(&mut out);
        found
    }

    fn one(name: &str, data: &str) -> Owned {
        (name.into(), data.into(), false)
    }

    #[test]
    fn lf_cr_and_crlf_give_the_same_events() {
        let want = [one("a", "1\n2"), one("", "3")];
        for end in ["\n", "\r", "\r\n"] {
            let text =
                "event: a\ndata:1\ndata: 2\n\n: ping\n\nid: 9\ndata: 3\n\n".replace('\n', end);
            assert_eq!(
                events(&mut Parser::default(), &[text.as_bytes()]),
                want,
                "{end:?}"
            );
        }
    }

    #[test]
    fn comments_and_events_without_data_are_nothing() {
        let text = b": keepalive 3/9\n\n:\n\nevent: ping\n\nretry: 5\n\n";
        assert_eq!(events(&mut Parser::default(), &[text]), []);
    }

    #[test]
    fn only_one_space_after_the_colon_belongs_to_the_format() {
        assert_eq!(
            events(&mut Parser::default(), &[b"data:  x\n\n"]),
            [one("", " x")]
        );
    }

    #[test]
    fn an_event_that_the_end_of_the_stream_cuts_short_is_still_given() {
        assert_eq!(
            events(&mut Parser::default(), &[b"data: [DONE]"]),
            [one("", "[DONE]")]
        );
        assert_eq!(
            events(&mut Parser::default(), &[b"data: [DONE]\n"]),
            [one("", "[DONE]")]
        );
    }

    #[test]
    fn a_byte_order_mark_and_an_error_field_are_understood() {
        assert_eq!(
            events(&mut Parser::default(), &[b"\xef\xbb\xbfdata: x\n\n"]),
            [one("", "x")]
        );
        assert_eq!(
            events(&mut Parser::default(), &[b"error: {}\n\n"]),
            [one("error", "{}")]
        );
    }

    #[test]
    fn an_oversize_event_is_cut_marked_and_followed_by_the_next() {
        let mut parser = Parser::with_cap(10);
        let long = [b"data: ".as_slice(), &[b'x'; 100], b"\n\ndata: y\n\n"].concat();
        assert_eq!(
            events(&mut parser, &[&long]),
            [(String::new(), "x".repeat(10), true), one("", "y")]
        );
    }

    #[test]
    fn an_endless_line_takes_bounded_memory_and_reading_goes_on_behind_it() {
        let mut parser = Parser::default();
        let chunk = vec![b'x'; 1024 * 1024];
        let mut found = 0;
        parser.feed(b"data: ", &mut |_| found += 1);
        for _ in 0..24 {
            parser.feed(&chunk, &mut |_| found += 1);
            assert!(
                parser.line.capacity() <= 4 * CAP,
                "{}",
                parser.line.capacity()
            );
        }
        parser.feed(b"\n\ndata: y\n\n", &mut |event| {
            found += 1;
            assert_eq!(event.oversize, event.data != b"y");
        });
        assert_eq!(found, 2);
        assert!(parser.line.capacity() + parser.data.capacity() <= 2 * KEEP_CAPACITY);
    }

    #[test]
    fn data_lines_without_end_take_bounded_memory() {
        let mut parser = Parser::with_cap(1000);
        for _ in 0..10_000 {
            parser.feed(b"data: xxxxxxxxxxxxxxx\n", &mut |_| {
                panic!("no event is complete")
            });
        }
        assert!(parser.data.capacity() <= 4000);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            lines in proptest::collection::vec(
                proptest::sample::select(vec!["data: {\"ä\":\"日本\"}", "data:x", "event: a", "", "", ": c", "data", "\u{feff}", "dat"]), 0..20),
            ends in proptest::collection::vec(proptest::sample::select(vec!["\n", "\r", "\r\n"]), 20),
            cuts in proptest::collection::vec(1_usize..6, 1..200),
        ) {
            let text: String = lines.iter().zip(&ends).map(|(line, end)| format!("{line}{end}")).collect();
            let whole = events(&mut Parser::default(), &[text.as_bytes()]);
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            prop_assert_eq!(&events(&mut Parser::default(), &bytes), &whole);
            let mut rest = text.as_bytes();
            let mut chunks = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (chunk, tail) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = tail;
            }
            prop_assert_eq!(events(&mut Parser::default(), &chunks), whole);
        }
    }
}
