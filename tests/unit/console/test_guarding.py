"""What a browser is told, and which forms are taken."""

import pytest

from gatemesh_console.guarding import HEADERS, is_own_page, local_path

OWN = {"host": "mesh.test:8090"}


def test_no_script_is_let_in_but_our_files() -> None:
    """Nothing inline, nothing from elsewhere, nothing evaluated."""
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    ("headers", "origin", "own"),
    [
        pytest.param({**OWN, "origin": "http://mesh.test:8090"}, "", True, id="own"),
        pytest.param({**OWN, "origin": "http://evil.test"}, "", False, id="other"),
        pytest.param({**OWN, "origin": "null"}, "", False, id="hidden"),
        pytest.param({**OWN, "origin": "http://mesh.test:8091"}, "", False, id="port"),
        pytest.param({**OWN, "origin": "https://m.test"}, "https://m.test", True, id="proxy"),
        pytest.param({**OWN, "origin": "http://m.test"}, "https://m.test", False, id="no-tls"),
        pytest.param(OWN, "", True, id="program"),
        pytest.param({**OWN, "sec-fetch-site": "cross-site"}, "", False, id="cross-site"),
        pytest.param({**OWN, "sec-fetch-site": "same-site"}, "", False, id="same-site"),
        pytest.param({**OWN, "sec-fetch-site": "same-origin"}, "", True, id="same-origin"),
    ],
)
def test_a_form_of_another_site_is_known(headers: dict[str, str], origin: str, own: bool) -> None:  # noqa: FBT001 (a table)
    """Browsers name where a form came from."""
    assert is_own_page(headers, origin) is own


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/incidents?after=x", "/incidents?after=x"),
        ("/", "/"),
        ("//evil.test", "/"),
        ("/\\evil.test", "/"),
        ("https://evil.test", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\nSet-Cookie: x", "/"),
        ("", "/"),
    ],
)
def test_one_goes_back_to_this_site_only(path: str, kept: str) -> None:
    """A link to the sign-in page cannot lead elsewhere."""
    assert local_path(path) == kept
