"""A classifier of your own: any function that takes a text and returns how bad it is, 0 to 1."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

MOST_CHARS = 20_000
"""Of a text that is handed to a classifier; of a longer one the beginning."""

Classify = Callable[[str], object]


class ClassifierError(ValueError):
    """A classifier that cannot be used; says which and why."""


@dataclass(frozen=True, slots=True)
class Classifier:
    """A function and the score from which on a text is flagged."""

    classify: Classify
    threshold: float

    def score(self, text: str) -> float:
        """Return the score of a text.

        Raises:
            ClassifierError: it is no number from 0 to 1.
        """
        score = self.classify(text[:MOST_CHARS])
        if not isinstance(score, int | float) or not 0 <= score <= 1:
            raise ClassifierError("the classifier returned no number from 0 to 1")
        return float(score)


def load_classifier(named: str | None, threshold: str) -> Classifier | None:
    """Return the classifier `module:function`; None when none is named.

    Raises:
        ClassifierError: it is not there, or the threshold is no number from 0 to 1.
    """
    if not named:
        return None
    module, colon, function = named.partition(":")
    if not colon:
        raise ClassifierError(f"classifier {named!r}: write module:function")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ClassifierError(f"classifier {named!r} cannot be loaded: {error}") from error
    return Classifier(found, share_of(threshold))


def share_of(text: str) -> float:
    """Return a number from 0 to 1.

    Raises:
        ClassifierError: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ClassifierError(f"classifier_threshold is {text!r}; write a number from 0 to 1")
    return value
