//! What a network interface is like, as far as `sysfs` tells.

use std::fs;

/// How many receive queues an interface has; `None` where that is not told.
pub fn receive_queue_count(interface: &str) -> Option<usize> {
    let entries = fs::read_dir(format!("/sys/class/net/{interface}/queues")).ok()?;
    let is_receiving = |name: &str| name.starts_with("rx-");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Some(names.filter(|name| is_receiving(name)).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_one_receive_queue() {
        assert_eq!(receive_queue_count("lo"), Some(1));
        assert_eq!(receive_queue_count("no-such-interface"), None);
    }
}
