//! Asking the person at the terminal.

use zeroize::Zeroizing;

/// Asks for a passphrase at the terminal, and does not show it; `None` where there is no terminal,
/// or the person leaves.
pub fn ask_passphrase(prompt: &str) -> Option<Zeroizing<String>> {
    rpassword::prompt_password(prompt).ok().map(Zeroizing::new)
}
