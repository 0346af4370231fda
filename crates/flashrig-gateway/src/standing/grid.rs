//! Rows of cells in columns, and cells. Pure.

/// Lines of equal columns, the first left-aligned and all others right-aligned. The first row is
/// the head.
pub(super) fn lines<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(widths).enumerate();
            let cells = cells.map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ")
        })
        .collect()
}

/// A duration; a dash when it is unknown.
pub(super) fn seconds(seconds: Option<f64>) -> String {
    or_dash(seconds, |seconds| match seconds {
        s if s < 10.0 => format!("{s:.2} s"),
        s => format!("{s:.1} s"),
    })
}

/// A share in percent; a dash when it is unknown.
pub(super) fn percent(share: Option<f64>) -> String {
    or_dash(share, |share| format!("{:.0}%", share * 100.0))
}

/// A dash for what is unknown.
pub(super) fn or_dash<T>(value: Option<T>, cell: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), cell)
}
