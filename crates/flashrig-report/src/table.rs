//! Tables that fit: a column after the other is left out, by rank, until the rest has room. What
//! names a row is never left out; where even that has no room, every row becomes a paragraph.

use console::measure_text_width;

use super::view::{View, wrapped};

/// What stands for an unknown figure.
pub const UNKNOWN: &str = "–";
/// Space before the first column.
const INDENT: usize = 2;
/// Space between columns.
const GAP: usize = 2;

/// A table over rows of any kind, built column by column.
#[derive(Debug)]
pub struct Table<'r, R> {
    rows: &'r [R],
    columns: Vec<Column>,
    /// Of the columns that come next.
    group: usize,
}

#[derive(Clone, Debug)]
struct Column {
    head: String,
    cells: Vec<String>,
    /// `None` for what names a row; else the higher, the sooner it is left out, and 0 never.
    rank: Option<u8>,
    is_text: bool,
    /// Columns of one group stay together when a table is parted.
    group: usize,
}

impl Column {
    fn width(&self) -> usize {
        let texts = self.cells.iter().chain([&self.head]);
        texts
            .map(|text| measure_text_width(text))
            .max()
            .unwrap_or(0)
    }
}

impl<'r, R> Table<'r, R> {
    /// A table without columns.
    pub fn new(rows: &'r [R]) -> Self {
        Self {
            rows,
            columns: Vec::new(),
            group: 0,
        }
    }

    /// A column that names the row.
    pub fn name(self, head: &str, cell: impl Fn(&R) -> String) -> Self {
        self.column(head, None, true, cell)
    }

    /// A column of words.
    pub fn words(self, head: &str, rank: u8, cell: impl Fn(&R) -> String) -> Self {
        self.column(head, Some(rank), true, cell)
    }

    /// A column of figures.
    pub fn figure(self, head: &str, rank: u8, cell: impl Fn(&R) -> String) -> Self {
        self.column(head, Some(rank), false, cell)
    }

    /// A column of figures that is there only when one of them is known.
    pub fn known(self, head: &str, rank: u8, cell: impl Fn(&R) -> String) -> Self {
        if self.rows.iter().all(|row| cell(row) == UNKNOWN) {
            return self;
        }
        self.figure(head, rank, cell)
    }

    /// Whether there is more than the names of rows.
    pub fn has_figures(&self) -> bool {
        self.columns.iter().any(|column| column.rank.is_some())
    }

    /// What follows stays together when the table is parted.
    pub fn group(mut self) -> Self {
        self.group += 1;
        self
    }

    fn column(
        mut self,
        head: &str,
        rank: Option<u8>,
        is_text: bool,
        cell: impl Fn(&R) -> String,
    ) -> Self {
        let group = self.group;
        self.columns.push(Column {
            head: head.to_owned(),
            cells: self.rows.iter().map(cell).collect(),
            rank,
            is_text,
            group,
        });
        self
    }

    /// The lines, and the heads of the columns that had no room.
    pub fn lines(&self, view: View) -> (Vec<String>, Vec<&str>) {
        let mut shown: Vec<&Column> = self.columns.iter().collect();
        let mut hidden = Vec::new();
        while !view.wide && width(&shown) > view.width {
            let ranks = shown.iter().map(|column| column.rank.unwrap_or(0));
            // The last of the highest rank goes first.
            let least = ranks.enumerate().max_by_key(|(_, rank)| *rank);
            match least {
                Some((index, rank)) if rank > 0 => hidden.push(shown.remove(index)),
                _ => return (self.stacked(view.width), Vec::new()),
            }
        }
        let order = |column: &&Column| self.columns.iter().position(|c| std::ptr::eq(c, *column));
        hidden.sort_by_key(order);
        let heads = shown.iter().map(|column| column.head.as_str()).collect();
        let mut lines = vec![line(&shown, heads)];
        for row in 0..self.rows.len() {
            let cells = shown.iter().map(|column| column.cells[row].as_str());
            lines.push(line(&shown, cells.collect()));
        }
        let hidden = hidden.into_iter().map(|column| column.head.as_str());
        (lines, hidden.collect())
    }

    /// Every row as a paragraph: its names, then its figures with their heads.
    fn stacked(&self, width: usize) -> Vec<String> {
        let (names, figures): (Vec<&Column>, Vec<&Column>) = self
            .columns
            .iter()
            .partition(|column| column.rank.is_none());
        let mut lines = Vec::new();
        for row in 0..self.rows.len() {
            let name = names.iter().map(|column| column.cells[row].as_str());
            let name: Vec<&str> = name.filter(|cell| !cell.is_empty()).collect();
            let cells = figures
                .iter()
                .map(|column| format!("{} {}", column.head, column.cells[row]));
            let cells: Vec<String> = cells.collect();
            for text in [
                format!("  {}", name.join(" ")),
                format!("    {}", cells.join(" · ")),
            ] {
                lines.extend(wrapped(&text, width).lines().map(str::to_owned));
            }
        }
        lines
    }

    /// As many tables as the width asks for, each with the names of the rows.
    pub fn parts(&self, view: View) -> Vec<Table<'r, R>> {
        let (names, figures): (Vec<&Column>, Vec<&Column>) = self
            .columns
            .iter()
            .partition(|column| column.rank.is_none());
        let mut parts: Vec<Vec<&Column>> = Vec::new();
        for group in figures.chunk_by(|a, b| a.group == b.group) {
            let room = |part: &Vec<&Column>| {
                view.wide || width(&[part.as_slice(), group].concat()) <= view.width
            };
            match parts.last_mut().filter(|part| room(part)) {
                Some(part) => part.extend(group),
                None => parts.push([names.as_slice(), group].concat()),
            }
        }
        let table = |columns: Vec<&Column>| Table {
            rows: self.rows,
            columns: columns.into_iter().cloned().collect(),
            group: self.group,
        };
        parts.into_iter().map(table).collect()
    }
}

fn width(columns: &[&Column]) -> usize {
    let widths: usize = columns.iter().map(|column| column.width() + GAP).sum();
    INDENT + widths.saturating_sub(GAP)
}

fn line(columns: &[&Column], cells: Vec<&str>) -> String {
    let cell = |(column, text): (&&Column, &str)| {
        let pad = " ".repeat(column.width().saturating_sub(measure_text_width(text)));
        if column.is_text {
            format!("{text}{pad}")
        } else {
            format!("{pad}{text}")
        }
    };
    let cells: Vec<String> = columns.iter().zip(cells).map(cell).collect();
    format!("{}{}", " ".repeat(INDENT), cells.join(&" ".repeat(GAP)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(width: usize) -> View {
        View { width, wide: false }
    }

    fn table(rows: &[u32]) -> Table<'_, u32> {
        Table::new(rows)
            .name("session", |n| format!("session-{n}"))
            .figure("alone", 0, |n| format!("{n}.0 s"))
            .figure("exit", 2, |_| "1 s".to_owned())
            .figure("gate", 2, |_| "2 s".to_owned())
            .figure("memory", 1, |_| "18 MB".to_owned())
            .known("queue", 1, |_| UNKNOWN.to_owned())
    }

    #[test]
    fn columns_go_by_rank_the_last_of_a_rank_first_and_are_named() {
        let rows = [1, 12];
        let table = table(&rows);
        let (lines, hidden) = table.lines(view(100));
        assert_eq!(
            lines,
            [
                "  session      alone  exit  gate  memory",
                "  session-1    1.0 s   1 s   2 s   18 MB",
                "  session-12  12.0 s   1 s   2 s   18 MB",
            ]
        );
        assert!(hidden.is_empty());
        assert_eq!(table.lines(view(38)).1, ["gate"]);
        assert_eq!(table.lines(view(30)).1, ["exit", "gate"]);
        assert_eq!(table.lines(view(22)).1, ["exit", "gate", "memory"]);
        let wide = View {
            width: 20,
            wide: true,
        };
        assert_eq!(table.lines(wide).0, lines);
    }

    #[test]
    fn where_names_have_no_room_rows_become_paragraphs_with_every_figure() {
        let rows = [1];
        let table = table(&rows);
        let (lines, hidden) = table.lines(view(16));
        assert_eq!(
            lines,
            [
                "  session-1",
                "    alone 1.0 s",
                "      · exit 1 s",
                "      · gate 2 s",
                "      · memory",
                "      18 MB",
            ]
        );
        assert!(hidden.is_empty());
    }

    #[test]
    fn a_parted_table_keeps_groups_together_and_repeats_the_names() {
        let rows = [1];
        let table = Table::new(&rows)
            .name("batch", |n: &u32| n.to_string())
            .group()
            .figure("TTFT", 0, |_| "1.00 s".to_owned())
            .figure("of first", 0, |_| "1.00x".to_owned())
            .group()
            .figure("tokens/s", 0, |_| "40.0".to_owned())
            .figure("of first", 0, |_| "1.00x".to_owned());
        let lines = |part: &Table<u32>| part.lines(view(30)).0;
        let parts = table.parts(view(30));
        assert_eq!(lines(&parts[0])[0], "  batch    TTFT  of first");
        assert_eq!(lines(&parts[1])[0], "  batch  tokens/s  of first");
        assert_eq!(table.parts(view(80)).len(), 1);
    }
}
