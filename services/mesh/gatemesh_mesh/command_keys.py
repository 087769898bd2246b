"""The pair of keys of a local stack: made once, kept in its state folder."""

import secrets
from collections.abc import Callable

from gatemesh_common.signing import SEED_BYTES, KeyUnreadableError, SigningKey
from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.state import StateFolder, explained, write_private


def random_seed() -> bytes:
    """Return what a new key is made of."""
    return secrets.token_bytes(SEED_BYTES)


def prepare_keys(folder: StateFolder, seed: Callable[[], bytes] = random_seed) -> None:
    """Make the pair where there is none; nobody else can read either file.

    The public key is written each time: it is trusted beside no other, so that a pair that was
    changed by hand works, too.

    Raises:
        MeshError: the key that is there cannot be used.
    """
    private = folder.signing_key_file
    with explained(folder.root):
        private.parent.mkdir(mode=0o700, exist_ok=True)
        if not private.exists():
            write_private(private, SigningKey.from_seed(seed()).private_pem())
        try:
            key = SigningKey.from_pem(private.read_text())
        except (KeyUnreadableError, UnicodeDecodeError):
            raise MeshError(
                f"{private} holds no signing key", "remove it; the next start makes another one"
            ) from None
        write_private(folder.trusted_keys_file, key.public_pem())
