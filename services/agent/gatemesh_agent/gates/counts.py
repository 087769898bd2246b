"""How often a prompt asks for something."""

import regex

LARGEST_UNASKED = 300
"""A larger number counts only where the prompt asks to repeat; else it is a year or an id."""

NUMBER = regex.compile(r"(?<![\d.,])\d{1,5}(?!\d|[.,]\d)")
PRODUCT = regex.compile(
    r"(\d{1,3})\s*(?:x|×|\*|by|mal|fois|por|на|乘)\s*(\d{1,3})", regex.IGNORECASE
)
WORD = regex.compile(r"\p{L}+")
HAN_NUMBER = regex.compile("[一二三四五六七八九十百两]{1,5}")

NUMBER_WORDS = {
    12: "twelve dozen zwölf douze doce doze dodici двенадцать dutzend douzaine docena",
    13: "thirteen dreizehn treize trece treze tredici тринадцать",
    14: "fourteen vierzehn quatorze catorce quattordici четырнадцать",
    15: "fifteen fünfzehn quinze quince quindici пятнадцать",
    16: "sixteen sechzehn seize dieciséis dezesseis sedici шестнадцать",
    17: "seventeen siebzehn diecisiete dezessete diciassette семнадцать",
    18: "eighteen achtzehn dieciocho dezoito diciotto восемнадцать",
    19: "nineteen neunzehn diecinueve dezenove diciannove девятнадцать",
    20: "twenty zwanzig vingt veinte vinte venti двадцать 스물",
    24: "vierundzwanzig veinticuatro",
    25: "fünfundzwanzig veinticinco",
    30: "thirty dreißig trente treinta trinta trenta тридцать 서른",
    40: "forty vierzig quarante cuarenta quarenta quaranta сорок",
    50: "fifty fünfzig cinquante cincuenta cinquenta cinquanta пятьдесят",
    60: "sixty sechzig soixante sesenta sessenta sessanta шестьдесят",
    70: "seventy siebzig septante setenta settanta семьдесят",
    80: "eighty achtzig huitante ochenta oitenta ottanta восемьдесят",
    90: "ninety neunzig nonante noventa novanta девяносто",
    100: "hundred hundert cent cien cem cento сто",
    3: "three drei trois tres três tre три",
    4: "four vier quatre cuatro quatro quattro четыре",
    5: "five fünf cinq cinco cinque пять",
    6: "six sechs seis sei шесть",
    7: "seven sieben sept siete sete sette семь",
    8: "eight acht huit ocho oito otto восемь",
    9: "nine neun neuf nueve nove девять",
    10: "ten zehn dix diez dez dieci десять",
    11: "eleven elf onze once undici одиннадцать",
}
"""Number words of the languages that have no digits in common use for small counts."""

VALUES = {word: value for value, row in NUMBER_WORDS.items() for word in row.split()}
HAN_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"两": 2}


PERIOD = regex.compile(
    r"""week | woche | semaine | semana | settiman | недел | 周 | 週 | (?P<month> month | monat
        | mois\b | meses?\b | mês | mese | месяц | 月) | (?P<year> year | jahr | année | año
        | \bano | anno | \bгод)""",
    regex.VERBOSE | regex.IGNORECASE,
)
DAYS_OF_WEEK, DAYS_OF_MONTH, MONTHS = 7, 31, 12
REPEATED = regex.compile(r"(\p{L}{3,})mal\b", regex.IGNORECASE)
FROM_WORDS = {"twice": 2, "zwei": 2, "two": 2, "deux": 2, "dos": 2, "due": 2, "два": 2}


LENGTH = regex.compile(
    r"""\b (?: \d{1,5} | [\p{Latin}\p{Cyrillic}]+ ) [\s-]*
        (?: words? | sentences? | paragraphs? | pages? | tokens? | minutes?
        | wörter[n]? | worte[n]? | sätze[n]? | absätze[n]? | seiten | mots | phrases
        | paragraphes | palabras | frases | párrafos | páginas | palavras | parágrafos | parole
        | frasi | paragrafi | pagine | слов[а]? | предложени[йяе] | страниц[ы]? ) \b
        | (?: \d{1,5} | [一二三四五六七八九十百两]{1,5} ) \s*
        (?: 个? [字词] | 句话? | 文字 | 単語 | ページ ) """,
    regex.VERBOSE | regex.IGNORECASE,
)
"""How long an answer is to be: that many words are no wish for one of them that many times."""
UPTO = regex.compile(
    r"\b(?:to|until|through|bis|jusqu['’]?à|hasta|até|fino a|до)\s+\d{1,5}\b|[到至]\s*\d{1,5}",
    regex.IGNORECASE,
)
"""Where counting is to end."""


def largest_flood(prompt: str) -> int:
    """Return how often a prompt may have asked for one sign or word; 0 without any number for it.

    The length of the answer, and how far it is to count, are numbers of other things.
    """
    return largest_count(UPTO.sub(" ", LENGTH.sub(" ", prompt)), repeating=False)


def largest_count(prompt: str, *, repeating: bool) -> int:
    """Return the largest number a prompt may have asked for; 0 without any."""
    found = [int(number) for number in NUMBER.findall(prompt)]
    found += [int(a) * int(b) for a, b in PRODUCT.findall(prompt)]
    found += [value for word in WORD.findall(prompt.lower()) if (value := VALUES.get(word))]
    found += [VALUES.get(word.lower(), 0) for word in REPEATED.findall(prompt)]
    found += days_of(prompt)
    found += [han_value(sign) for sign in HAN_NUMBER.findall(prompt)]
    limit = 99_999 if repeating else LARGEST_UNASKED
    return max((value for value in found if value <= limit), default=0)


def days_of(prompt: str) -> list[int]:
    """Return how many days or months the periods that a prompt names have."""
    found = []
    for period in PERIOD.finditer(prompt):
        before = prompt[max(period.start() - 12, 0) : period.start()].lower()
        factors = [int(number) for number in NUMBER.findall(before)]
        factors += [VALUES.get(w) or FROM_WORDS.get(w, 1) for w in WORD.findall(before)]
        size = DAYS_OF_WEEK
        if period["month"]:
            size = DAYS_OF_MONTH
        elif period["year"]:
            size = MONTHS
        found.append(size * min(max(factors, default=1), 31))
    return found


def han_value(signs: str) -> int:
    """Read a Chinese numeral up to 999."""
    total = 0
    digit = 0
    for sign in signs:
        unit = {"十": 10, "百": 100}.get(sign)
        if unit is None:
            digit = HAN_DIGITS[sign]
        else:
            total += max(digit, 1) * unit
            digit = 0
    return total + digit
