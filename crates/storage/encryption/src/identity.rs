//! Identities, which unwrap data keys: private keys of age and of SSH.

use std::io::{BufReader, Read};
use std::sync::Arc;

use age::armor::ArmoredReader;
use age::secrecy::SecretString;
use age::ssh;
use zeroize::Zeroizing;

use crate::credential::is_credential;
use crate::key::{DataKey, KEY_BYTES};
use crate::wrap::{BOUND_BYTES, WrapError};

/// Most bytes that are unwrapped: a wrapped key is 56.
const PAYLOAD_MAX: u64 = 64;
/// Most bytes of a file of identities that is encrypted with a passphrase.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// How the begin of a file tells what it is.
const AGE_FILE: &[u8] = b"age-encryption.org/v1";
const ARMORED: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";
const PEM: &[u8] = b"-----BEGIN ";

/// Asks somebody for the passphrase of a file; `None` where there is nobody.
pub type AskPassphrase<'a> = &'a dyn Fn() -> Option<Zeroizing<String>>;

/// Private keys of recipients; a copy is the same keys.
#[derive(Clone)]
pub struct Identities {
    all: Arc<Vec<Box<dyn age::Identity + Send + Sync>>>,
}

impl PartialEq for Identities {
    /// Whether they are copies of each other.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.all, &other.all)
    }
}

impl Eq for Identities {}

impl core::fmt::Debug for Identities {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Identities({})", self.all.len())
    }
}

impl Identities {
    /// Of the content of a file: as `age-keygen` writes it, one `AGE-SECRET-KEY-1...` a line,
    /// comments behind `#`; the same encrypted with a passphrase by `age -p`; or a private key of
    /// SSH, Ed25519 or RSA. The passphrase of an encrypted one is asked for at once.
    ///
    /// # Errors
    /// [`WrapError::Identity`]; [`WrapError::Passphrase`]; [`WrapError::Credential`].
    pub fn parse(content: &[u8], ask: AskPassphrase<'_>) -> Result<Self, WrapError> {
        if is_credential(content) {
            return Err(WrapError::Credential);
        }
        let all = if content.starts_with(AGE_FILE) || content.starts_with(ARMORED) {
            of_age(&decrypted(content, ask)?)?
        } else if content.starts_with(PEM) {
            Vec::from([of_ssh(content, ask)?])
        } else {
            of_age(content)?
        };
        let is_empty = all.is_empty();
        (!is_empty)
            .then(|| Self { all: Arc::new(all) })
            .ok_or_else(|| WrapError::Identity("it is empty".to_owned()))
    }

    /// The text of a file that [`crate::Recipients::encrypt`] made for one of these, if it has so
    /// many bytes at most.
    pub fn decrypt(&self, sealed: &[u8], bytes_max: u64) -> Option<Zeroizing<Vec<u8>>> {
        let decryptor = age::Decryptor::new(sealed).ok()?;
        let identities = self.all.iter().map(|it| -> &dyn age::Identity { it.as_ref() });
        let reader = decryptor.decrypt(identities).ok()?;
        let mut plain = Zeroizing::new(Vec::new());
        reader.take(bytes_max).read_to_end(&mut plain).ok()?;
        Some(plain)
    }

    /// The data key of this volume and number, if it was wrapped to one of these.
    pub fn unwrap(&self, wrapped: &[u8], volume_id: [u8; 16], key_id: u64) -> Option<DataKey> {
        let decryptor = age::Decryptor::new(wrapped).ok()?;
        let identities = self.all.iter().map(|it| -> &dyn age::Identity { it.as_ref() });
        let reader = decryptor.decrypt(identities).ok()?;
        let mut payload = Zeroizing::new(Vec::with_capacity(KEY_BYTES + BOUND_BYTES + 1));
        reader.take(PAYLOAD_MAX).read_to_end(&mut payload).ok()?;
        let (key, bound) = payload.split_first_chunk::<KEY_BYTES>()?;
        let is_it = bound == [volume_id.as_slice(), &key_id.to_le_bytes()].concat();
        is_it.then(|| DataKey::new(*key))
    }
}

fn refused(why: impl core::fmt::Display) -> WrapError {
    WrapError::Identity(why.to_string())
}

fn of_age(text: &[u8]) -> Result<Vec<Box<dyn age::Identity + Send + Sync>>, WrapError> {
    let file = age::IdentityFile::from_buffer(BufReader::new(text)).map_err(refused)?;
    file.into_identities().map_err(refused)
}

fn of_ssh(
    content: &[u8],
    ask: AskPassphrase<'_>,
) -> Result<Box<dyn age::Identity + Send + Sync>, WrapError> {
    let identity = ssh::Identity::from_buffer(BufReader::new(content), None).map_err(refused)?;
    match identity {
        ssh::Identity::Unencrypted(_) => Ok(Box::new(identity)),
        ssh::Identity::Encrypted(key) => {
            let key = key.decrypt(passphrase(ask)?).map_err(|_| WrapError::Passphrase(WRONG))?;
            Ok(Box::new(ssh::Identity::Unencrypted(key)))
        }
        ssh::Identity::Unsupported(_) => {
            Err(refused("of SSH only Ed25519 and RSA keys of 2048 bits or more are read"))
        }
    }
}

const WRONG: &str = "and not with this one";

fn passphrase(ask: AskPassphrase<'_>) -> Result<SecretString, WrapError> {
    let nobody = WrapError::Passphrase("and there is no terminal to ask for it");
    ask().map(|text| SecretString::from(text.to_string())).ok_or(nobody)
}

/// The content of a file that was encrypted with a passphrase.
fn decrypted(content: &[u8], ask: AskPassphrase<'_>) -> Result<Zeroizing<Vec<u8>>, WrapError> {
    let decryptor = age::Decryptor::new(ArmoredReader::new(content)).map_err(refused)?;
    if !decryptor.is_scrypt() {
        return Err(refused("it is a file of age that was encrypted to a recipient"));
    }
    let identity = age::scrypt::Identity::new(passphrase(ask)?);
    let identities = core::iter::once::<&dyn age::Identity>(&identity);
    let reader = decryptor.decrypt(identities).map_err(|_| WrapError::Passphrase(WRONG))?;
    let mut plain = Zeroizing::new(Vec::new());
    reader.take(FILE_BYTES_MAX).read_to_end(&mut plain).map_err(refused)?;
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::wrap::Recipients;

    const SECRET: &str =
        "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";
    const PUBLIC: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";

    fn nobody() -> Option<Zeroizing<String>> {
        None
    }

    fn says(text: &str) -> impl Fn() -> Option<Zeroizing<String>> {
        let text = text.to_owned();
        move || Some(Zeroizing::new(text.clone()))
    }

    fn opens(identities: &Identities, recipient: &str) {
        let recipients = Recipients::parse(&[recipient.to_owned()]).unwrap();
        let wrapped = recipients.wrap(&DataKey::new([3; 32]), [1; 16], 5).unwrap();
        assert_eq!(identities.unwrap(&wrapped, [1; 16], 5).unwrap().bytes(), &[3; 32]);
    }

    #[test]
    fn a_file_of_age_with_a_passphrase_is_opened_with_that_one_alone() {
        let mut recipient = age::scrypt::Recipient::new(SecretString::from("a b c".to_owned()));
        recipient.set_work_factor(2);
        let encryptor =
            age::Encryptor::with_recipients(core::iter::once::<&dyn age::Recipient>(&recipient))
                .unwrap();
        let mut file = Vec::new();
        let mut writer = encryptor.wrap_output(&mut file).unwrap();
        writer.write_all(SECRET.as_bytes()).unwrap();
        writer.finish().unwrap();
        opens(&Identities::parse(&file, &says("a b c")).unwrap(), PUBLIC);
        let refused = |ask: AskPassphrase<'_>| Identities::parse(&file, ask).unwrap_err();
        assert!(refused(&says("a b d")).to_string().contains("not with this one"));
        assert!(refused(&nobody).to_string().contains("no terminal"));
    }

    #[test]
    fn keys_of_ssh_open_what_is_for_them() {
        opens(&Identities::parse(ED25519.as_bytes(), &nobody).unwrap(), ED25519_PUBLIC);
        let encrypted = ED25519_WITH_PASSPHRASE.as_bytes();
        let refused = Identities::parse(encrypted, &nobody).unwrap_err();
        assert!(matches!(refused, WrapError::Passphrase(_)), "{refused}");
        let refused = Identities::parse(encrypted, &says("wrong")).unwrap_err();
        assert!(matches!(refused, WrapError::Passphrase(_)), "{refused}");
        let opened = Identities::parse(encrypted, &says("open sesame")).unwrap();
        opens(&opened, ED25519_WITH_PASSPHRASE_PUBLIC);
        opens(&Identities::parse(RSA.as_bytes(), &nobody).unwrap(), RSA_PUBLIC);
    }

    #[test]
    fn what_is_no_private_key_is_refused() {
        for text in ["-----BEGIN OPENSSH PRIVATE KEY-----", "-----BEGIN nonsense", "ssh-ed25519 AA"]
        {
            let error = Identities::parse(text.as_bytes(), &nobody).unwrap_err();
            assert!(matches!(error, WrapError::Identity(_)), "{text}: {error}");
        }
        for at in 0..ED25519.len() {
            drop(Identities::parse(&ED25519.as_bytes()[..at], &nobody));
        }
    }

    const ED25519: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n\
QyNTUxOQAAACDVWf3u5lkxtXM/WLcpN6SUjMKqcgfiMSpjM80qbLyzbQAAAIjGQHAUxkBw\n\
FAAAAAtzc2gtZWQyNTUxOQAAACDVWf3u5lkxtXM/WLcpN6SUjMKqcgfiMSpjM80qbLyzbQ\n\
AAAECyBx+tJXZUbXt4KO+VkxOZpbBJObYeMauHfyKIUSoY9tVZ/e7mWTG1cz9Ytyk3pJSM\n\
wqpyB+IxKmMzzSpsvLNtAAAAAAECAwQF\n\
-----END OPENSSH PRIVATE KEY-----\n";
    const ED25519_PUBLIC: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINVZ/e7mWTG1cz9Ytyk3pJSMwqpyB+IxKmMzzSpsvLNt";

    const ED25519_WITH_PASSPHRASE: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABAClVlvIF\n\
/ukXT5w8GjdS0sAAAAAQAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIFUWVzs3+dGI0jAl\n\
2Rn+7oLe/NkZjj0Sn+eKysSYtflTAAAAkO30TyN3K63Ij5wwJhWIEbjph02SUFKNBxl9m4\n\
tfZHADO+d1xHFf0OH/8PG1bICeBJDB6K9spPvtS81fDruvR/9ILD7pnzVK+rIX7ATnDpWC\n\
UcKm004qtRYdM/F4/zpBPnR1Q/kZ6oUA13I9ECVUigh590mD4HrjZBXvP/f5hDropAa8yn\n\
ebu1UrANcq51G/6A==\n\
-----END OPENSSH PRIVATE KEY-----\n";
    const ED25519_WITH_PASSPHRASE_PUBLIC: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFUWVzs3+dGI0jAl2Rn+7oLe/NkZjj0Sn+eKysSYtflT";

    const RSA: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAABFwAAAAdzc2gtcn\n\
NhAAAAAwEAAQAAAQEAhRQ6f5rT9XZFQ1fbnHspri1pAfB01OQoyNx8Hr6Vi61A8ZLuKQo3\n\
/y1LAzNLgw/YRupBe73RCLybOOst65sVnUeOjJyjdUvmUwD36al0V3jtIxO/SkdPL+XGNI\n\
aJq0ntXEH3VV8QX7fzR1jVI4ANLyERpMKtWpcogduZj3+UnDt75amEkNX+3/dxNUJq5Tk1\n\
eo1a/srAIH2E8qyJHUf1UxcJ+PQ9vC426sstbY4g2CU2hNOHHAdPucMFKYLI8SXqeFuEma\n\
4xSlEXRPoKcIFthMJwMkLM58gQwQQ2jUKApkQMRJuvJJyvZoADBU2VDx9zoCupvhEMlgBW\n\
k4aVmXGgKwAAA7hrDHXjawx14wAAAAdzc2gtcnNhAAABAQCFFDp/mtP1dkVDV9uceymuLW\n\
kB8HTU5CjI3HwevpWLrUDxku4pCjf/LUsDM0uDD9hG6kF7vdEIvJs46y3rmxWdR46MnKN1\n\
S+ZTAPfpqXRXeO0jE79KR08v5cY0homrSe1cQfdVXxBft/NHWNUjgA0vIRGkwq1alyiB25\n\
mPf5ScO3vlqYSQ1f7f93E1QmrlOTV6jVr+ysAgfYTyrIkdR/VTFwn49D28Ljbqyy1tjiDY\n\
JTaE04ccB0+5wwUpgsjxJep4W4SZrjFKURdE+gpwgW2EwnAyQsznyBDBBDaNQoCmRAxEm6\n\
8knK9mgAMFTZUPH3OgK6m+EQyWAFaThpWZcaArAAAAAwEAAQAAAQA1z4wn9O8oHf670FbY\n\
22RrLal8Q0K6otdrANyfgejuZcwQ4pyys5MY97ORQ7iQ8mM9qZN4+bQAmGMbjN0wm7ENu9\n\
WEPgJKd7pWbdnQ/dgxVpBs0ptS6aq3b23J52zbejUkTPg56Qqx6avRebYVeL3cBL8hpCZ8\n\
rwqOF8HsKGZrFX0kqX1GbMthWNYNKohULkeDb+d9WEb8xEmz+zLT612eeJdV34VtgoV/Mk\n\
8JsMpotwgvlKGF/D2Q4nNjcoC/TzMj8/HbJzZuWEtHytVFOO2GbD3EyCJrEqCp+1YTJ6Op\n\
KeeoMCwV3SIPGm390exAyLm57E/MNGJuF9jZD9I3MaxhAAAAgB884d6NymHe3LAc3NK2yd\n\
+KpiIetculIL7tl0cJVNy9lUwsU6mdfitRsR+JuSDS4SxNig8Gb0TAufFfKmx6owp/H7mQ\n\
Ut2QIj8TY8+roCK4L8I/WNNF89O/LUGYeXk7ZAcrB1wXUTtnisTMJSwe1hnvraUgEvTLBv\n\
bQKD2uzE+BAAAAgQC77KbyvCgaDIjPW3wNlrS0yiClFCRWd9NTvsjMqARSSN2DCUSYrdsN\n\
Ni22zhuLMFkWiTP+/GCNRLwtVaSo/fWcFjtah57b4A6VBulCrnQOEQbUFU5JXnNFA43sBu\n\
cDavKY7/4D+OZ+zjpUsh2HsyKHgD9VUjbIOR4YQHTMJH80tQAAAIEAtUlvrK/9DYiK9lcf\n\
TYPHbsgUMXrmq5wdAsqo+VOzwnn0YUaQMoM3Rfl55D+yElZJ2w9SjBQUnyqkRBUxM8FrP9\n\
y+dgxobPiqhBitxT7rnL5o6kZmKo1+keNKx7znEuHs29XpewrayLliHEvYvbFqNwZma5np\n\
WbUoWXEqLT0cbV8AAAAAAQID\n\
-----END OPENSSH PRIVATE KEY-----\n";
    const RSA_PUBLIC: &str = "ssh-rsa \
        AAAAB3NzaC1yc2EAAAADAQABAAABAQCFFDp/mtP1dkVDV9uceymuLWkB8HTU5CjI3HwevpWL\
        rUDxku4pCjf/LUsDM0uDD9hG6kF7vdEIvJs46y3rmxWdR46MnKN1S+ZTAPfpqXRXeO0jE79KR08v5cY0\
        homrSe1cQfdVXxBft/NHWNUjgA0vIRGkwq1alyiB25mPf5ScO3vlqYSQ1f7f93E1QmrlOTV6jVr+ysAg\
        fYTyrIkdR/VTFwn49D28Ljbqyy1tjiDYJTaE04ccB0+5wwUpgsjxJep4W4SZrjFKURdE+gpwgW2EwnAy\
        QsznyBDBBDaNQoCmRAxEm68knK9mgAMFTZUPH3OgK6m+EQyWAFaThpWZcaAr";
}
