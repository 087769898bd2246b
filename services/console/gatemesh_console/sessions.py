"""Who is signed in: kept in memory, so that it ends with a click or with the process."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from gatemesh_console.tokens import Person

MOST_SESSIONS = 1000


@dataclass
class Session:
    """One browser that is signed in."""

    person: Person
    form_key: str
    """Must come with every form."""
    ends_s: float
    idle_ends_s: float

    def owns(self, form_key: str) -> bool:
        """True when a form came from a page of this session."""
        return hmac.compare_digest(self.form_key.encode(), form_key.encode())


class Sessions:
    """Sessions by the hash of the browser's secret; the oldest leaves when there are too many."""

    def __init__(self, clock: Callable[[], float], longest_s: float, idle_s: float) -> None:
        self._clock = clock
        self._longest_s = longest_s
        self._idle_s = idle_s
        self._sessions: dict[str, Session] = {}

    def begin(self, person: Person) -> str:
        """Sign somebody in and return the secret that their browser keeps."""
        self._forget_ended()
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret, now = secrets.token_urlsafe(32), self._clock()
        session = Session(
            person, secrets.token_urlsafe(32), now + self._longest_s, now + self._idle_s
        )
        self._sessions[_name(secret)] = session
        return secret

    def find(self, secret: str) -> Session | None:
        """Return the session of a browser, and let it be idle anew; None when it has ended."""
        session = self.peek(secret)
        if session is not None:
            session.idle_ends_s = self._clock() + self._idle_s
        return session

    def peek(self, secret: str) -> Session | None:
        """Return the session of a browser without keeping it alive."""
        session = self._sessions.get(_name(secret))
        return None if session is None or self._has_ended(session) else session

    def end(self, secret: str) -> None:
        """Sign a browser out."""
        self._sessions.pop(_name(secret), None)

    def _has_ended(self, session: Session) -> bool:
        return self._clock() >= min(session.ends_s, session.idle_ends_s)

    def _forget_ended(self) -> None:
        ended = [name for name, one in self._sessions.items() if self._has_ended(one)]
        for name in ended:
            del self._sessions[name]


def _name(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
