//! The only place that writes to the terminal: lines that stay, and below them live lines that are
//! drawn again and again.
//!
//! The cursor always rests at the start of the row below the live lines. What the terminal echoes
//! by itself, such as `^C`, lands there and goes with the next drawing. The cursor is never hidden
//! and the terminal's mode never changed, so there is nothing to restore, whatever ends flashrig.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use flashrig_clock::Stamp;
use parking_lot::Mutex;

/// Standard error.
static SCREEN: Mutex<Screen> = Mutex::new(Screen::new());

/// Why a result could not be written: whoever redirected it to a file does not have it.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// How long a spinner stands at one of its frames.
const FRAME_NS: u64 = 200_000_000;

/// Whether live lines can be drawn.
pub fn can_draw() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Writes a line that stays.
pub fn say(line: &str) {
    SCREEN.lock().write(|screen, size| screen.say(line, size));
}

/// Draws live lines in place of those that were there.
pub fn draw(lines: &[String]) {
    SCREEN.lock().write(|screen, size| screen.draw(lines, size));
}

/// Writes to standard output, and remembers the first failure but that of a closed pipe.
pub fn result(pieces: &[&[u8]]) {
    let mut screen = SCREEN.lock();
    // Both streams may be the same terminal; the next drawing brings the lines back.
    screen.write(|screen, size| screen.draw(&[], size));
    let mut out = io::stdout().lock();
    let written = pieces
        .iter()
        .try_for_each(|piece| out.write_all(piece))
        .and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error);
    }
}

/// Why a result was lost, if one was.
pub fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// The sign that something goes on, as it looks now.
pub fn spinner(now: Stamp) -> char {
    const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
    FRAMES[(now.0 / FRAME_NS % FRAMES.len() as u64) as usize]
}

/// Where log lines go: above the live lines, as every other line.
#[derive(Clone, Copy, Debug)]
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        say(String::from_utf8_lossy(bytes).trim_end_matches('\n'));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Rows and columns of a terminal.
type Size = (usize, usize);

/// What stands on the terminal below the lines that stay.
#[derive(Debug)]
struct Screen {
    drawn: Vec<String>,
}

impl Screen {
    const fn new() -> Self {
        Self { drawn: Vec::new() }
    }

    /// Nobody has to read standard error: a closed one is no reason to fail.
    fn write(&mut self, change: impl FnOnce(&mut Self, Size) -> String) {
        let (rows, columns) = console::Term::stderr().size();
        let text = change(self, (usize::from(rows), usize::from(columns)));
        if !text.is_empty() {
            let mut out = io::stderr().lock();
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }

    fn say(&mut self, line: &str, size: Size) -> String {
        let below = std::mem::take(&mut self.drawn);
        let mut out = self.erased(&below, size);
        out.push_str(line);
        out.push('\n');
        out + &self.draw(&below, size)
    }

    fn draw(&mut self, lines: &[String], (rows, columns): Size) -> String {
        let old = std::mem::take(&mut self.drawn);
        let mut out = self.erased(&old, (rows, columns));
        // A line that fills its row would wrap, and what is above the first row is out of reach.
        let width = columns.saturating_sub(1);
        for line in lines.iter().take(rows.saturating_sub(1)) {
            let line = console::truncate_str(line, width, "…").into_owned();
            out.push_str(&line);
            out.push('\n');
            self.drawn.push(line);
        }
        out
    }

    /// Goes back to the first of `lines` and erases from there to the end.
    fn erased(&self, lines: &[String], (_, columns): Size) -> String {
        // A terminal that was made narrower since has wrapped them.
        let rows: usize = lines
            .iter()
            .map(|line| {
                console::measure_text_width(line)
                    .div_ceil(columns.max(1))
                    .max(1)
            })
            .sum();
        match rows {
            0 => String::new(),
            rows => format!("\r\x1b[{rows}A\x1b[J"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = (5, 20);

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    /// A terminal as people see it: what was written, then what is on it.
    struct Seen(vt100::Parser);

    impl Seen {
        fn new() -> Self {
            Self::of(SIZE)
        }

        fn of((rows, columns): Size) -> Self {
            let [rows, columns] =
                [rows, columns].map(|n| u16::try_from(n).unwrap().try_into().unwrap());
            Self(vt100::Parser::new(rows, columns, 0))
        }

        fn takes(&mut self, text: &str) -> &mut Self {
            self.0.process(text.replace('\n', "\r\n").as_bytes());
            self
        }

        fn rows(&self) -> Vec<String> {
            let all = self.0.screen().contents();
            all.lines().map(str::to_owned).collect()
        }
    }

    #[test]
    fn live_lines_stay_below_the_lines_that_stay() {
        let (mut screen, mut seen) = (Screen::new(), Seen::new());
        seen.takes(&screen.draw(&lines(&["one", "two"]), SIZE));
        seen.takes(&screen.say("said", SIZE));
        assert_eq!(seen.rows(), ["said", "one", "two"]);
        seen.takes(&screen.draw(&lines(&["three"]), SIZE));
        assert_eq!(seen.rows(), ["said", "three"]);
        seen.takes(&screen.draw(&[], SIZE));
        assert_eq!(seen.rows(), ["said"]);
    }

    #[test]
    fn what_the_terminal_echoes_goes_with_the_next_drawing() {
        let (mut screen, mut seen) = (Screen::new(), Seen::new());
        seen.takes(&screen.draw(&lines(&["one"]), SIZE)).takes("^C");
        seen.takes(&screen.say("stopping", SIZE));
        assert_eq!(seen.rows(), ["stopping", "one"]);
    }

    #[test]
    fn a_long_line_is_cut_and_more_lines_than_rows_are_left_out() {
        let (mut screen, mut seen) = (Screen::new(), Seen::new());
        let long = "a line of more than twenty columns".to_owned();
        seen.takes(&screen.draw(&[long.clone(), long], SIZE));
        assert_eq!(seen.rows(), ["a line of more tha…"; 2]);
        seen.takes(&screen.draw(&lines(&["1", "2", "3", "4", "5", "6"]), SIZE));
        seen.takes(&screen.draw(&lines(&["1"]), SIZE));
        assert_eq!(seen.rows(), ["1"]);
    }

    #[test]
    fn lines_that_a_narrower_terminal_wrapped_are_erased_wholly() {
        let (mut screen, mut seen) = (Screen::new(), Seen::new());
        seen.takes(&screen.draw(&lines(&["0123456789abcde"]), (5, 40)));
        // As a terminal of ten columns shows it.
        let mut narrow = Seen::of((5, 10));
        narrow.takes("0123456789abcde\n");
        narrow.takes(&screen.draw(&lines(&["x"]), (5, 10)));
        assert_eq!(narrow.rows(), ["x"]);
    }

    #[test]
    fn the_spinner_moves_with_the_clock() {
        let frames: Vec<char> = (0..10).map(|n| spinner(Stamp(n * FRAME_NS))).collect();
        let mut once = frames.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), frames.len());
    }
}
