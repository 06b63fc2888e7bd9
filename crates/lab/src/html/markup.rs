//! Pieces of a page: tables, links that carry data, commands to copy.

use std::fmt::Write as _;

use crate::figures::Data;
use crate::figures::sheet::escaped;

/// Rows of a table on the page at most; its CSV has all of them.
pub const ROWS_MAX: usize = 200;

/// A table of the first rows; columns of numbers stand to the right.
pub fn table(data: &Data) -> String {
    let rows = &data.rows[..data.rows.len().min(ROWS_MAX)];
    let numeric: Vec<&str> = (0..data.columns.len())
        .map(|column| {
            let is_number = |row: &Vec<String>| {
                row.get(column).is_none_or(|f| f.is_empty() || f.parse::<f64>().is_ok())
            };
            if rows.iter().all(is_number) { " class=\"n\"" } else { "" }
        })
        .collect();
    let mut html = "<div class=\"wide\"><table><thead><tr>".to_owned();
    // Writing to a String cannot fail, here and below.
    for (name, class) in data.columns.iter().zip(&numeric) {
        _ = write!(html, "<th{class}>{}</th>", escaped(name));
    }
    html.push_str("</tr></thead>\n<tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (field, class) in row.iter().zip(&numeric) {
            _ = write!(html, "<td{class}>{}</td>", escaped(field));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    if data.rows.len() > rows.len() {
        let all = data.rows.len();
        _ = writeln!(
            html,
            "<p class=\"note\">The first {} of {all} rows; the CSV has all.</p>",
            rows.len()
        );
    }
    html
}

/// A link that carries the table as CSV and saves it as `file`.
pub fn csv_link(data: &Data, file: &str, words: &str) -> String {
    let (mut uri, csv) = ("data:text/csv;charset=utf-8,".to_owned(), data.to_csv());
    for &octet in csv.as_bytes() {
        // RFC 3986 s2.3 and s2.2: unreserved characters, and a comma, stand for themselves.
        if octet.is_ascii_alphanumeric() || b"-._~,".contains(&octet) {
            uri.push(char::from(octet));
        } else {
            _ = write!(uri, "%{octet:02X}");
        }
    }
    format!("<a download=\"{}\" href=\"{uri}\">{}</a>", escaped(file), escaped(words))
}

/// A command that one click selects.
pub fn command(words: &str) -> String {
    format!("<code class=\"cmd\">{}</code>", escaped(words))
}

/// One word of a command line, quoted if a shell would take it apart.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_reaches_the_program_through_a_shell_as_it_is() {
        assert_eq!(quoted("traffic.period=2s"), "traffic.period=2s");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("mac.hopping=[15,25]"), "'mac.hopping=[15,25]'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_link_carries_the_whole_table() {
        let mut data = Data::new(&["a", "b"]);
        data.rows.push(vec!["1 %".to_owned(), "\"x\", y".to_owned()]);
        let link = csv_link(&data, "f.csv", "CSV");
        assert!(link.contains("utf-8,a,b%0A1%20%25,%22%22%22x%22%22,%20y%22%0A\""), "{link}");
    }

    #[test]
    fn long_tables_say_that_they_are_cut() {
        let mut data = Data::new(&["n"]);
        data.rows = (0..500).map(|n| vec![n.to_string()]).collect();
        let html = table(&data);
        assert!(html.contains("first 200 of 500 rows") && !html.contains("<td class=\"n\">200<"));
    }
}
