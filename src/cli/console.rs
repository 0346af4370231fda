//! What is shown, and where: results on standard output, everything else on standard error.

use std::io;
use std::path::Path;

use super::args::{Color, Common};
use super::terminal::{self, LogWriter};
use flashrig_config::error_chain;
use flashrig_record::Kept;
use flashrig_report::View;

/// What the user wants to see.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    quiet: bool,
    json: bool,
    wide: bool,
    draws: bool,
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
                .with_writer(|| LogWriter)
                .with_target(false)
                .with_ansi(false)
                .without_time()
                .try_init();
        }
        Self {
            quiet: common.quiet,
            json: common.json,
            wide: common.wide,
            draws: !common.quiet && terminal::can_draw(),
        }
    }

    /// Whether JSON was asked for.
    pub fn json(self) -> bool {
        self.json
    }

    /// Whether live lines are shown.
    pub fn draws(self) -> bool {
        self.draws
    }

    /// Shows live lines in place of those before; they stay below everything else.
    pub fn draw(self, lines: &[String]) {
        if self.draws {
            terminal::draw(lines);
        }
    }

    /// Removes the live lines.
    pub fn clear(self) {
        self.draw(&[]);
    }

    /// How reports are shown: as wide as the terminal that results go to.
    pub fn view(self) -> View {
        let columns = console::Term::stdout().size_checked();
        View::new(columns.map(|(_, columns)| columns.into()), self.wide)
    }

    /// A result. A closed pipe (`| head`) is the reader's right.
    pub fn result(self, text: &str) {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        terminal::result(&[text.as_bytes(), end.as_bytes()]);
    }

    /// A finished run: its record, or the report and where it is kept.
    ///
    /// # Errors
    /// The record is not to be written as JSON.
    pub fn run_result<R: Kept>(
        self,
        run: &R,
        report: impl FnOnce(View) -> String,
        folder: &Path,
    ) -> Result<(), serde_json::Error> {
        if self.json {
            self.result(&run.to_json()?);
            return Ok(());
        }
        let report = report(self.view());
        self.result(&format!("\n{report}Results: {}", folder.display()));
        Ok(())
    }

    /// A result as bytes, exactly.
    pub fn raw_result(self, bytes: &[u8]) {
        terminal::result(&[bytes]);
    }

    /// Why a result was lost, if one was.
    pub fn lost(self) -> Option<&'static io::Error> {
        terminal::lost()
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
            terminal::say(text);
        }
    }

    /// An error, with everything that it has to say, on as few lines as it needs.
    pub fn error(self, error: &anyhow::Error) {
        let word = console::style("error:").for_stderr().red().bold();
        terminal::say(&format!("{word} {}", error_chain(error)));
    }
}

fn set_colors(on: bool) {
    console::set_colors_enabled(on);
    console::set_colors_enabled_stderr(on);
}
