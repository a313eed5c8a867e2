//! The report: one HTML file that shows a run and works offline.
//!
//! The page is built in `report/` and compiled in; the result document is put into its `<script type="application/json">`.

use crate::{Error, output};
use std::path::Path;

const PAGE: &str = include_str!("../../../report/dist/report.html");
const PLACE: &str = "/*TLPLAB_RESULT*/";

/// The page with `result_json` (a document of schema `tlplab/result/1`) in it.
pub fn html(result_json: &str) -> String {
    let (before, after) = PAGE.split_once(PLACE).expect("the page has a place for the result");
    let mut page = String::with_capacity(PAGE.len() + result_json.len() + result_json.len() / 64);
    page.push_str(before);
    // In JSON `<` occurs in strings only. Escaped, no string can end the script element or begin a comment in it.
    for (i, part) in result_json.split('<').enumerate() {
        if i > 0 {
            page.push_str("\\u003c");
        }
        page.push_str(part);
    }
    page.push_str(after);
    page
}

/// The style sheet of the page, for other pages that are to look like it.
pub fn style() -> &'static str {
    let behind = PAGE.split_once("<style>").map_or("", |(_, behind)| behind);
    behind.split_once("</style>").map_or("", |(style, _)| style)
}

/// Writes the page to `path`, whole or not at all; `-` is standard output.
///
/// # Errors
/// The errors of [`output::write`].
pub fn write(path: impl AsRef<Path>, result_json: &str) -> Result<(), Error> {
    output::write(path, html(result_json).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_sheet_is_whole() {
        assert!(style().contains("--cause-queueing:") && !style().contains('<'));
        assert_eq!(style().matches('{').count(), style().matches('}').count());
    }

    #[test]
    fn the_page_has_one_place_for_the_result() {
        assert_eq!(PAGE.matches(PLACE).count(), 1);
    }

    #[test]
    fn no_text_of_the_result_can_leave_its_script() {
        let title = "</script><script>alert(1)</script><!-- $& \\u2028";
        let page = html(&format!(r#"{{"title":"{title}"}}"#));
        assert!(!page.contains(PLACE));
        let escaped = title.replace('<', "\\u003c");
        assert!(
            page.contains(&format!(r#"{{"title":"{escaped}"}}</script>"#)),
            "put in, then closed by the page"
        );
        assert_eq!(page.matches("</script>").count(), PAGE.matches("</script>").count());
    }

    #[test]
    fn the_file_is_the_page() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.html");
        write(&path, "{}").unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), html("{}"));
    }
}
