"""How people and models phrase the same answer: digits, number words, marks, scripts. Pure."""

# Full-width and Chinese marks are what this is about.
# ruff: noqa: RUF001

import re
import unicodedata

MARKUP = re.compile(r"\\boxed\{([^{}]*)\}|\\text\{([^{}]*)\}|\\[()\[\]]|[*_`~#$|]+|^>+\s?", re.M)
QUOTES = str.maketrans(dict.fromkeys("“”„«»「」『』‘’'", '"'))
DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−－", "-"))
SIMPLER = str.maketrans(
    "國東廣貓魚鳥蘋檸橙莓藍綠紅黃黑白個點兩萬圓書這裡來說話開關門車馬語漢體腦電學",
    "国东广猫鱼鸟苹柠橙莓蓝绿红黄黑白个点两万圆书这里来说话开关门车马语汉体脑电学",
)
"""Traditional characters of the answers asked for, to simplified ones."""

UNIT_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
TEN_WORDS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
UNITS = {word: number for number, word in enumerate(UNIT_WORDS)}
TENS = {word: 10 * number for number, word in enumerate(TEN_WORDS, start=2)}
WORDS = "|".join(sorted((*UNITS, *TENS), key=len, reverse=True))
HAN_DIGITS = {sign: number for number, sign in enumerate("零一二三四五六七八九")} | {
    "两": 2,
    "〇": 0,
}
HAN_SCALES = {"十": 10, "百": 100}
HAN = "".join((*HAN_DIGITS, *HAN_SCALES))
NUMBER = re.compile(
    rf"(?<!\d)(?<!\d[.,])(?P<digits>-?\d{{1,3}}(?:,\d{{3}})+|-?\d+)(?:\.0+)?(?![\d.]*\d)"
    rf"|\b(?P<words>(?:{WORDS})(?:[\s-]+(?:{WORDS}|hundred|and))*)\b"
    rf"|(?P<han>[{HAN}]+)"
)
STATED = re.compile(r'(?:=|\bis|\bequals|\bare|\bmakes|等于|是|为|得)[\s:"]*$')


def plain(text: str) -> str:
    """Return the text without marks of form: one width, one kind of quote and dash, no markup."""
    even = unicodedata.normalize("NFKC", text).translate(QUOTES).translate(DASHES)
    bare = MARKUP.sub(lambda found: found[1] or found[2] or "", even)
    return " ".join(bare.translate(SIMPLER).split())


def numbers_in(text: str) -> list[tuple[int, bool]]:
    """Return every whole number in a plain text, and whether it is stated (`is`, `=`)."""
    lowered = text.casefold()
    return [
        (_number(found), STATED.search(lowered[: found.start()]) is not None)
        for found in NUMBER.finditer(lowered)
    ]


def answers_with(text: str, number: int) -> bool:
    """Return True when the text's first, last or stated number is this one."""
    found = numbers_in(plain(text))
    claims = [value for value, stated in found if stated]
    ends = [found[0][0], found[-1][0]] if found else []
    return number in (claims or ends) or bool(ends and ends[-1] == number)


def _number(found: re.Match[str]) -> int:
    if found["digits"]:
        return int(found["digits"].replace(",", ""))
    return _of_words(found["words"]) if found["words"] else _of_han(found["han"])


def _of_words(text: str) -> int:
    total = 0
    for word in re.split(r"[\s-]+", text):
        if word == "hundred":
            total = max(total, 1) * 100
        else:
            total += UNITS.get(word, TENS.get(word, 0))
    return total


def _of_han(text: str) -> int:
    if not any(sign in HAN_SCALES for sign in text):
        return int("".join(str(HAN_DIGITS[sign]) for sign in text))
    total, digit = 0, None
    for sign in text:
        if sign in HAN_SCALES:
            total += (1 if digit is None else digit) * HAN_SCALES[sign]
            digit = None
        else:
            digit = HAN_DIGITS[sign]
    return total + (digit or 0)
