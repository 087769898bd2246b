"""Making pairs of keys that sign and verify commands; a private key is written, never shown."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from gatemesh_common.signing import SEED_BYTES, SigningKey
from gatemesh_ctl.errors import CtlError

PRIVATE_NAME = "signing.pem"
PUBLIC_NAME = "signing.pub.pem"
ONLY_OURS = 0o600
EVERYBODY = 0o644


def make_pair(folder: Path) -> SigningKey:
    """Write a new pair into a folder, which is made where it is missing.

    Raises:
        CtlError: there is a key already, which is left alone, or the folder cannot be written.
    """
    key = SigningKey.from_seed(secrets.token_bytes(SEED_BYTES))
    files = (
        (folder / PUBLIC_NAME, key.public_pem(), EVERYBODY),
        (folder / PRIVATE_NAME, key.private_pem(), ONLY_OURS),
    )
    for path, _, _ in files:
        if path.exists():
            raise already_there(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text, mode in files:
            write_new(path, text, mode)
    except FileExistsError as error:
        raise already_there(Path(str(error.filename))) from None
    except OSError as error:
        raise CtlError(
            f"{folder} cannot be written: {error.strerror}", "name a folder of your own"
        ) from None
    return key


def write_new(path: Path, text: str, mode: int) -> None:
    """Write a file that was not there, with its mode from the start; one cut off is removed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise


def already_there(path: Path) -> CtlError:
    """Say that a key would be lost."""
    return CtlError(f"{path} is there already", "name another folder, or move the old key away")
