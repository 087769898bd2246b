"""A session lives while it is used, for a day at most, and ends with a click."""

from gatemesh_console.sessions import MOST_SESSIONS, Sessions
from gatemesh_console.tokens import Person, Role

ANN = Person("ann", Role.OPERATOR)


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Return the moment."""
        return self.now_s


def test_a_session_is_found_by_its_secret_only() -> None:
    """Another secret finds nothing."""
    sessions = Sessions(Watch(), 100, 10)
    secret = sessions.begin(ANN)
    found = sessions.find(secret)
    assert found is not None
    assert found.person == ANN
    assert sessions.find(secret + "x") is None
    assert sessions.find("") is None


def test_a_session_ends_when_it_is_not_used() -> None:
    """Use keeps it alive, a look does not, and none outlives the longest time."""
    watch = Watch()
    sessions = Sessions(watch, 25, 10)
    secret = sessions.begin(ANN)
    watch.now_s = 9.0
    assert sessions.peek(secret) is not None
    assert sessions.find(secret) is not None
    watch.now_s = 18.9
    assert sessions.find(secret) is not None
    watch.now_s = 25.0
    assert sessions.find(secret) is None
    idle = sessions.begin(ANN)
    watch.now_s = 30.0
    sessions.peek(idle)
    watch.now_s = 35.0
    assert sessions.find(idle) is None


def test_signing_out_ends_it() -> None:
    """The secret is worth nothing afterwards; ending it twice is harmless."""
    sessions = Sessions(Watch(), 100, 10)
    secret = sessions.begin(ANN)
    sessions.end(secret)
    sessions.end(secret)
    assert sessions.find(secret) is None


def test_a_form_key_belongs_to_one_session() -> None:
    """A page of one session cannot act in another."""
    sessions = Sessions(Watch(), 100, 10)
    one, other = (sessions.find(sessions.begin(ANN)) for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.owns(one.form_key)
    assert not one.owns(other.form_key)
    assert not one.owns("")


def test_memory_is_bounded() -> None:
    """The oldest session leaves when there are too many."""
    sessions = Sessions(Watch(), 100, 10)
    secrets = [sessions.begin(ANN) for _ in range(MOST_SESSIONS + 1)]
    assert sessions.find(secrets[0]) is None
    assert sessions.find(secrets[1]) is not None
    assert sessions.find(secrets[-1]) is not None
