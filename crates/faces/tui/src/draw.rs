//! The state as letters on a screen.

use page::safe::printable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::keys::KEYS;
use crate::pages::Filter;
use crate::state::{Mode, State, Typed};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Notes that are shown at most, so that some lines are left.
const NOTES_MAX: usize = 4;

/// Draws all of it.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let head = u16::try_from(state.page.head.len()).unwrap_or(u16::MAX);
    let notes = u16::try_from(state.page.sheet.notes.len().min(NOTES_MAX)).unwrap_or(0);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(head),
        Constraint::Min(2),
        Constraint::Length(notes),
        Constraint::Length(1),
    ]);
    let [title, tabs, groupings, head, table, notes, bottom] = areas.areas(frame.area());
    frame.render_widget(title_line(state, title.width), title);
    frame.render_widget(tab_line(state), tabs);
    frame.render_widget(grouping_line(state), groupings);
    let head_lines: Vec<Line<'_>> = state.page.head.iter().map(|line| Line::raw(&**line)).collect();
    frame.render_widget(Paragraph::new(head_lines), head);
    if matches!(state.mode, Mode::Help) {
        frame.render_widget(help(), table);
    } else {
        draw_table(frame, state, table);
    }
    frame.render_widget(note_lines(&state.page.sheet.notes), notes);
    frame.render_widget(bottom_line(state), bottom);
}

fn note_lines(notes: &[String]) -> Paragraph<'static> {
    let line = |text: &String| Line::styled(printable(text), DIM);
    Paragraph::new(notes.iter().map(line).collect::<Vec<_>>())
}

fn title_line(state: &State, width: u16) -> Line<'static> {
    let paused = if state.is_paused { "  PAUSED" } else { "" };
    let left = format!("wirespool top  {}", printable(&state.title));
    let right = format!("{}{paused}", state.page.time);
    let room = usize::from(width).saturating_sub(right.chars().count());
    let left: String = left.chars().take(room.saturating_sub(1)).collect();
    Line::styled(format!("{left:room$}{right}"), BOLD)
}

fn tab_line(state: &State) -> Line<'static> {
    let mut spans = Vec::new();
    for (place, tab) in state.tabs.iter().enumerate() {
        let style = if place == state.tab { CHOSEN } else { Style::new() };
        spans.push(Span::styled(format!(" {} {} ", place + 1, tab.name), style));
    }
    Line::from(spans)
}

fn grouping_line(state: &State) -> Line<'static> {
    let look = state.look_at();
    let groupings = state.shown_tab().groupings;
    let mut spans = vec![Span::styled(" by ", DIM)];
    for (place, name) in groupings.iter().enumerate() {
        let style = if place == look.grouping { BOLD } else { DIM };
        spans.push(Span::styled(format!("{name} "), style));
    }
    if !look.filter.is_empty() {
        spans.push(Span::styled(format!("  filter: {}", printable(&look.filter)), BOLD));
    }
    Line::from(spans)
}

fn draw_table(frame: &mut Frame<'_>, state: &mut State, area: Rect) {
    let [heading_area, body] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    state.height = usize::from(body.height);
    let (height, count) = (state.height, state.page.sheet.lines.len());
    let tab = state.tab;
    let Some(look) = state.looks.get_mut(tab) else { return };
    // The cursor stays on the screen, and the screen is full where there is enough.
    look.top = look.top.min(look.cursor).max((look.cursor + 1).saturating_sub(height));
    look.top = look.top.min(count.saturating_sub(height));
    let shown = look.top..count.min(look.top + height);
    let (heading, texts) = state.page.sheet.shown(shown, usize::from(area.width), look.order);
    frame.render_widget(Line::styled(heading, BOLD), heading_area);
    let width = usize::from(area.width);
    let line = |(place, text): (usize, String)| {
        let is_chosen = look.top + place == look.cursor;
        Line::styled(format!("{text:width$}"), if is_chosen { CHOSEN } else { Style::new() })
    };
    let lines: Vec<Line<'_>> = texts.into_iter().enumerate().map(line).collect();
    let nothing = vec![Line::styled("nothing so far", DIM)];
    frame.render_widget(Paragraph::new(if count == 0 { nothing } else { lines }), body);
}

fn help() -> Paragraph<'static> {
    let line = |(keys, what): &(&str, &str)| {
        Line::from(vec![Span::styled(format!("{keys:>22}  "), BOLD), Span::raw(what.to_string())])
    };
    Paragraph::new(KEYS.iter().map(line).collect::<Vec<_>>())
}

fn bottom_line(state: &State) -> Line<'static> {
    if let Mode::Typing(typing) = &state.mode {
        let what = match (typing.what, state.shown_tab().filter) {
            (Typed::Time, _) => "time",
            (Typed::Filter, Filter::Query) => "query",
            (Typed::Filter, Filter::Words) => "words",
        };
        let error = if state.message.is_empty() { "" } else { "   " };
        let text = format!("{what}: {}_{error}", printable(&typing.text));
        let message = Span::styled(printable(&state.message), DIM);
        return Line::from(vec![Span::styled(text, BOLD), message]);
    }
    let text = if state.message.is_empty() {
        "? help   g grouping   / filter   < > sort   p pause   w write pcapng   q quit".to_owned()
    } else {
        printable(&state.message)
    };
    Line::styled(text, DIM)
}
