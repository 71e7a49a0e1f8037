//! What manifests say of who makes them, and the question for an authority of time stamps.

use std::sync::OnceLock;

use ::evidence::{Maker, SigningKey};
use ::extract::ExtractReport;

/// What manifests say of who makes an extract. Asked once: a recorder asks before it gives up its
/// rights, for users are looked up in files.
pub(crate) fn maker() -> &'static Maker {
    static MAKER: OnceLock<Maker> = OnceLock::new();
    MAKER.get_or_init(|| {
        let (user, called_by) = host::this_user();
        let program = concat!("wirespool ", env!("CARGO_PKG_VERSION")).to_owned();
        Maker { program, host: host::host_name(), user, called_by }
    })
}

/// Makes manifests, signed where there is a key.
pub(crate) fn manifest_with(
    key: Option<&SigningKey>,
) -> impl Fn(&ExtractReport, &[String]) -> String {
    move |report, files| session_view::manifest_json(&report.manifest, maker(), files, key)
}
