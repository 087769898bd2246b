"""Words that the comparison knows: function words, negations, units, cues of a question. Data."""

import re

STOPWORDS = frozenset(
    """
    a an the this that these those it its he she they them their his her we you i my your our
    is are was were be been being am do does did have has had will would can could may might must
    shall should and or but if then than so as at by for from in into of off on onto out over to up
    with without about which who whom whose what when where why how there here also just only very
    more most some any each every all both one two such no not yes
    el la los las un una unos unas de del y o en es son que por para con se su al lo como más
    le les des du et ou est sont dans sur pour par avec il elle ce cette qui ne pas au aux
    der die das ein eine einer eines einem einen und oder ist sind im mit von zu auf für als den dem
    """.split()
)

NEGATIONS = frozenset(
    """
    not no never none neither nor nobody nothing nowhere cannot cant dont doesnt didnt isnt arent
    wasnt werent wont wouldnt shouldnt couldnt hasnt havent hadnt mustnt neednt without
    nicht kein keine keinen keiner nie niemals ohne pas jamais aucun aucune sans nunca ningún
    ninguna jamás sin não нет не никогда ni нельзя
    """.split()
)

HAN_NEGATIONS = re.compile(
    r"不(?!仅|但|只|过|同|断|错|久|少|得不|管|论|如说|妨)|没有?|无(?!论|数)|非(?!常|洲)|未(?!来)|否(?!则)|别(?!的|人|名)"
)
"""Chinese negations; the words in which they negate nothing are left out."""

OPPOSITES = (
    ("yes", "no"),
    ("true", "false"),
    ("positive", "negative"),
    ("correct", "incorrect"),
    ("valid", "invalid"),
    ("possible", "impossible"),
    ("safe", "unsafe"),
    ("legal", "illegal"),
    ("allowed", "forbidden"),
    ("increase", "decrease"),
    ("increases", "decreases"),
    ("higher", "lower"),
    ("larger", "smaller"),
    ("more", "fewer"),
    ("above", "below"),
    ("before", "after"),
    ("hot", "cold"),
    ("approve", "reject"),
    ("approved", "rejected"),
    ("accept", "decline"),
    ("pass", "fail"),
    ("open", "closed"),
    ("on", "off"),
    ("enable", "disable"),
    ("enabled", "disabled"),
    ("sí", "no"),
    ("oui", "non"),
    ("ja", "nein"),
)

HAN_OPPOSITES = (
    ("是的", "不是"),
    ("对", "错"),
    ("正面", "负面"),
    ("积极", "消极"),
    ("可以", "不可以"),
    ("增加", "减少"),
    ("上升", "下降"),
    ("提高", "降低"),
    ("大于", "小于"),
    ("高于", "低于"),
    ("同意", "拒绝"),
    ("批准", "驳回"),
    ("之前", "之后"),
    ("安全", "危险"),
)

NUMBER_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "dozen": 12, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100, "thousand": 1000,
}  # fmt: skip
HAN_DIGITS = {
    "零": 0, "〇": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7,
    "八": 8, "九": 9,
}  # fmt: skip
HAN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}

UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("mm", "millimetre", "millimeter", "毫米"), ("length", 1e-3)),
    **dict.fromkeys(("cm", "centimetre", "centimeter", "厘米"), ("length", 1e-2)),
    **dict.fromkeys(("m", "metre", "meter", "米"), ("length", 1.0)),
    **dict.fromkeys(("km", "kilometre", "kilometer", "公里", "千米"), ("length", 1e3)),
    **dict.fromkeys(("mile", "mi", "英里"), ("length", 1609.344)),
    **dict.fromkeys(("foot", "feet", "ft", "英尺"), ("length", 0.3048)),
    **dict.fromkeys(("inch", "inches", "英寸"), ("length", 0.0254)),
    **dict.fromkeys(("yard", "码"), ("length", 0.9144)),
    **dict.fromkeys(("mg", "milligram", "毫克"), ("mass", 1e-6)),
    **dict.fromkeys(("g", "gram", "克"), ("mass", 1e-3)),
    **dict.fromkeys(("kg", "kilogram", "kilo", "公斤", "千克"), ("mass", 1.0)),
    **dict.fromkeys(("pound", "lb", "lbs", "磅"), ("mass", 0.45359237)),
    **dict.fromkeys(("tonne", "吨"), ("mass", 1e3)),
    **dict.fromkeys(("ml", "millilitre", "milliliter", "毫升"), ("volume", 1e-3)),
    **dict.fromkeys(("l", "litre", "liter", "升"), ("volume", 1.0)),
    **dict.fromkeys(("ms", "millisecond", "毫秒"), ("time", 1e-3)),
    **dict.fromkeys(("s", "sec", "second", "秒", "秒钟"), ("time", 1.0)),
    **dict.fromkeys(("min", "minute", "分钟"), ("time", 60.0)),
    **dict.fromkeys(("h", "hr", "hour", "小时"), ("time", 3600.0)),
    **dict.fromkeys(("day", "天"), ("time", 86_400.0)),
    **dict.fromkeys(("week", "周"), ("time", 604_800.0)),
    **dict.fromkeys(("kb", "kilobyte"), ("bytes", 1e3)),
    **dict.fromkeys(("mb", "megabyte"), ("bytes", 1e6)),
    **dict.fromkeys(("gb", "gigabyte"), ("bytes", 1e9)),
    **dict.fromkeys(("tb", "terabyte"), ("bytes", 1e12)),
    **dict.fromkeys(("°c", "℃", "celsius", "摄氏度"), ("celsius", 1.0)),
    **dict.fromkeys(("°f", "℉", "fahrenheit", "华氏度"), ("fahrenheit", 1.0)),
    **dict.fromkeys(("%", "percent", "per cent", "％"), ("share", 0.01)),
    **dict.fromkeys(("$", "usd", "dollar", "美元"), ("usd", 1.0)),
    **dict.fromkeys(("€", "eur", "euro", "欧元"), ("eur", 1.0)),
    **dict.fromkeys(("£", "gbp", "英镑"), ("gbp", 1.0)),
    **dict.fromkeys(("¥", "cny", "yuan", "rmb", "元", "人民币"), ("cny", 1.0)),
}
"""Unit to its kind and its size in the kind's base unit."""

CLOSED = re.compile(
    r"""^(?:what|which|who|whom|when|where)\b(?!.*\b(?:think|opinion|idea|suggest|recommend)\b)
      | \bhow\s+(?:many|much|old|tall|long|far|big|fast|high)\b
      | ^(?:is|are|was|were|does|do|did|can|has|have|will)\b
      | \b(?:classify|calculate|compute|convert|extract|translate|spell|repeat|copy|round|solve)\b
      | \b(?:yes\s+or\s+no|true\s+or\s+false|positive\s+or\s+negative|true/false|yes/no)\b
      | \b(?:answer|reply|respond)\s+(?:only|with\s+(?:only|just|one|a\s+single|the))\b
      | \d\s*[-+*/x×÷^]\s*\d | \bdivided\s+by\b | \btimes\s+\d | \bcapital\b
      | 多少|几(?:个|天|点|年|岁|次|种|位|人|本|只)|哪(?:一?个|里|年|国|位|座|种)
      | 是什么|什么时候|是谁|谁是|谁写|首都
      | 翻译|计算|提取|是不是|是否|吗？?$|重复|分类|判断""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
"""Questions with one right answer."""

OPEN = re.compile(
    r"""\b(?:poem|story|joke|song|haiku|limerick|lyrics|slogan|brainstorm|creative|imagine|invent
        |random|any|suggest|recommend|ideas?|example|names?\s+for|tagline|fiction|essay|riddle)\b
      | \bname\s+(?:a|an|one|some)\b | \bgive\s+(?:me\s+)?(?:a|an|one|some)\b | \bpick\b
      | 诗|故事|笑话|歌词|创作|想象|推荐|建议|随机|任意|口号
      | 举(?:一个|个)?例|说一(?:个|种)|写一(?:首|篇|段)""",
    re.VERBOSE | re.IGNORECASE,
)
"""Questions with many right answers."""
