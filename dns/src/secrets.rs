//! Encrypts secrets for storage, with a key that is not in the store.
//!
//! A [`Vault`] holds the key-encryption key. [`Vault::seal`] makes a blob that only [`Vault::open`] with the same row
//! id decrypts, so a blob that is copied to another row is rejected. The format of a blob is `version (1) · key id (4)
//! · nonce (12) · ciphertext · tag (16)`; version and key id are authenticated too. The cipher is AES-256-GCM-SIV (RFC
//! 8452) with random nonces: a repeated nonce reveals only whether two secrets are equal.
//!
//! The key is read from a file of 64 hexadecimal digits. It is created with mode 0600 at the first start, or provided
//! by systemd's LoadCredential. Without the key, all sealed secrets are lost. Back it up separately from the store.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{digest, rand};
use message::hexadecimal;
use thiserror::Error;

/// Length of a key-encryption key in bytes.
pub const KEY_BYTES: usize = 32;
const VERSION: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES;

/// Errors of the vault, its blobs and its key file.
#[derive(Debug, Error)]
pub enum SealError {
    /// The blob is truncated, modified, or from another row.
    #[error("the sealed bytes are damaged or belong to another row")]
    Damaged,
    /// Sealed with another key, so the key file is the wrong one.
    #[error("sealed with another key (id {0:08x}); is it the right key file?")]
    UnknownKey(u32),
    #[error("sealed in format {0}, which this version does not support")]
    UnknownVersion(u8),
    /// The system's random generator or the cipher failed.
    #[error("the cipher failed")]
    Cipher,
    #[error("the key file must contain 64 hexadecimal digits")]
    KeyFile,
    /// The key file is readable by others.
    #[error("every user on this machine can read the key file; set its mode to 0600")]
    Exposed,
    #[error("cannot read or write the key file: {0}")]
    Io(#[from] io::Error),
}

/// Encrypts and decrypts secrets.
pub struct Vault {
    key: LessSafeKey,
    id: [u8; KEY_ID_BYTES],
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({:08x})", u32::from_be_bytes(self.id))
    }
}

impl Vault {
    pub fn new(kek: &[u8; KEY_BYTES]) -> Result<Self, SealError> {
        let key = UnboundKey::new(&AES_256_GCM_SIV, kek).map_err(|_| SealError::Cipher)?;
        Ok(Self { key: LessSafeKey::new(key), id: key_id(kek) })
    }

    /// Loads the key file at `path`, or creates it if there is none. `create` creates, or truncates, a file that only
    /// its owner can read. The caller holds the lock of the data directory, so no other process creates the file at the
    /// same time.
    ///
    /// # Errors
    /// [`SealError::KeyFile`], [`SealError::Exposed`], [`SealError::Io`].
    pub fn load_or_create(path: &Path, create: impl FnOnce(&Path) -> io::Result<File>) -> Result<Self, SealError> {
        match fs::read_to_string(path) {
            Ok(text) => {
                if fs::metadata(path)?.permissions().mode() & 0o007 != 0 {
                    return Err(SealError::Exposed);
                }
                Self::new(&parse_key(&text)?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut kek = [0; KEY_BYTES];
                rand::fill(&mut kek).map_err(|_| SealError::Cipher)?;
                write_key(path, &kek, create)?;
                Self::new(&kek)
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(SealError::KeyFile),
            Err(error) => Err(error.into()),
        }
    }

    /// Encrypts `plaintext` for the row `row_id`.
    pub fn seal(&self, row_id: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).map_err(|_| SealError::Cipher)?;
        let mut blob = Vec::with_capacity(HEAD_BYTES + NONCE_LEN + plaintext.len() + AES_256_GCM_SIV.tag_len());
        blob.push(VERSION);
        blob.extend_from_slice(&self.id);
        let aad = Aad::from([blob.as_slice(), row_id].concat());
        blob.extend_from_slice(&nonce);
        let mut secret = plaintext.to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut secret)
            .map_err(|_| SealError::Cipher)?;
        blob.extend_from_slice(&secret);
        Ok(blob)
    }

    /// Decrypts a blob of [`Vault::seal`] for the same row.
    ///
    /// # Errors
    /// [`SealError::Damaged`], [`SealError::UnknownKey`], [`SealError::UnknownVersion`].
    pub fn open(&self, row_id: &[u8], blob: &[u8]) -> Result<Vec<u8>, SealError> {
        let (head, rest) = blob.split_first_chunk::<HEAD_BYTES>().ok_or(SealError::Damaged)?;
        let (nonce, secret) = rest.split_first_chunk::<NONCE_LEN>().ok_or(SealError::Damaged)?;
        let [version, id @ ..] = *head;
        if version != VERSION {
            return Err(SealError::UnknownVersion(version));
        }
        if id != self.id {
            return Err(SealError::UnknownKey(u32::from_be_bytes(id)));
        }
        let aad = Aad::from([head.as_slice(), row_id].concat());
        let mut plain = secret.to_vec();
        let length = self
            .key
            .open_in_place(Nonce::assume_unique_for_key(*nonce), aad, &mut plain)
            .map_err(|_| SealError::Damaged)?
            .len();
        plain.truncate(length);
        Ok(plain)
    }
}

/// An identifier that reveals nothing about the key.
fn key_id(kek: &[u8; KEY_BYTES]) -> [u8; KEY_ID_BYTES] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(b"postrider key-encryption key id");
    context.update(kek);
    let hash = context.finish();
    let mut id = [0; KEY_ID_BYTES];
    for (to, from) in id.iter_mut().zip(hash.as_ref()) {
        *to = *from;
    }
    id
}

fn parse_key(text: &str) -> Result<[u8; KEY_BYTES], SealError> {
    let kek = hexadecimal::decode(text.trim_ascii()).and_then(|kek| kek.try_into().ok());
    kek.ok_or(SealError::KeyFile)
}

/// Writes the file atomically and durably: a key in use is never written in part.
fn write_key(
    path: &Path,
    kek: &[u8; KEY_BYTES],
    create: impl FnOnce(&Path) -> io::Result<File>,
) -> Result<(), SealError> {
    let fresh = path.with_extension("new");
    let mut file = create(&fresh)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    let mut text = hexadecimal::encode(kek);
    text.push('\n');
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_data_opens_only_with_its_row_and_key() {
        let vault = Vault::new(&[7; KEY_BYTES]).unwrap();
        let blob = vault.seal(b"dom_1", b"secret").unwrap();
        assert_eq!(vault.open(b"dom_1", &blob).unwrap(), b"secret");
        assert!(!blob.windows(6).any(|window| window == b"secret"));
        assert_ne!(blob, vault.seal(b"dom_1", b"secret").unwrap());
        assert!(matches!(vault.open(b"dom_2", &blob), Err(SealError::Damaged)));
        let other = Vault::new(&[8; KEY_BYTES]).unwrap();
        assert!(matches!(other.open(b"dom_1", &blob), Err(SealError::UnknownKey(_))));
        for length in 0..blob.len() {
            assert!(vault.open(b"dom_1", &blob[..length]).is_err());
        }
        for at in 0..blob.len() {
            let mut changed = blob.clone();
            changed[at] ^= 1;
            assert!(vault.open(b"dom_1", &changed).is_err(), "byte {at}");
        }
        assert_eq!(vault.open(b"", &vault.seal(b"", b"").unwrap()).unwrap(), b"");
        assert_eq!(format!("{vault:?}").len(), "Vault(00000000)".len());
    }

    fn create(path: &Path) -> io::Result<File> {
        File::create(path)
    }

    #[test]
    fn the_key_file_is_created_once_with_private_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret.key");
        let first = Vault::load_or_create(&path, create).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let blob = first.seal(b"row", b"x").unwrap();
        assert_eq!(Vault::load_or_create(&path, create).unwrap().open(b"row", &blob).unwrap(), b"x");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Vault::load_or_create(&path, create), Err(SealError::Exposed)));
        for bad in ["", "00", "zz", &"0".repeat(63), &"g".repeat(64)] {
            fs::write(&path, bad).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(matches!(Vault::load_or_create(&path, create), Err(SealError::KeyFile)), "{bad:?}");
        }
    }
}
