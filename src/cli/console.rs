//! The one owner of the terminal: results on standard output, everything else on standard error.

use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

use super::args::{Color, Common};
use flashrig_config::error_chain;
use flashrig_report::View;

/// Why a result could not be written: whoever redirected it to a file has not got it.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Where things are shown.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    quiet: bool,
    json: bool,
    wide: bool,
}

impl Console {
    /// Sets up colour and logging once.
    pub fn new(common: &Common) -> Self {
        match common.color {
            // The library looks at the terminal, NO_COLOR and CLICOLOR by itself.
            Color::Auto => {}
            Color::Always => set_colors(true),
            Color::Never => set_colors(false),
        }
        let level = match common.verbose {
            0 => tracing::Level::WARN,
            1 => tracing::Level::INFO,
            _ => tracing::Level::DEBUG,
        };
        if !common.quiet {
            // A second set-up in one process (tests) changes nothing.
            let _ = tracing_subscriber::fmt()
                .with_max_level(level)
                .with_writer(io::stderr)
                .with_target(false)
                .with_ansi(false)
                .without_time()
                .try_init();
        }
        Self {
            quiet: common.quiet,
            json: common.json,
            wide: common.wide,
        }
    }

    /// Whether JSON was asked for.
    pub fn json(self) -> bool {
        self.json
    }

    /// Whether progress is shown.
    pub fn shows_progress(self) -> bool {
        !self.quiet
    }

    /// How reports are shown: as wide as the terminal that results go to.
    pub fn view(self) -> View {
        let columns = console::Term::stdout().size_checked();
        View::new(columns.map(|(_, columns)| columns.into()), self.wide)
    }

    /// A result. A closed pipe (`| head`) is the reader's right.
    pub fn result(self, text: &str) {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        write_out(&[text.as_bytes(), end.as_bytes()]);
    }

    /// A finished run: its record, or the report and where it is kept.
    ///
    /// # Errors
    /// The record is not to be written as JSON.
    pub fn run_result<T: serde::Serialize>(
        self,
        run: &T,
        report: impl FnOnce(View) -> String,
        folder: &Path,
    ) -> Result<(), serde_json::Error> {
        if self.json {
            return self.json_result(run);
        }
        let report = report(self.view());
        self.result(&format!("\n{report}Results: {}", folder.display()));
        Ok(())
    }

    /// A result as bytes, exactly.
    pub fn raw_result(self, bytes: &[u8]) {
        write_out(&[bytes]);
    }

    /// Why a result was lost, if one was.
    pub fn lost(self) -> Option<&'static io::Error> {
        LOST.get()
    }

    /// A result as JSON.
    pub fn json_result<T: serde::Serialize>(self, value: &T) -> Result<(), serde_json::Error> {
        self.result(&serde_json::to_string_pretty(value)?);
        Ok(())
    }

    /// A result as JSON on one line, for who reads lines while the command goes on.
    pub fn json_line<T: serde::Serialize>(self, value: &T) -> Result<(), serde_json::Error> {
        self.result(&serde_json::to_string(value)?);
        Ok(())
    }

    /// A remark.
    pub fn note(self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    /// An error, with everything that it has to say, on as few lines as it needs.
    pub fn error(self, error: &anyhow::Error) {
        let word = console::style("error:").for_stderr().red().bold();
        say(&format!("{word} {}", error_chain(error)));
    }
}

fn set_colors(on: bool) {
    console::set_colors_enabled(on);
    console::set_colors_enabled_stderr(on);
}

/// Writes to standard output, and remembers the first failure but that of a closed pipe.
fn write_out(pieces: &[&[u8]]) {
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

/// A line on standard error. Nobody has to read it: a closed one is no reason to fail.
fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
