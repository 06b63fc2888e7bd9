//! Pieces of a page: tables, links that carry data, commands to copy.

use std::fmt::Write as _;

use crate::figures::Data;
use crate::figures::sheet::escaped;

/// Rows of a table on the page at most; its CSV has all of them.
pub const ROWS_MAX: usize = 200;

/// A table of the first rows. Columns of numbers are right-aligned, and a row that belongs to a point links to it.
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
    let linked = !data.anchors.is_empty();
    html.push_str(if linked {
        "<th>again</th></tr></thead>\n<tbody>"
    } else {
        "</tr></thead>\n<tbody>"
    });
    for (index, row) in rows.iter().enumerate() {
        html.push_str("<tr>");
        for (field, class) in row.iter().zip(&numeric) {
            _ = write!(html, "<td{class}>{}</td>", escaped(field));
        }
        if let Some(anchor) = data.anchors.get(index) {
            _ = write!(html, "<td><a href=\"#{anchor}\">command</a></td>");
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

/// A link that carries `csv` and saves it as `file`.
pub fn csv_link(csv: &str, file: &str, words: &str) -> String {
    let mut uri = "data:text/csv;charset=utf-8,".to_owned();
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

/// Sentences as markup; what stands in backticks is set as code.
pub fn prose(words: &str) -> String {
    let mut html = String::new();
    for (index, part) in escaped(words).split('`').enumerate() {
        html.push_str(match index % 2 {
            0 if index > 0 => "</code>",
            1 => "<code>",
            _ => "",
        });
        html.push_str(part);
    }
    // A backtick alone opens what nothing closes.
    if words.matches('`').count() % 2 == 1 { escaped(words) } else { html }
}

/// A command that one click selects.
pub fn command(words: &str) -> String {
    format!("<code class=\"cmd\">{}</code>", escaped(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_backticks_are_code_and_a_backtick_alone_is_itself() {
        assert_eq!(prose("`a` < `b`."), "<code>a</code> &lt; <code>b</code>.");
        assert_eq!(prose("a ` b"), "a ` b");
        assert_eq!(prose("plain"), "plain");
    }

    #[test]
    fn a_link_carries_the_whole_table() {
        let mut data = Data::new(&["a", "b"]);
        data.rows.push(vec!["1 %".to_owned(), "\"x\", y".to_owned()]);
        let link = csv_link(&data.to_csv(), "f.csv", "CSV");
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
