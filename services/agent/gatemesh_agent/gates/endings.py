"""How an answer ends: empty, in the middle of a sentence, or with an open block."""

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.sourcecode import is_source
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import FENCE, TextWindow
from gatemesh_common.messages import Reason

PASSAGE = 2048
UNFINISHED_WORDS = 5
STRICT_WORDS = 3
STRICT_CHARS = 240
STRICT_STOPS = 3
UNFINISHED_DENSE = 12
SENTENCES_BEFORE = 2
CLOSED_SHARE = 0.75
SHORTEST_PASSAGE = 80
FRAGMENT_WORDS = 2
FRAGMENT_CHARS = 24
CLOSING_LINE_WORDS = 4

VISIBLE = regex.compile(r"[^\s\p{Cf}\p{Zs}\u2800\u3164\uffa0]")
OPEN_THINKING, CLOSE_THOUGHT = "<think>", "</think>"
TAGS = "think|thinking|thought|reasoning|reflection|scratchpad|analysis"
THOUGHT = regex.compile(rf"<({TAGS})>.*?</\1>", regex.DOTALL)
OPEN_THOUGHT = regex.compile(rf"(?:^|\n)\s*<({TAGS})>(?!.*</\1>)", regex.DOTALL)
STOP = regex.compile(
    r"(?<=\w{2}|[)\]\"”’»*_`\d])[.!?…](?=[\s\"”’»)*]|$)|[。！？।۔؟]|(?<=\p{L}{2})[:：](?=\n)"
)
DANGLING = regex.compile(r"[,:(、，：（「–—]$")
OPEN_END = regex.compile(r"[\p{L}\p{M}\d]$")
LINK_END = regex.compile(r"(?:https?://|www\.|@)\S*$|[\w-]+\.\w+$")
WORD = regex.compile(r"[\p{L}\p{M}\d'’-]+")
DENSE_END = regex.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]$")
LISTED = regex.compile(r"\s*(?:[-*+•|>#]|\d{1,3}[.)]|`)")


LEADING_WORD = regex.compile(
    r"""\b(?: the | an? | and | or | but | because | although | while | whose | our | every | into
        | than | that | would | should | could | if | when | although | such | these | every
        | their | your | its
        | der | das | dem | den | ein | eine | einen | und | oder | aber | weil | dass | wenn
        | als | sich | für | sehr | les | une | et | ou | mais | parce | que | qui | des | du | au
        | aux | dans | el | las | una | y | pero | porque | como | cuando | os | um | uma | em | il
        | gli | perché | che | и | или | но | потому | что | который | которая | если | когда | в
        | на | для | не | het | een | maar | omdat | oraz | że | ponieważ | le )$
        | (?: 所以 | 因为 | 但是 | 而且 | 以及 | 如果 | 然而 | 并且 | 由于 | 虽然 | 和 | 与 | を
        | が )$""",
    regex.VERBOSE,
)
"""Words after which a sentence must go on. Lower case: an initial or a name may look like one."""
OPEN_CLAUSE = regex.compile(
    r"\b(?:when|if|because|while|until|since|although|unless) (?:it|they|you|this|there)"
    r" (?:is|are|was|were)$"
)
LEADING_WORDS_BEFORE = 7
LEADING_SIGNS_BEFORE = 12
EMPTY_ITEM = regex.compile(r"(?:^|\n)[ \t]*(?:\d{1,3}[.)]|[-*+•])$")
ITEM = regex.compile(r"^[ \t]*(?:\d{1,3}[.)]|[-*+•]) \S", regex.MULTILINE)
OPEN_PAIR = regex.compile(
    r"\([^()\n]*\p{L}$|“[^“”\n]*\p{L}$|«[^«»\n]*\p{L}$|「[^「」\n]*$|《[^《》\n]*$"
)
OPEN_PAIR_WORDS = 4
TABLE_RULE = regex.compile(r"^\|(?:\s*:?-+:?\s*\|)+\s*$", regex.MULTILINE)
ITEM_STOP = regex.compile(r"\w[.!?。！？।]$")
CLOSED_ITEMS = 2
ITEM_WORDS = 6
BOLD = "**"
BOLD_PAIR = regex.compile(r"\*\*[\p{L}\p{M}\d“\"(][^*\n]*\*\*")
OPEN_BOLD = regex.compile(r"[ \t]*(?:[-*+•][ ]|\d{1,3}[.)][ ])?\*\*[\p{Lu}\p{Lo}][^*]*")
"""Bold text from a line's beginning on; `**kwargs`, `**/test` and `char **argv` are none."""
FORMULA = "$$"
BARE_HEADING = regex.compile(r"#{1,6} [^\n]{1,80}")
COMMENT = regex.compile(r"(?:^|\n)[ \t]*(?:\*|//[/!]?|#)[ \t]?$")
"""What stands before a fence inside a comment."""


def lacks_its_end(text: str) -> bool:
    """Return True where the last line lacks what it needs, however short the answer is."""
    line = text[text.rfind("\n") + 1 :]
    return (
        ends_on_leading_word(line)
        or (EMPTY_ITEM.search(text) is not None and ITEM.search(text) is not None)
        or (OPEN_PAIR.search(line) is not None and len(WORD.findall(line)) > OPEN_PAIR_WORDS)
        or has_open_formula(text)
        or has_open_emphasis(text, line)
        or is_open_item(text, line)
        or is_short_row(text, line)
    )


def has_open_formula(text: str) -> bool:
    """Return True for a displayed formula that began on a line of its own and did not end."""
    at = ("\n" + text).rfind("\n" + FORMULA)
    rest = text[at + len(FORMULA) :]
    # No formula holds an empty line; `$$` is also a variable of shells.
    return at >= 0 and FORMULA not in rest and "\n\n" not in rest


def has_open_emphasis(text: str, line: str) -> bool:
    """Return True for a last line that begins in bold, behind sentences, and does not end so."""
    if OPEN_BOLD.fullmatch(line) is None or OPEN_END.search(line) is None:
        return False
    earlier = text[: -len(line)]
    # A loose sign before is the mark of a footnote, or an operator.
    return STOP.search(earlier) is not None and BOLD not in BOLD_PAIR.sub("", earlier)


def is_open_item(text: str, line: str) -> bool:
    """Return True for a last item that must go on where all before it are sentences."""
    if ITEM.match(line) is None or not (LEADING_WORD.search(line) or OPEN_CLAUSE.search(line)):
        return False
    *earlier, last = [each for each in text.split("\n") if ITEM.match(each)]
    closed = all(ITEM_STOP.search(each.rstrip()) for each in earlier)
    return len(earlier) >= CLOSED_ITEMS and closed and len(WORD.findall(last)) > ITEM_WORDS


def ends_on_leading_word(line: str) -> bool:
    """Return True for a longer line whose last word begins something."""
    if LEADING_WORD.search(line) is None or LINK_END.search(line) is not None:
        return False
    dense = DENSE_END.search(line) is not None
    if dense:
        return len(line) > LEADING_SIGNS_BEFORE
    return len(WORD.findall(line)) > LEADING_WORDS_BEFORE


def is_short_row(text: str, line: str) -> bool:
    """Return True for a last table row that has fewer cells than the table's head."""
    rules = TABLE_RULE.findall(text)
    if not rules or not line.startswith("|"):
        return False
    before = text[: -len(line) - 1].rpartition("\n")[2]
    # Tables may leave out the last bar, in every row.
    return bool(line.count("|") < min(rules[-1].count("|"), before.count("|")))


def only_one_sign(text: str) -> bool:
    """Return True for an answer that is the same sign over and over and nothing else."""
    bare = text.strip()
    return len(bare) >= ONE_SIGN and not bare.strip(bare[0]) and bare[0] in FLOOD_SIGNS


def is_bare_label(text: str) -> bool:
    """Return True for an answer that is only the name of a turn, or only emphasis without text."""
    return LABEL_ONLY.fullmatch(text.strip()) is not None


ONE_SIGN = 10
FLOOD_SIGNS = frozenset("!?@#$%&^,;:\"'`(){}[]")
LABEL_ONLY = regex.compile(r"(?:assistant|user|system|model)\s*:?|[*_#`~]{2,6}|[.,;:«“„「『(\[{]")


def is_empty(text: str) -> bool:
    """Return True when a reader sees nothing but thoughts."""
    # Most texts hold no thought, and looking for one takes longer than all the rest.
    return VISIBLE.search(THOUGHT.sub("", text) if "</" in text else text) is None


def truncated(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find an end that no one would choose, in an answer that ended by itself."""
    text = window.last(PASSAGE).rstrip()
    if context.demands_json or not text:
        return None
    broken = (
        has_open_fence(window)
        or has_open_thought(text)
        or text.count(CLOSE_THOUGHT) > text.count(OPEN_THINKING) + 1
        or is_fragment(text, context)
        or (not window.in_fence and (dangles(text) or breaks_off(text)))
        or (not is_source(text) and lacks_its_end(text))
    )
    if not broken:
        return None
    return Finding(Reason.TRUNCATED, 1.0, 0.0, max(window.end - 1, 0), window.end)


def has_open_fence(window: TextWindow) -> bool:
    """Return True for a block of code without end; one in a program's comments is no block."""
    if not window.in_fence:
        return False
    before, fence, _ = window.tail.rpartition(FENCE)
    return not fence or COMMENT.search(before) is None


def has_open_thought(text: str) -> bool:
    """Return True for a thinking block without end and without answer."""
    if text.rfind(OPEN_THINKING) > text.rfind(CLOSE_THOUGHT):
        return True
    return "<" in text and OPEN_THOUGHT.search(text) is not None


def is_fragment(text: str, context: RequestContext) -> bool:
    """Return True for a word or two where the prompt asked for a whole piece of writing."""
    if text == "-":
        return context.asks(Topic.COMPOSING)
    if BARE_HEADING.fullmatch(text) is not None:
        return context.asks(Topic.COMPOSING) and not context.asks(Topic.SHORT)
    short = len(text) <= FRAGMENT_CHARS and len(WORD.findall(text)) <= FRAGMENT_WORDS
    if not short or OPEN_END.search(text) is None:
        return False
    return context.asks(Topic.COMPOSING) and not context.asks(Topic.SHORT)


def dangles(text: str) -> bool:
    """Return True for an end that announces more: a colon, a comma, an open bracket."""
    line = text[text.rfind("\n") + 1 :]
    if DANGLING.search(line) is None or LISTED.match(line) is not None:
        return False
    words = len(WORD.findall(line))
    dense = DENSE_END.search(line[:-1]) is not None and len(line) > UNFINISHED_DENSE
    # "Best regards," and a lone label are ends that people choose.
    return dense or words > CLOSING_LINE_WORDS


def breaks_off(text: str) -> bool:
    """Return True when prose with full stops ends in the middle of a sentence."""
    paragraph = text[text.rfind("\n") + 1 :]
    if OPEN_END.search(paragraph) is None or LISTED.match(paragraph) is not None:
        return False
    if LINK_END.search(paragraph) is not None or not is_punctuated(text):
        return False
    shortest = SHORTEST_PASSAGE // 2 if DENSE_END.search(paragraph) else SHORTEST_PASSAGE
    return len(text) >= shortest and is_long_rest(text, paragraph)


def is_long_rest(text: str, paragraph: str) -> bool:
    """Return True where more than a greeting or a remark stands behind the last full stop."""
    stops = list(STOP.finditer(paragraph))
    if not stops:
        # A last paragraph without a stop may be a signature, a source or a kind word.
        return False
    rest = paragraph[stops[-1].end() :]
    if DENSE_END.search(rest) is not None:
        return len(rest) >= UNFINISHED_DENSE
    # Who goes on in small letters behind a stop chats.
    needed = STRICT_WORDS if is_strict(text) else UNFINISHED_WORDS
    return len(WORD.findall(rest)) >= needed and not rest.lstrip()[:1].islower()


def is_strict(text: str) -> bool:
    """Return True for a longer text in sentences, as no one writes who chats."""
    return len(text) >= STRICT_CHARS and len(STOP.findall(text)) >= STRICT_STOPS


def is_punctuated(text: str) -> bool:
    """Return True when earlier sentences and paragraphs are closed by a stop."""
    if len(STOP.findall(text)) < SENTENCES_BEFORE:
        return False
    earlier = [
        line for line in text.split("\n")[:-1] if len(WORD.findall(line)) > CLOSING_LINE_WORDS
    ]
    closed = sum(STOP.search(line[-4:] + "\n") is not None for line in map(str.rstrip, earlier))
    return closed >= CLOSED_SHARE * len(earlier)
