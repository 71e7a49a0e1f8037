//! Stenographer's file of settings.

use serde::Deserialize;

/// Stenographer ignores what it does not know, so one file serves both.
#[derive(Deserialize)]
struct Config {
    #[serde(rename = "Volume")]
    volume: Option<String>,
}

/// The volume that the settings name.
pub fn stenographer_volume(config: &str) -> Option<String> {
    serde_json::from_str(config).ok().and_then(|Config { volume }| volume)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volume_stands_beside_what_stenographer_reads() {
        let config =
            r#"{"Threads": [], "Interface": "eth0", "Port": 1234, "Volume": "/data/spool"}"#;
        assert_eq!(stenographer_volume(config).as_deref(), Some("/data/spool"));
        assert_eq!(stenographer_volume(r#"{"Threads": []}"#), None);
        assert_eq!(stenographer_volume("no JSON"), None);
    }
}
