"""What every answer and every form is held to in a browser."""

from collections.abc import Mapping
from urllib.parse import urlsplit

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`: with that, browsers hide the origin of our own forms from us.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
HTTPS_HEADERS = {"strict-transport-security": "max-age=31536000"}
SAFE_METHODS = frozenset({"GET", "HEAD"})


def is_own_page(headers: Mapping[str, str], origin: str) -> bool:
    """True when a form was not sent by another site's page.

    Browsers name the origin of every form; programs that name none hold no cookie to misuse.
    """
    told = headers.get("origin")
    if told is None:
        return headers.get("sec-fetch-site", "none") in ("same-origin", "none")
    if origin:
        return told == origin
    return urlsplit(told).netloc == headers.get("host", "")


def local_path(path: str) -> str:
    """Return a path of this site to go back to; the first page for anything else."""
    parts = urlsplit(path)
    own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if own and not parts.scheme and not parts.netloc else "/"
