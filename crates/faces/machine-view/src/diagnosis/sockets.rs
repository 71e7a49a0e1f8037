//! Connections as part of a page: what each carried, and its window, round trip and delivery rate
//! over time.

use connections::{Point, Series};
use page::safe::printable;
use page::text::{disk_rate, nanos, plural};
use page::{Axis, Cell, Chart, Colour, Document, Line, Quantity, Scale, Shape};
use units::ByteSize;
use units::number::real;

/// A plot of fewer points shows each of them.
const MARKED_MAX: usize = 40;

/// What is plotted of a connection.
struct Plotted {
    title: &'static str,
    axis: &'static str,
    quantity: Quantity,
    colour: Colour,
    of: fn(&Point) -> u64,
    words: fn(u64) -> String,
}

const PLOTTED: [Plotted; 3] = [
    Plotted {
        title: "Congestion window",
        axis: "segments",
        quantity: Quantity::Count,
        colour: Colour::First,
        of: |point| point.congestion_window.into(),
        words: |segments| plural(segments, "segment"),
    },
    Plotted {
        title: "Round trip",
        axis: "smoothed",
        quantity: Quantity::Time,
        colour: Colour::Second,
        of: |point| u64::from(point.rtt_us) * 1000,
        words: nanos,
    },
    Plotted {
        title: "Delivery rate",
        axis: "delivered",
        quantity: Quantity::Rate,
        colour: Colour::Third,
        of: |point| point.delivery_rate,
        words: disk_rate,
    },
];

/// Adds the table and the plots.
pub(super) fn add(page: &mut Document, series: &[Series]) {
    page.section("Connections");
    if series.is_empty() {
        page.paragraph("No connection was seen.");
        return;
    }
    let headings = ["connection", "whose", "carried", "window", "round trip", "delivered"];
    let rows: Vec<Vec<Cell>> = series.iter().map(row).collect();
    page.table(
        "Pairs that should be alike and are not, the slow one first, then those that sent most; \
         the most of each value",
        &headings,
        &rows,
    );
    let end_ns = series.iter().flat_map(|one| &one.points).map(|point| point.after_ns).max();
    for one in series {
        let owner = one.owner.as_ref().map(|owner| format!(", {}", printable(&owner.to_string())));
        page.subsection(&format!("{}{}", ends(one), owner.unwrap_or_default()));
        // An end that only receives delivers nothing.
        let told = PLOTTED.iter().filter(|plotted| most(one, plotted.of) > 0);
        let charts = told.map(|plotted| chart(plotted, one, end_ns.unwrap_or(0)));
        page.charts(&charts.collect::<Vec<_>>());
    }
}

fn ends(series: &Series) -> String {
    format!("{} to {}", series.socket.local, series.socket.remote)
}

fn most(series: &Series, of: fn(&Point) -> u64) -> u64 {
    series.points.iter().map(of).max().unwrap_or(0)
}

fn row(series: &Series) -> Vec<Cell> {
    let owner = series.owner.as_ref().map(|owner| printable(&owner.to_string()));
    let mut cells = vec![
        Cell::text(ends(series)),
        Cell::text(owner.unwrap_or_default()),
        Cell::number(ByteSize(series.carried()).to_string()),
    ];
    cells.extend(PLOTTED.map(|Plotted { of, words, .. }| match most(series, of) {
        0 => Cell::number("-"),
        most => Cell::number(words(most)),
    }));
    cells
}

/// Against the time of all of them, so that plots below each other can be compared.
fn chart(plotted: &Plotted, series: &Series, end_ns: u64) -> Chart {
    let Plotted { title, axis, quantity, colour, of, words } = plotted;
    let least = series.points.iter().map(of).min().unwrap_or(0);
    let final_value = series.points.last().map_or(0, of);
    let most = most(series, *of);
    let said = if least == most {
        format!("{} all the time.", words(most))
    } else {
        let [least, most, end] = [least, most, final_value].map(words);
        format!("{least} to {most}, {end} at the end.")
    };
    let axes = (
        Axis::new("time", Scale::between(Quantity::Time, (0.0, real(end_ns)), 5)),
        Axis::new(axis, Scale::from_zero(*quantity, real(most) * 1.04, 4)),
    );
    let mut chart = Chart::new(title, &said, Shape::Third, axes);
    let points = series.points.iter().map(|point| (real(point.after_ns), real(of(point))));
    let line = Line::new("", *colour, points.collect());
    chart.add(if series.points.len() <= MARKED_MAX { line.with_markers() } else { line });
    chart
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use connections::{
        Follower, NamespaceLook, Owner, Place, TcpInfo, TcpLook, TcpSocket, TcpState,
    };

    use super::*;

    fn look(windows: [u32; 2], rate: u64) -> TcpLook {
        let ends = ["10.0.0.1:80", "10.0.0.2:4000"].map(|end| end.parse().unwrap());
        let socket = |(cookie, window): (u64, u32)| TcpSocket {
            inode: 7,
            cookie,
            info: Some(TcpInfo {
                congestion_window: window,
                rtt_us: 250,
                delivery_rate: (cookie == 0).then_some(rate),
                ..TcpInfo::default()
            }),
            ..TcpSocket::new(TcpState::Established, ends)
        };
        let sockets = (0..).zip(windows).map(socket).collect();
        let seen = NamespaceLook { sockets, ..NamespaceLook::default() };
        let owner = Arc::new(Owner { process: 77, name: "a<b".to_owned() });
        TcpLook {
            namespaces: vec![(Place::default(), seen)],
            owners: [(7, owner)].into(),
            ..TcpLook::default()
        }
    }

    #[test]
    fn each_connection_has_plots_of_what_is_known_of_it() {
        let mut follower = Follower::default();
        for (at, windows, rate) in [(0, [10, 20], 5_000_000), (1, [40, 20], 9_000_000)] {
            follower.take(at * 10_000_000_000, &look(windows, rate));
        }
        let mut page = Document::new("x");
        add(&mut page, &follower.chosen(&[], 10));
        let html = page.finish("");
        // An older kernel does not report the delivery rate of the other one.
        assert_eq!(html.matches("<svg ").count(), 5, "{html}");
        assert_eq!(html.matches("data-points=\"2\"").count(), 5, "{html}");
        for words in [
            "10 segments to 40 segments, 40 segments at the end.",
            "20 segments all the time.",
            "250.0 us all the time.",
            "10.0.0.1:80 to 10.0.0.2:4000, a&lt;b (process 77)",
            ">time, s<",
        ] {
            assert!(html.contains(words), "{words} in {html}");
        }
        let mut page = Document::new("x");
        add(&mut page, &[]);
        assert!(page.finish("").contains("No connection was seen."));
    }
}
