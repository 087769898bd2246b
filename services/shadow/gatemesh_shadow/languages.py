"""What language a text is in, as far as a model's choice needs it. Pure."""

from collections.abc import Mapping

from gatemesh_shadow.overlap import is_code, script_of, words_of

MARKERS: Mapping[str, frozenset[str]] = {
    "en": frozenset("the of and to in is that it for you with on are this be as at or an".split()),
    "es": frozenset("el la los las de que y en un una es por con para del se al lo su".split()),
    "fr": frozenset("le la les de des et est un une dans que pour qui du au en ne pas sur".split()),
    "de": frozenset("der die das und ist ein eine nicht mit von zu den im auf für dem es".split()),
    "pt": frozenset("o a os as de que e em um uma é por com para do da não se no na".split()),
    "it": frozenset("il la lo gli le di che e in un una è per con del della non si al".split()),
    "nl": frozenset("de het een en van is dat in op te met voor niet zijn die aan er".split()),
}
BY_SCRIPT: Mapping[str, str] = {
    "han": "zh",
    "kana": "ja",
    "hangul": "ko",
    "cyrillic": "ru",
    "arabic": "ar",
    "devanagari": "hi",
    "greek": "el",
    "hebrew": "he",
    "thai": "th",
    "tamil": "ta",
}
FEW_WORDS = 4
"""Texts with fewer words have the language that is usual for their script."""
LEAST_SHARE = 0.08


def language_of(text: str) -> str:
    """A two-letter language, `code` for a program, `und` where it cannot be told."""
    if is_code(text):
        return "code"
    script = script_of(text)
    if script != "latin":
        return BY_SCRIPT.get(script, "und")
    words = words_of(text)
    if len(words) < FEW_WORDS:
        return "en"
    shares = {
        language: sum(word in markers for word in words) / len(words)
        for language, markers in MARKERS.items()
    }
    best = max(shares, key=lambda language: shares[language])
    return best if shares[best] >= LEAST_SHARE else "und"
