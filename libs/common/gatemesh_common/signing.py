"""Signed bodies: Ed25519 over their exact bytes, carried beside them in two headers (pure)."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from gatemesh_common.errors import GatemeshError

KEY_HEADER = "x-key-id"
SIGNATURE_HEADER = "x-signature"
SEED_BYTES = 32
KEY_ID_DIGITS = 16
PUBLIC_BLOCK = re.compile(
    r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL | re.ASCII
)


class KeyUnreadableError(GatemeshError):
    """A text holds no such key as is asked for; the message never repeats the text."""


class Distrust(StrEnum):
    """Why a body does not count as one of a trusted key's owner; a closed list."""

    UNSIGNED = "unsigned"
    UNKNOWN_KEY = "unknown_key"
    BAD_SIGNATURE = "bad_signature"


class SigningKey:
    """A private key; shows nothing of itself but its id."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.key_id = key_id_of(private.public_key())

    @classmethod
    def from_seed(cls, seed: bytes) -> "SigningKey":
        """Return the key that 32 secret bytes stand for."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def from_pem(cls, pem: str) -> "SigningKey":
        """Return the key of a PEM text (PKCS8, without a password).

        Raises:
            KeyUnreadableError: it holds none.
        """
        try:
            private = load_pem_private_key(pem.encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise KeyUnreadableError("no private key in PEM form (PKCS8, no password)") from None
        if not isinstance(private, Ed25519PrivateKey):
            raise KeyUnreadableError("the private key is none of Ed25519")
        return cls(private)

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id})"

    def sign(self, body: bytes) -> dict[str, str]:
        """Return the headers that prove a body."""
        signature = base64.b64encode(self._private.sign(body)).decode()
        return {KEY_HEADER: self.key_id, SIGNATURE_HEADER: signature}

    def private_pem(self) -> str:
        """Return the key as its owner keeps it."""
        pem = self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return pem.decode()

    def public_pem(self) -> str:
        """Return what others verify with."""
        public = self._private.public_key()
        return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


class TrustedKeys:
    """Public keys, any of which may have signed."""

    def __init__(self, keys: Iterable[Ed25519PublicKey] = ()) -> None:
        self._keys = {key_id_of(key): key for key in keys}

    @classmethod
    def from_pem(cls, pem: str) -> "TrustedKeys":
        """Return every key of a PEM text; other words around the keys are let be.

        Raises:
            KeyUnreadableError: one of them is no public key of Ed25519, or a private key is there.
        """
        if "PRIVATE KEY-----" in pem:
            raise KeyUnreadableError("a private key is there; only public keys belong here")
        blocks = PUBLIC_BLOCK.findall(pem)
        if len(blocks) != pem.count("-----BEGIN"):
            raise KeyUnreadableError("a block is there that is no whole PUBLIC KEY in PEM form")
        return cls(_public_key(block, number) for number, block in enumerate(blocks, 1))

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of the keys, in the order of the text."""
        return tuple(self._keys)

    def distrust(self, body: bytes, headers: Mapping[str, object]) -> Distrust | None:
        """Return why a body is not trusted; None when a trusted key has signed it."""
        signature = headers.get(SIGNATURE_HEADER)
        if signature is None:
            return Distrust.UNSIGNED
        key = self._keys.get(str(headers.get(KEY_HEADER)))
        if key is None:
            return Distrust.UNKNOWN_KEY
        return None if _is_signed(key, body, signature) else Distrust.BAD_SIGNATURE


def key_id_of(key: Ed25519PublicKey) -> str:
    """Return the name of a key: the beginning of the SHA-256 of its raw bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:KEY_ID_DIGITS]


def _public_key(pem: str, number: int) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise KeyUnreadableError(f"public key {number} cannot be read") from None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyUnreadableError(f"public key {number} is none of Ed25519")
    return key


def _is_signed(key: Ed25519PublicKey, body: bytes, signature: object) -> bool:
    if not isinstance(signature, str | bytes):
        return False
    try:
        key.verify(base64.b64decode(signature, validate=True), body)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True
