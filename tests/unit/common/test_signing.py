"""What a signature proves, and what it does not."""

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_common.signing import (
    KEY_HEADER,
    SIGNATURE_HEADER,
    Distrust,
    KeyUnreadableError,
    SigningKey,
    TrustedKeys,
)

OLD, NEW = SigningKey.from_seed(bytes(32)), SigningKey.from_seed(b"n" * 32)
BOTH = TrustedKeys.from_pem(OLD.public_pem() + "\nthe next one:\n" + NEW.public_pem())
BODY = b'{"action":"drain"}'


@pytest.mark.parametrize("key", [OLD, NEW], ids=["old", "new"])
def test_either_trusted_key_may_sign(key: SigningKey) -> None:
    """While keys are changed, both owners are obeyed."""
    assert BOTH.distrust(BODY, key.sign(BODY)) is None


def test_a_key_that_was_taken_out_is_unknown() -> None:
    """The end of a change of keys."""
    only_new = TrustedKeys.from_pem(NEW.public_pem())
    assert only_new.distrust(BODY, OLD.sign(BODY)) is Distrust.UNKNOWN_KEY
    assert only_new.distrust(BODY, NEW.sign(BODY)) is None


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({SIGNATURE_HEADER: None}, Distrust.UNSIGNED, id="no-signature"),
        pytest.param({KEY_HEADER: None}, Distrust.UNKNOWN_KEY, id="no-key"),
        pytest.param({KEY_HEADER: 7}, Distrust.UNKNOWN_KEY, id="key-of-another-type"),
        pytest.param({KEY_HEADER: NEW.key_id}, Distrust.BAD_SIGNATURE, id="another-key"),
        pytest.param({SIGNATURE_HEADER: "?"}, Distrust.BAD_SIGNATURE, id="not-base64"),
        pytest.param({SIGNATURE_HEADER: "ä"}, Distrust.BAD_SIGNATURE, id="not-ascii"),
        pytest.param({SIGNATURE_HEADER: 7}, Distrust.BAD_SIGNATURE, id="not-text"),
        pytest.param({SIGNATURE_HEADER: ""}, Distrust.BAD_SIGNATURE, id="empty"),
    ],
)
def test_headers_that_prove_nothing(changed: dict[str, object], expected: Distrust) -> None:
    """Whatever a stranger puts there has a name, and breaks nothing."""
    headers = {name: it for name, it in {**OLD.sign(BODY), **changed}.items() if it is not None}
    assert BOTH.distrust(BODY, headers) is expected


@given(body=st.binary(max_size=200), other=st.binary(max_size=200))
def test_a_signature_is_of_one_body(body: bytes, other: bytes) -> None:
    """Not a byte may differ."""
    expected = None if body == other else Distrust.BAD_SIGNATURE
    assert BOTH.distrust(other, OLD.sign(body)) is expected


def test_nobody_is_trusted_where_no_key_is() -> None:
    """An empty list is not the same as no list."""
    assert TrustedKeys().distrust(BODY, OLD.sign(BODY)) is Distrust.UNKNOWN_KEY


def test_a_key_id_is_made_of_the_public_key() -> None:
    """Others can work it out: 16 digits of the SHA-256 of the raw key."""
    public = load_pem_public_key(OLD.public_pem().encode())
    raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    assert OLD.key_id == hashlib.sha256(raw).hexdigest()[:16]
    assert BOTH.key_ids == (OLD.key_id, NEW.key_id)


def test_a_private_key_survives_its_file() -> None:
    """What `keys new` writes is what the manager reads."""
    assert SigningKey.from_pem(OLD.private_pem()).sign(BODY) == OLD.sign(BODY)
    load_pem_private_key(OLD.private_pem().encode(), password=None)


def test_a_private_key_shows_only_its_id() -> None:
    """It may come to stand in a log or a traceback."""
    secret = OLD.private_pem().splitlines()[1]
    assert secret not in repr(OLD)
    assert OLD.key_id in repr(OLD)


def foreign_pem(*, private: bool) -> str:
    """Return a key of another kind."""
    key = generate_private_key(SECP256R1())
    if private:
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    else:
        public = key.public_key()
        pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode()


def locked_pem() -> str:
    """Return a private key behind a password."""
    private = load_pem_private_key(OLD.private_pem().encode(), password=None)
    locked = BestAvailableEncryption(b"sesame")
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked).decode()


@pytest.mark.parametrize(
    ("pem", "match"),
    [
        pytest.param("", "no private key", id="empty"),
        pytest.param("secret words", "no private key", id="words"),
        pytest.param(OLD.public_pem(), "no private key", id="public"),
        pytest.param(locked_pem(), "no private key", id="behind-a-password"),
        pytest.param(foreign_pem(private=True), "none of Ed25519", id="another-kind"),
    ],
)
def test_what_is_no_signing_key_is_refused(pem: str, match: str) -> None:
    """The text is not repeated: it may hold a secret."""
    with pytest.raises(KeyUnreadableError, match=match) as caught:
        SigningKey.from_pem(pem)
    assert not pem or pem not in str(caught.value)


@pytest.mark.parametrize(
    ("pem", "match"),
    [
        pytest.param(OLD.private_pem(), "a private key is there", id="private"),
        pytest.param(OLD.public_pem()[:-30], "no whole PUBLIC KEY", id="cut-off"),
        pytest.param(
            OLD.public_pem() + foreign_pem(private=False), "public key 2 is none", id="another-kind"
        ),
        pytest.param(
            OLD.public_pem().replace("MCow", "!!!!"), "public key 1 cannot be read", id="damaged"
        ),
    ],
)
def test_what_is_no_public_key_is_refused(pem: str, match: str) -> None:
    """The fault is named, with the place."""
    with pytest.raises(KeyUnreadableError, match=match):
        TrustedKeys.from_pem(pem)


def test_a_text_without_keys_trusts_nobody() -> None:
    """It is for the caller to say whether that is meant."""
    assert TrustedKeys.from_pem("# none yet\n").key_ids == ()


def test_a_signature_is_base64_of_64_bytes() -> None:
    """Any other program can check it."""
    assert len(base64.b64decode(OLD.sign(BODY)[SIGNATURE_HEADER])) == 64
