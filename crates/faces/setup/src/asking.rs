//! One way to an answer: a flag, else what is proposed where that is agreed to, else a question.

use crate::answers::Answers;
use crate::ending::Ending;
use crate::machine::Operator;

/// A question.
pub(crate) struct Question<'a> {
    /// As a noun, for the message that it has no answer.
    pub(crate) what: &'static str,
    /// The flags that answer it.
    pub(crate) flag: &'static str,
    /// As it is asked.
    pub(crate) text: &'a str,
    /// What Enter means; `None` where nothing can be proposed.
    pub(crate) proposal: Option<String>,
}

/// An answer, read by `read`; a wrong one is asked again.
pub(crate) fn answer<T>(
    (answers, operator): (&Answers, &mut dyn Operator),
    question: &Question<'_>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, Ending> {
    let Question { what, flag, text, ref proposal } = *question;
    if operator.is_stopped() {
        return Err(Ending::Interrupted);
    }
    // A dry run takes proposals, too: it changes nothing by them.
    let is_agreed = answers.takes_proposals || (answers.is_dry && !operator.can_be_asked());
    if let Some(proposal) = proposal.as_ref().filter(|_| is_agreed) {
        return read(proposal).map_err(Ending::Wrong);
    }
    if !operator.can_be_asked() {
        return Err(Ending::Unanswered { question: what, flag });
    }
    loop {
        let shown = proposal.as_ref().map_or_else(String::new, |it| format!(" [{it}]"));
        let Some(said) = operator.ask(&format!("{text}{shown}: ")) else {
            return Err(Ending::Interrupted);
        };
        let said = match proposal {
            Some(proposal) if said.is_empty() => proposal,
            _ => &said,
        };
        match read(said) {
            Ok(answer) => return Ok(answer),
            Err(why) => operator.say(&format!("  {why}")),
        }
    }
}

/// A yes or no.
pub(crate) fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err("write yes or no".to_owned()),
    }
}
