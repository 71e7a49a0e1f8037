//! A page of HTML that stands by itself: no script, nothing to fetch, readable as it is.

use super::chart::{Chart, Shape};
use super::{add, style};
use crate::safe::markup;

/// A cell of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cell {
    /// Words.
    Text(String),
    /// Stands right.
    Number(String),
    /// Of any length: broken where it must be, so that the other columns stay in sight.
    Long(String),
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number with its unit.
    pub fn number(text: impl Into<String>) -> Self {
        Self::Number(text.into())
    }

    /// A path or the like.
    pub fn long(text: impl Into<String>) -> Self {
        Self::Long(text.into())
    }

    fn parts(&self) -> (&str, &'static str) {
        match self {
            Self::Text(text) => (text, ""),
            Self::Number(text) => (text, " class=\"n\""),
            Self::Long(text) => (text, " class=\"long\""),
        }
    }
}

/// A page that is being written, from its head to its foot.
#[derive(Debug)]
pub struct Document {
    title: String,
    body: String,
    charts: u32,
}

impl Document {
    /// An empty page.
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), body: String::new(), charts: 0 }
    }

    /// What the page is of.
    pub fn heading(&mut self, text: &str) {
        add(&mut self.body, format_args!("<h1>{}</h1>\n", markup(text)));
    }

    /// Begins a part.
    pub fn section(&mut self, text: &str) {
        add(&mut self.body, format_args!("<h2>{}</h2>\n", markup(text)));
    }

    /// Below a section.
    pub fn subsection(&mut self, text: &str) {
        add(&mut self.body, format_args!("<h3 class=\"sub\">{}</h3>\n", markup(text)));
    }

    /// Sentences.
    pub fn paragraph(&mut self, text: &str) {
        add(&mut self.body, format_args!("<p>{}</p>\n", markup(text)));
    }

    /// Less than a paragraph.
    pub fn remark(&mut self, text: &str) {
        add(&mut self.body, format_args!("<p class=\"dim\">{}</p>\n", markup(text)));
    }

    /// What it all comes to: `tone` is `good`, `bad`, `open`, or nothing.
    pub fn verdict(&mut self, tone: &str, words: &str, sentences: &[String]) {
        let words = markup(words);
        add(
            &mut self.body,
            format_args!("<section class=\"verdict {tone}\"><strong>{words}</strong>\n"),
        );
        for sentence in sentences {
            self.paragraph(sentence);
        }
        self.body.push_str("</section>\n");
    }

    /// Something that is said of the whole, and what belongs to it: `tone` as of a verdict.
    pub fn panel(&mut self, tone: &str, words: &str, fill: impl FnOnce(&mut Self)) {
        let words = markup(words);
        add(
            &mut self.body,
            format_args!("<section class=\"verdict part {tone}\"><h3>{words}</h3>\n"),
        );
        fill(self);
        self.body.push_str("</section>\n");
    }

    /// What the next lines are.
    pub fn label(&mut self, text: &str) {
        add(&mut self.body, format_args!("<h4>{}</h4>\n", markup(text)));
    }

    /// Things one below the other.
    pub fn list(&mut self, items: &[String]) {
        self.body.push_str("<ul>\n");
        for item in items {
            add(&mut self.body, format_args!("<li>{}</li>\n", markup(item)));
        }
        self.body.push_str("</ul>\n");
    }

    /// Lines to be copied.
    pub fn commands(&mut self, lines: &[String]) {
        let lines: Vec<String> = lines.iter().map(|line| markup(line)).collect();
        let lines = lines.join("\n");
        add(&mut self.body, format_args!("<pre>{lines}</pre>\n"));
    }

    /// Names and large numbers.
    pub fn facts(&mut self, facts: &[(&str, String)]) {
        self.body.push_str("<dl class=\"facts\">\n");
        for (name, value) in facts {
            let (name, value) = (markup(name), markup(value));
            add(&mut self.body, format_args!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"));
        }
        self.body.push_str("</dl>\n");
    }

    /// A table; the first cell of each row names it. A heading
    /// stands as its column does.
    pub fn table(&mut self, caption: &str, headings: &[&str], rows: &[Vec<Cell>]) {
        let is_number = |column: usize| {
            let mut cells = rows.iter().filter_map(|row| row.get(column));
            cells.any(|cell| matches!(cell, Cell::Number(_)))
        };
        let caption = markup(caption);
        add(
            &mut self.body,
            format_args!("<div class=\"wide\"><table>\n<caption>{caption}</caption>\n<thead><tr>"),
        );
        for (column, heading) in headings.iter().enumerate() {
            let class = if is_number(column) { " class=\"n\"" } else { "" };
            let heading = markup(heading);
            add(&mut self.body, format_args!("<th scope=\"col\"{class}>{heading}</th>"));
        }
        self.body.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.body.push_str("<tr>");
            for (column, cell) in row.iter().enumerate() {
                let (text, class) = cell.parts();
                let (text, is_name) = (markup(text), column == 0);
                let kind = if is_name { "th scope=\"row\"" } else { "td" };
                let end = if is_name { "th" } else { "td" };
                add(&mut self.body, format_args!("<{kind}{class}>{text}</{end}>"));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody></table></div>\n");
    }

    /// Plots, half ones side by side.
    pub fn charts(&mut self, charts: &[Chart]) {
        if charts.is_empty() {
            return;
        }
        self.body.push_str("<div class=\"figures\">\n");
        for chart in charts {
            self.charts += 1;
            let class = match chart.shape() {
                Shape::Wide => "",
                Shape::Half => " class=\"half\"",
                Shape::Third => " class=\"third\"",
            };
            let (title, description) = (markup(chart.title()), markup(chart.description()));
            let svg = chart.inline(&format!("plot-{}", self.charts));
            add(
                &mut self.body,
                format_args!(
                    "<figure{class}><figcaption><h3>{title}</h3><p>{description}</p></figcaption>\n\
                     {svg}</figure>\n"
                ),
            );
        }
        self.body.push_str("</div>\n");
    }

    /// Ends the page; `foot` says where it comes from.
    pub fn finish(self, foot: &str) -> String {
        let (title, foot) = (markup(&self.title), markup(foot));
        let (colours, plot, page) = (style::colours(":root"), style::PLOT, style::PAGE);
        let body = self.body;
        // The policy has browsers refuse what the page does not have: scripts and requests.
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{colours}{plot}{page}</style>\n</head>\n<body>\n\
             <main>\n{body}</main>\n<footer>{foot}</footer>\n</body>\n</html>\n"
        )
    }
}
