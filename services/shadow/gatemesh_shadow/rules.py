"""Differences between two answers that count by themselves, each as one rule. Pure.

A difference between two healthy answers is common, so a rule speaks only where it rules that out.
"""

from collections.abc import Callable, Sequence

from gatemesh_common.messages import Reason
from gatemesh_shadow.facts import content, facts_of, opposed
from gatemesh_shadow.overlap import (
    aligned,
    common_prefix,
    is_code,
    normalised,
    script_of,
    shared,
    stems,
    words_of,
)
from gatemesh_shadow.pair import Pair

Finding = tuple[Reason, str, float | None]
"""Reason, the rule that found it, and its figure."""

Rule = Callable[[Pair], Finding | None]


LEAST_ECHO_WORDS = 4
ANSWER_ECHO_SHARE = 0.6
"""A healthy answer that itself repeats so much of the prompt rules an echo out."""
APART_SHARE = 0.4
LONGEST_LABEL_WORDS = 3
LONGEST_SWAP = 4
"""Ideographs of one word that stands for another."""
LEAST_FRAME = 3
"""Ideographs that must be equal around it."""
LEAST_HEAD_CHARS = 40
LEAST_TAIL_STEMS = 8
LEAST_STEMS = 3
NAME_WORDS = 2
HALF = 0.5


def _echo(pair: Pair) -> Finding | None:
    """The prompt came back, or went on, where a healthy instance answered it."""
    first, second = words_of(pair.first), words_of(pair.second)
    asked = words_of(pair.prompt)
    if len(first) < LEAST_ECHO_WORDS or not asked:
        return None
    own, theirs = shared(first, asked), shared(second, asked)
    apart = shared(content(pair.first), content(pair.second))
    limit = pair.limits.echo_share
    is_whole = normalised(pair.first) in normalised(pair.prompt) and len(first) * 2 > len(asked)
    if own >= limit and theirs < ANSWER_ECHO_SHARE and (apart < APART_SHARE or is_whole):
        return Reason.ANSWERS_DIFFER, "echo", own
    return None


def _code_for_words(pair: Pair) -> Finding | None:
    """A program where a healthy instance wrote prose, or the other way round."""
    if is_code(pair.first) is is_code(pair.second) or not stems(pair.second):
        return None
    if shared(stems(pair.second), stems(pair.first)) < HALF:
        return Reason.ANSWERS_DIFFER, "kind", None
    return None


def _other_script(pair: Pair) -> Finding | None:
    """Another writing than a healthy instance's."""
    scripts = script_of(pair.first), script_of(pair.second)
    if "none" in scripts or scripts[0] == scripts[1] or pair.is_short:
        return None
    return Reason.ANSWERS_DIFFER, "script", None


def _label(pair: Pair) -> Finding | None:
    """A healthy instance gave a label or one word; it stands nowhere in this answer."""
    wanted = content(pair.second)
    if (
        not pair.is_closed
        or not 0 < len(wanted) <= LONGEST_LABEL_WORDS
        or script_of(pair.second) != "latin"
    ):
        return None
    if shared([word[:5] for word in wanted], [word[:5] for word in content(pair.first)]) > 0:
        return None
    if _same_numbers(pair):
        return None
    return Reason.ANSWERS_DIFFER, "label", None


def _same_numbers(pair: Pair) -> bool:
    first, second = (facts.numbers for facts in pair.facts)
    return bool(set(first) & set(second))


def _identifiers(pair: Pair) -> Finding | None:
    """A reference, code or date that a healthy instance copied or wrote otherwise."""
    first, second = pair.facts
    ours, theirs = first.identifiers - second.identifiers, second.identifiers - first.identifiers
    asked = facts_of(pair.prompt).identifiers
    if ours and theirs and (theirs & asked or pair.is_short or _near(ours, theirs)):
        return Reason.FACTS_DIFFER, "identifier", float(len(ours))
    return None


def _near(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    return any(one[:4] == other[:4] for one in ours for other in theirs)


def _numbers(pair: Pair) -> Finding | None:
    """Other figures in short answers."""
    if not pair.is_short or pair.has_code:
        return None
    return _number_finding(pair.first, pair.second, pair.question)


def _number_finding(first: str, second: str, question: str) -> Finding | None:
    asked = facts_of(question).numbers
    ours, theirs = (facts_of(text).numbers for text in (first, second))
    own, other = ours - theirs - asked, theirs - ours - asked
    if own and other:
        return Reason.FACTS_DIFFER, "number", float(sum(own.values()))
    # Both repeat figures of the question, but not the same ones.
    if ours and theirs and not set(ours) & set(theirs):
        return Reason.FACTS_DIFFER, "number", float(sum(ours.values()))
    return None


def _pole(pair: Pair) -> Finding | None:
    """Yes against no, positive against negative."""
    if not pair.is_short and not pair.is_closed:
        return None
    first, second = (facts_of(text.strip()[:40]) for text in _both(pair))
    is_opposed = opposed(first, second) is not None
    # "not closed" is "open".
    is_denied = (first.negations - second.negations) % 2 == 1 and not _is_yes_or_no(pair)
    return (Reason.FACTS_DIFFER, "pole", None) if is_opposed and not is_denied else None


def _is_yes_or_no(pair: Pair) -> bool:
    """True where the first word is the answer; "no" is its own negation."""
    return any(words_of(text)[:1] in YES_AND_NO for text in _both(pair))


YES_AND_NO = (["yes"], ["no"], ["true"], ["false"])


def _names(pair: Pair) -> Finding | None:
    """Another name in short answers."""
    if not pair.is_short or script_of(pair.first) != "latin":
        return None
    asked = set(words_of(pair.question))
    own, other = ([one for one in content(text) if one not in asked] for text in _both(pair))
    named = pair.facts[0].names | pair.facts[1].names | _alone(pair)
    ours = {one for one in own if one in named} - set(other)
    theirs = {one for one in other if one in named} - set(own)
    if ours and theirs and pair.is_closed:
        return Reason.FACTS_DIFFER, "name", float(len(ours))
    return None


def _alone(pair: Pair) -> frozenset[str]:
    """The answers' own words where one of them is nothing but a name."""
    alone = (
        text for text in _both(pair) if len(words_of(text)) <= NAME_WORDS and text[:1].isupper()
    )
    return frozenset(word for text in alone for word in words_of(text))


def _han_value(pair: Pair) -> Finding | None:
    """Another value in a short Chinese answer to a closed question."""
    if not (pair.is_short and pair.is_closed) or script_of(pair.first) != "han":
        return None
    if _same_numbers(pair):
        return None
    asked = set(stems(pair.question))
    own, other = ([one for one in stems(text) if one not in asked] for text in _both(pair))
    lengths = [len(words_of(text)) for text in _both(pair)]
    if not own or not other or max(lengths) > 3 * min(lengths) + 8:
        return None
    alike = max(shared(own, other), shared(other, own))
    replaced = _replaced(pair.first, pair.second)
    if alike == 0 or (replaced and pair.greedy):
        return Reason.FACTS_DIFFER, "value", alike
    return None


def _replaced(first: str, second: str) -> bool:
    """True when one run of ideographs stands for another in otherwise equal sentences."""
    one, other = normalised(first).replace(" ", ""), normalised(second).replace(" ", "")
    head = common_prefix(one, other)
    tail = common_prefix(one[head:][::-1], other[head:][::-1])
    parts = one[head : len(one) - tail], other[head : len(other) - tail]
    is_swap = all(1 < len(part) <= LONGEST_SWAP for part in parts) and not set(parts[0]) & set(
        parts[1]
    )
    return is_swap and head + tail >= LEAST_FRAME


def _sentences(pair: Pair) -> Finding | None:
    """Two sentences that say the same but for a number, a name or a negation."""
    if pair.has_code:
        return None
    for own, other in aligned(pair.first, pair.second, pair.limits.likeness):
        finding = _sentence_finding(own, other, pair)
        if finding:
            return finding
    return None


def _sentence_finding(own: str, other: str, pair: Pair) -> Finding | None:
    first, second = facts_of(own), facts_of(other)
    # "not closed" is "open": of the two only one may differ.
    is_denied, is_opposed = (first.negations - second.negations) % 2, opposed(first, second)
    if bool(is_denied) is not bool(is_opposed):
        return Reason.FACTS_DIFFER, "pole" if is_opposed else "negation", None
    if first.numbers - second.numbers and second.numbers - first.numbers:
        return Reason.FACTS_DIFFER, "number", None
    ours, theirs = first.names - second.names, second.names - first.names
    if ours and theirs and not {*ours, *theirs} <= set(words_of(pair.question)):
        return Reason.FACTS_DIFFER, "name", None
    return None


def _topic(pair: Pair) -> Finding | None:
    """Nothing in common with the healthy answer or with the prompt, which that one has."""
    first, second, asked = stems(pair.first), stems(pair.second), stems(pair.prompt)
    limits = pair.limits
    if len(set(first)) < limits.topic_words or len(set(second)) < LEAST_STEMS or pair.has_code:
        return None
    own = shared(first, [*second, *asked])
    is_near = pair.cosine is not None and pair.cosine >= limits.cosine_greedy
    if own >= limits.topic_share or is_near or script_of(pair.first) != script_of(pair.second):
        return None
    return Reason.ANSWERS_DIFFER, "topic", own


def _late_topic(pair: Pair) -> Finding | None:
    """The same beginning, and then another topic than the beginning's."""
    head = common_prefix(pair.first, pair.second)
    known = stems(pair.first[:head] + " " + pair.prompt)
    own, other = stems(pair.first[head:]), stems(pair.second[head:])
    limits = pair.limits
    if (
        head < LEAST_HEAD_CHARS
        or min(len(set(own)), len(set(other))) < LEAST_TAIL_STEMS
        or pair.has_code
    ):
        return None
    ours, theirs = shared(own, [*known, *other]), shared(other, known)
    if ours < limits.topic_share and ours < theirs:
        return Reason.ANSWERS_DIFFER, "late_topic", ours
    return None


TOPIC_RULES: tuple[Rule, ...] = (_echo, _code_for_words, _other_script, _topic, _late_topic)
FACT_RULES: tuple[Rule, ...] = (
    _identifiers,
    _numbers,
    _pole,
    _names,
    _han_value,
    _label,
    _sentences,
)
GREEDY_RULES: tuple[Rule, ...] = (*TOPIC_RULES[:3], *FACT_RULES, *TOPIC_RULES[3:])


def _closed_facts(pair: Pair) -> Finding | None:
    """Of drawn answers, only short ones to a closed question must have the same facts."""
    if not (pair.is_closed and pair.is_short):
        return None
    return first_finding((_identifiers, _numbers, _pole), pair)


SAMPLED_RULES: tuple[Rule, ...] = (_closed_facts,)


def first_finding(rules: Sequence[Rule], pair: Pair) -> Finding | None:
    """Return what the first rule that finds a difference says; None when none does."""
    return next((finding for rule in rules if (finding := rule(pair))), None)


def _both(pair: Pair) -> tuple[str, str]:
    return pair.first, pair.second
