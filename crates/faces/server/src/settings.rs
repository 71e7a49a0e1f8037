//! What the service was started with, for who administers it: each key of its configuration, with
//! the value that counts. Files are named, and what is in them is not shown.

use std::path::{Path, PathBuf};

use people::Role;
use serde_json::{Value, json};

use crate::Config;

/// The keys with their values, as JSON; `null` is a value that was not given.
pub(crate) fn settings_json(config: &Config) -> String {
    let settings = values(config).into_iter().map(|(key, value)| {
        let flag = format!("--{}", key.replace('_', "-"));
        json!({"key": key, "flag": flag, "value": value})
    });
    page::safe::json_pretty(&json!({ "settings": settings.collect::<Vec<Value>>() }))
}

fn values(config: &Config) -> Vec<(&'static str, Value)> {
    let bounds = &config.bounds;
    let (tls, people) = (config.tls.as_ref(), config.people.as_ref());
    let (audit, holds) = (config.audit.as_ref(), config.holds.as_ref());
    vec![
        ("volumes", paths(&config.volumes)),
        ("listen", config.listen.to_string().into()),
        ("public_url", config.origin().map(|origin| origin.to_string()).into()),
        ("tls_cert", path(tls.map(|tls| &*tls.certificate))),
        ("tls_key", path(tls.map(|tls| &*tls.key))),
        ("client_ca", path(config.client_ca.as_deref())),
        ("client_crl", path(config.client_crl.as_deref())),
        ("stenographer", config.stenographer.map(|address| address.to_string()).into()),
        ("token_file", path(config.token_file.as_deref())),
        ("people_file", path(people.map(|people| &*people.file))),
        ("role", people.map(|people| people.roles.iter().map(role).collect::<Vec<_>>()).into()),
        ("provider", path(config.provider.as_deref())),
        ("audit", path(audit.map(|audit| &*audit.path))),
        ("audit_size", audit.map(|audit| audit.file_bytes).into()),
        ("audit_files", audit.map(|audit| audit.files).into()),
        ("hold_dir", path(holds.map(|holds| &*holds.folder))),
        ("hold_size", holds.map(|holds| holds.size_max).into()),
        ("tags_file", path(config.tags.as_deref())),
        ("requests_file", path(config.approvals.as_deref())),
        ("qualification", paths(&config.qualifications)),
        ("tshark", path(config.tshark.as_deref())),
        ("index_dir", path(config.index_dir.as_deref())),
        ("identity", path(config.identity.as_deref())),
        ("workers", bounds.workers.into()),
        ("connections", bounds.connections.into()),
        ("max_time", format!("{}s", bounds.time.as_secs()).into()),
        ("max_bytes", bounds.answer_bytes.into()),
    ]
}

fn path(path: Option<&Path>) -> Value {
    path.map(page::safe::path_value).into()
}

fn paths(paths: &[PathBuf]) -> Value {
    paths.iter().map(page::safe::path_value).collect()
}

fn role(role: &Role) -> String {
    let scopes: Vec<&str> = role.scopes.iter().map(|scope| scope.word()).collect();
    let filter = role.filter.as_ref().map_or_else(String::new, |filter| format!(" {filter}"));
    format!("{}={}{filter}", role.name, scopes.join(","))
}
