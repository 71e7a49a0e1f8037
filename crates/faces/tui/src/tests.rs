use machine_view::{Cell, Sheet, SheetColumn, SheetLine};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;

static TABS: [Tab; 2] = [
    Tab { name: "talkers", groupings: &["session", "host"], filter: Filter::Query },
    Tab { name: "disk", groupings: &["process"], filter: Filter::Words },
];

/// Pages of forty lines that show what they were asked.
#[derive(Default)]
struct Made {
    asked: Vec<String>,
    written: Vec<String>,
}

impl Pages for Made {
    fn title(&self) -> String {
        "veth0".to_owned()
    }

    fn tabs(&self) -> &'static [Tab] {
        &TABS
    }

    fn page(&mut self, ask: &Ask<'_>) -> Page {
        let Ask { tab, grouping, query, at } = ask;
        self.asked.push(format!("{tab} {grouping} {query:?} {at:?}"));
        let columns =
            vec![SheetColumn::words("who", "WHO", 8, 0), SheetColumn::number("bytes", "BYTES", 0)];
        let line = |number: u64| SheetLine {
            cells: vec![Cell::Text(format!("line {number}")), Cell::Count(1000 - number)],
            query: (*tab == 0).then(|| format!("host 10.0.0.{number}")),
        };
        let second = match at {
            At::Now => 100,
            At::Second(second) => *second,
        };
        Page {
            head: vec!["all of it".to_owned()],
            sheet: Sheet { columns, lines: (0..40).map(line).collect(), ..Sheet::default() },
            second: (*tab == 0).then_some(second),
            time: format!("second {second}"),
        }
    }

    fn check(&self, query: &str) -> Result<(), String> {
        if query.contains("nonsense") { Err("no such field".to_owned()) } else { Ok(()) }
    }

    fn second(&self, text: &str) -> Result<i64, String> {
        text.parse().map_err(|_| "no time".to_owned())
    }

    fn write(&mut self, ask: &Ask<'_>, line: &str) -> Result<String, String> {
        self.written.push(format!("{:?} {line}", ask.query));
        Ok("3 packets written".to_owned())
    }
}

struct Played {
    pages: Made,
    state: State,
    terminal: Terminal<TestBackend>,
}

impl Played {
    fn new(width: u16, height: u16) -> Self {
        let pages = Made::default();
        let state = State::new(&pages);
        let terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut played = Self { pages, state, terminal };
        played.draw();
        played
    }

    fn draw(&mut self) -> String {
        if self.state.is_stale() {
            self.state.look(&mut self.pages);
        }
        self.terminal.draw(|frame| draw::draw(frame, &mut self.state)).unwrap();
        self.terminal.backend().to_string()
    }

    fn press(&mut self, keys: &[KeyCode]) -> String {
        for key in keys {
            self.state.press(KeyEvent::new(*key, KeyModifiers::NONE), &mut self.pages);
            self.draw();
        }
        self.draw()
    }

    fn type_text(&mut self, text: &str) -> String {
        let keys: Vec<KeyCode> = text.chars().map(KeyCode::Char).collect();
        self.press(&keys)
    }

    fn asked_last(&self) -> &str {
        self.pages.asked.last().unwrap()
    }

    fn chosen(&self) -> String {
        match self.state.line().map(|line| &line.cells[0]) {
            Some(Cell::Text(text)) => text.clone(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_screen_has_tabs_groupings_head_and_lines() {
    let screen = Played::new(60, 12).draw();
    for text in [
        "veth0",
        "second 100",
        "1 talkers",
        "2 disk",
        "by session host",
        "all of it",
        "WHO",
        "line 0",
    ] {
        assert!(screen.contains(text), "{text}\n{screen}");
    }
}

#[test]
fn the_cursor_moves_over_all_lines_and_the_screen_with_it() {
    let mut played = Played::new(60, 12);
    played.press(&[KeyCode::Down, KeyCode::Down]);
    assert_eq!(played.chosen(), "line 2");
    let screen = played.press(&[KeyCode::End]);
    assert_eq!(played.chosen(), "line 39");
    assert!(screen.contains("line 39") && !screen.contains("line 0 "), "{screen}");
    played.press(&[KeyCode::PageUp]);
    let page = played.state.height;
    assert_eq!(played.chosen(), format!("line {}", 39 - page));
    played.press(&[KeyCode::Home, KeyCode::Up]);
    assert_eq!(played.chosen(), "line 0");
}

#[test]
fn keys_choose_tabs_groupings_and_order() {
    let mut played = Played::new(60, 12);
    played.press(&[KeyCode::Char('g')]);
    assert_eq!(played.asked_last(), "0 1 \"\" Now");
    played.press(&[KeyCode::Char('2')]);
    assert_eq!(played.asked_last(), "1 0 \"\" Now");
    played.press(&[KeyCode::Tab]);
    assert_eq!(played.asked_last(), "0 1 \"\" Now", "a tab keeps its grouping");
    let screen = played.press(&[KeyCode::Char('<'), KeyCode::Char('r')]);
    assert!(screen.contains("BYTES^"), "{screen}");
    assert_eq!(played.chosen(), "line 39");
}

#[test]
fn filters_are_checked_typed_stacked_and_taken_back() {
    let mut played = Played::new(80, 12);
    played.type_text("/nonsense");
    let screen = played.press(&[KeyCode::Enter]);
    assert!(screen.contains("no such field") && screen.contains("query: nonsense_"), "{screen}");
    played.press(&[KeyCode::Backspace; 8]);
    played.type_text("tcp");
    played.press(&[KeyCode::Enter]);
    assert_eq!(played.asked_last(), "0 0 \"tcp\" Now");
    played.press(&[KeyCode::Char('g'), KeyCode::Down, KeyCode::Enter]);
    assert_eq!(played.asked_last(), "0 0 \"(tcp) and (host 10.0.0.1)\" Now", "and by session");
    played.press(&[KeyCode::Char('w')]);
    assert_eq!(played.pages.written, ["\"(tcp) and (host 10.0.0.1)\" host 10.0.0.0"]);
    played.press(&[KeyCode::Backspace]);
    assert_eq!(played.asked_last(), "0 0 \"tcp\" Now");
    played.press(&[KeyCode::Esc]);
    assert_eq!(played.asked_last(), "0 0 \"\" Now");
}

#[test]
fn words_are_looked_for_in_tabs_without_sessions() {
    let mut played = Played::new(60, 12);
    played.press(&[KeyCode::Char('2'), KeyCode::Char('/')]);
    played.type_text("LINE 33");
    let screen = played.press(&[KeyCode::Enter]);
    assert!(screen.contains("line 33") && !screen.contains("line 32"), "{screen}");
    let screen = played.press(&[KeyCode::Enter]);
    assert!(screen.contains("no sessions of this line"), "{screen}");
    let screen = played.press(&[KeyCode::Left]);
    assert!(screen.contains("no going back in time"), "{screen}");
}

#[test]
fn time_goes_back_forward_and_to_now() {
    let mut played = Played::new(60, 12);
    played.press(&[KeyCode::Left, KeyCode::Char('[')]);
    assert_eq!(played.asked_last(), "0 0 \"\" Second(89)");
    played.press(&[KeyCode::Right]);
    assert_eq!(played.asked_last(), "0 0 \"\" Second(90)");
    played.type_text("tx");
    let screen = played.press(&[KeyCode::Enter]);
    assert!(screen.contains("no time"), "{screen}");
    played.press(&[KeyCode::Backspace]);
    played.type_text("7");
    let screen = played.press(&[KeyCode::Enter]);
    assert!(screen.contains("second 7"), "{screen}");
    played.press(&[KeyCode::Char('n')]);
    assert_eq!(played.asked_last(), "0 0 \"\" Now");
}

#[test]
fn a_pause_asks_for_nothing_new_but_what_keys_want() {
    let mut played = Played::new(60, 12);
    let screen = played.press(&[KeyCode::Char('p')]);
    assert!(screen.contains("PAUSED"), "{screen}");
    let count = played.pages.asked.len();
    played.state.look(&mut played.pages);
    assert_eq!(played.pages.asked.len(), count);
    played.press(&[KeyCode::Char('g')]);
    assert_eq!(played.pages.asked.len(), count + 1);
    played.press(&[KeyCode::Char(' ')]);
    played.state.look(&mut played.pages);
    assert_eq!(played.pages.asked.len(), count + 2);
}

#[test]
fn help_shows_every_key_and_q_quits() {
    let mut played = Played::new(90, 30);
    let screen = played.press(&[KeyCode::Char('?')]);
    assert!(KEYS.iter().all(|(_, what)| screen.contains(what)), "{screen}");
    let screen = played.press(&[KeyCode::Char('x')]);
    assert!(screen.contains("line 0"), "any key leaves the help: {screen}");
    played.press(&[KeyCode::Char('q')]);
    assert!(played.state.is_over());
}

#[test]
fn a_screen_of_any_size_can_be_drawn() {
    for (width, height) in [(1, 1), (2, 40), (200, 2), (20, 5)] {
        let mut played = Played::new(width, height);
        played.press(&[KeyCode::End, KeyCode::Char('?'), KeyCode::Char('x'), KeyCode::PageDown]);
    }
}
