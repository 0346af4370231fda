//! The page that every report is written on: lines no wider than the terminal, tables, notes.

use console::Style;

use super::table::Table;
use super::view::{View, wrapped};

/// A report in the making.
#[derive(Debug)]
pub struct Page {
    view: View,
    out: String,
}

impl Page {
    /// An empty page.
    pub fn new(view: View) -> Self {
        let out = String::new();
        Self { view, out }
    }

    /// How it is seen.
    pub fn view(&self) -> View {
        self.view
    }

    /// A sentence, on as many lines as it needs.
    pub fn line(&mut self, text: &str) {
        self.styled(&Style::new(), text);
    }

    /// Facts on one line, parted by dots.
    pub fn facts(&mut self, facts: &[String]) {
        self.line(&facts.join(" · "));
    }

    /// An empty line, unless there is one.
    pub fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A title of what follows.
    pub fn title(&mut self, text: &str) {
        self.gap();
        self.bold(text);
    }

    /// A sentence that stands out.
    pub fn bold(&mut self, text: &str) {
        self.styled(&Style::new().bold(), text);
    }

    /// A sentence in a style.
    pub fn styled(&mut self, style: &Style, text: &str) {
        let text = match self.view.wide {
            true => text.to_owned(),
            false => wrapped(text, self.view.width),
        };
        for line in text.lines() {
            self.out.push_str(&style.apply_to(line).to_string());
            self.out.push('\n');
        }
    }

    /// Sentences under a title, each once.
    pub fn items<T: ToString>(&mut self, title: &str, items: impl IntoIterator<Item = T>) {
        let items = once_each(items);
        if !items.is_empty() {
            self.title(title);
        }
        for item in items {
            self.line(&format!("  {item}"));
        }
    }

    /// What a reader should know before trusting the figures, each once.
    pub fn notes<T: ToString>(&mut self, notes: impl IntoIterator<Item = T>) {
        for note in once_each(notes) {
            self.line(&format!("  note: {note}"));
        }
    }

    /// A table under a title, when it has any figure.
    pub fn section<R>(&mut self, title: &str, table: &Table<R>) {
        if table.has_figures() {
            self.title(title);
            self.table(table);
        }
    }

    /// A table, and which of its columns had no room.
    pub fn table<R>(&mut self, table: &Table<R>) {
        let (lines, hidden) = table.lines(self.view);
        for line in lines {
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
        if !hidden.is_empty() {
            let hidden = hidden.join(", ");
            self.line(&format!(
                "  hidden at this width: {hidden}; --wide shows all"
            ));
        }
    }

    /// The whole text.
    pub fn text(self) -> String {
        self.out
    }
}

fn once_each<T: ToString>(all: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for one in all {
        let one = one.to_string();
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_broken_between_words_and_never_within_one() {
        let text = "  note: a sentence with a-very-long-word-that-fits-on-no-line at its end";
        assert_eq!(
            wrapped(text, 30),
            "  note: a sentence with\n    a-very-long-word-that-fits-on-no-line\n    at its end"
        );
        assert_eq!(wrapped(text, 100), text);
        assert_eq!(wrapped("  version   1.2", 100), "  version   1.2");
    }

    #[test]
    fn what_is_said_twice_is_shown_once() {
        let mut page = Page::new(View::default());
        page.notes(["a", "b", "a"]);
        assert_eq!(page.text(), "  note: a\n  note: b\n");
    }

    #[test]
    fn without_a_terminal_a_page_has_100_columns() {
        assert_eq!(View::new(None, false).width, 100);
        assert_eq!(View::new(Some(80), false).width, 80);
    }
}
