//! The results as a table for the documentation.

use super::judge::Verdict;
use super::outcome::Outcome;
use super::situation::Situation;

/// A row for each situation, and one line for the pairs.
pub(super) fn markdown(situations: &[&Situation], results: &[Outcome]) -> String {
    let mut text = String::from(
        "| what is planted | named by | an expert would have used | and seen there |\n\
         |---|---|---|---|\n",
    );
    for situation in situations {
        let result = results.iter().find(|it| it.names == [situation.name.clone()]);
        text.push_str(&row(situation, result));
    }
    text.push_str(&of_pairs(results).unwrap_or_default());
    text
}

fn of_pairs(results: &[Outcome]) -> Option<String> {
    let pairs: Vec<&Outcome> = results.iter().filter(|it| it.names.len() == 2).collect();
    let named = pairs.iter().filter(|it| it.verdict == Verdict::Named).count();
    let both = pairs.iter().filter(|it| it.named == 2).count();
    (!pairs.is_empty()).then(|| {
        format!(
            "\nPairs: {} planted at the same time; the first finding names one of both in {named}, \
             both are named in {both}.\n",
            pairs.len()
        )
    })
}

fn row(situation: &Situation, result: Option<&Outcome>) -> String {
    let named = match result {
        None => "not run here".to_owned(),
        Some(Outcome { verdict: Verdict::Named, first, .. }) => match first {
            Some(found) if !situation.findings.is_empty() => format!("`{}`", found.kind),
            _ => "nothing found, as it should be".to_owned(),
        },
        Some(Outcome { verdict, first, .. }) => {
            let kind = first.as_ref().map_or("nothing", |found| &found.kind);
            format!("{}: `{kind}` first", verdict.word().to_lowercase())
        }
    };
    let cell = |text: &str| text.replace('|', "\\|");
    format!(
        "| {} | {named} | {} | {} |\n",
        cell(&situation.what),
        cell(&situation.experts),
        cell(&situation.see)
    )
}

#[cfg(test)]
mod tests {
    use super::super::judge::findings;
    use super::*;

    #[test]
    fn each_situation_has_a_row_and_pairs_a_line() {
        let situation = Situation {
            name: "deaf".to_owned(),
            what: "a | listener".to_owned(),
            findings: vec!["tcp.accept_queue".to_owned()],
            experts: "ss -ltn".to_owned(),
            see: "Recv-Q".to_owned(),
            ..Situation::default()
        };
        let report = serde_json::json!({"findings": [{"kind": "tcp.accept_queue"}]});
        let first = findings(&report).pop();
        let result = |names: &[&str], verdict, named| Outcome {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            verdict,
            named,
            first: first.clone(),
        };
        let results =
            [result(&["deaf"], Verdict::Named, 1), result(&["deaf", "slow"], Verdict::Later, 1)];
        let text = markdown(&[&situation], &results);
        assert!(text.contains("| a \\| listener | `tcp.accept_queue` | ss -ltn | Recv-Q |"));
        assert!(text.ends_with("names one of both in 0, both are named in 0.\n"), "{text}");
        assert!(markdown(&[&situation], &[]).contains("| not run here |"));
    }
}
