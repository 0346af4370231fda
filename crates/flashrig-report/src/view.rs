//! How wide a report is, and lines that fit.

use console::measure_text_width;

/// Columns where there is no terminal to ask.
const WIDTH: usize = 100;
/// Narrower terminals get this: there is no room for a table on them.
const LEAST: usize = 40;

/// How much of a record is shown, and how wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether tables show every row and column, and no line is broken, however wide that makes it.
    pub wide: bool,
}

impl View {
    /// A view for a terminal of this many columns, or for no terminal.
    pub fn new(columns: Option<usize>, wide: bool) -> Self {
        let width = columns.unwrap_or(WIDTH).max(LEAST);
        Self { width, wide }
    }
}

impl Default for View {
    fn default() -> Self {
        Self::new(None, false)
    }
}

/// A text on lines no wider than `width`, broken between words; later lines are indented.
pub fn wrapped(text: &str, width: usize) -> String {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let later = " ".repeat(indent + 2);
    let mut lines = vec![" ".repeat(indent)];
    let mut is_empty = true;
    for word in text[indent..].split(' ') {
        let line = lines.last_mut().map_or("", |line| line.as_str());
        let space = usize::from(!is_empty);
        if !is_empty && measure_text_width(line) + space + measure_text_width(word) > width {
            lines.push(later.clone());
            is_empty = true;
        }
        if let Some(line) = lines.last_mut() {
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
        }
        is_empty = false;
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}
