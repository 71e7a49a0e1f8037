//! What keys do, as the help shows it.

/// Keys and what they do.
pub const KEYS: [(&str, &str); 17] = [
    ("1..9, Tab, Shift-Tab", "go to a tab"),
    ("g, G", "next, previous grouping"),
    ("Up, Down, PgUp, PgDn", "move the cursor"),
    ("Home, End", "to the first, last line"),
    ("< >", "sort by the column to the left, to the right"),
    ("r", "reverse the order"),
    ("/", "filter; Enter takes it, Esc leaves it as it was"),
    ("Enter", "only what the line under the cursor is about"),
    ("Backspace", "the filter before"),
    ("Esc", "no filter"),
    ("p, Space", "pause, go on"),
    ("Left, Right", "one second back, forward"),
    ("[ ]", "ten seconds back, forward; { } ten minutes"),
    ("t", "go to a time: 10:40, 2026-11-20T10:40, 5m ago"),
    ("n", "to now"),
    ("w", "write the packets of the line under the cursor as pcapng"),
    ("?, h; q, Ctrl-C", "this help; quit"),
];
