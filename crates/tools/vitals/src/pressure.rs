//! Time lost to waiting (Documentation/accounting/psi.rst).

use super::figures::{Entry, Figure, Look, Unit};

pub(super) fn entries(now: &Look) -> Vec<Entry> {
    let entry = |resource: &&str| {
        let figures = figures(now, resource);
        (!figures.is_empty()).then(|| Entry { name: (*resource).to_owned(), figures })
    };
    ["cpu", "memory", "io"].iter().filter_map(entry).collect()
}

fn figures(now: &Look, resource: &str) -> Vec<Figure> {
    const PARTS: [(&str, &str, &str, &str); 4] = [
        (
            "some, 10 s",
            "some.avg10",
            "some avg10 of /proc/pressure",
            "time in which some work waited, of the last ten seconds",
        ),
        (
            "some, 60 s",
            "some.avg60",
            "some avg60 of /proc/pressure",
            "time in which some work waited, of the last minute",
        ),
        (
            "full, 10 s",
            "full.avg10",
            "full avg10 of /proc/pressure",
            "time in which all work waited, of the last ten seconds",
        ),
        (
            "full, 60 s",
            "full.avg60",
            "full avg60 of /proc/pressure",
            "time in which all work waited, of the last minute",
        ),
    ];
    let each = PARTS.iter().filter_map(|(name, field, source, meaning)| {
        let value = now.number(&format!("pressure.{resource}.{field}"))?;
        Some(Figure { name, value, unit: Unit::Percent, source, meaning })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{are, facts};
    use super::super::vitals;
    use super::*;

    #[test]
    fn each_resource_has_what_the_kernel_tells_of_it() {
        let now = Look {
            facts: facts(&[
                ("pressure.cpu.some.avg10", "12.50"),
                ("pressure.cpu.some.avg60", "3.00"),
                ("pressure.io.full.avg10", "7.00"),
            ]),
            ..Look::default()
        };
        let found = vitals(None, &now).pressure;
        let names: Vec<&str> = found.iter().map(|entry| &*entry.name).collect();
        assert_eq!(names, ["cpu", "io"]);
        are(&found[0].figures, &[("some, 10 s", 12.5), ("some, 60 s", 3.0)]);
        assert_eq!(found[1].figures.len(), 1);
        are(&found[1].figures, &[("full, 10 s", 7.0)]);
    }
}
