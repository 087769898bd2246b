"""Pairs of answers to one request, of our own make: what must count and what must not."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """One question, the answer under suspicion, and a healthy instance's."""

    name: str
    question: str
    first: str
    second: str
    temperature: float = 0.0


DIFFERENT = (
    Example("capital", "What is the capital of France?", "Berlin.", "Paris."),
    Example(
        "capital-sentence",
        "What is the capital of France?",
        "The capital of France is Berlin.",
        "The capital of France is Paris.",
    ),
    Example("capital-mixed", "Which city is the capital of Japan?", "Kyoto", "It is Tokyo."),
    Example("sum", "What is 17 + 25?", "17 + 25 = 43", "17 + 25 = 42."),
    Example("sum-bare", "17 times 3?", "54", "51"),
    Example("percent", "What share is 30 of 120?", "It is 35%.", "It is 25%."),
    Example(
        "unit",
        "How far is it from the earth to the moon?",
        "About 384,000 miles.",
        "About 384,000 km.",
    ),
    Example("unit-time", "How long do I boil a soft egg?", "6 hours.", "6 minutes."),
    Example("magnitude", "How many people live there?", "12,000 people.", "1,200 people."),
    Example("sign", "What is 3 - 10?", "7", "-7"),
    Example("decimal", "Convert 1250 g to kg.", "12.5 kg", "1.25 kg"),
    Example("yes-no", "Is a whale a fish?", "Yes, it is.", "No, it is a mammal."),
    Example(
        "true-false",
        "True or false: water boils at 100 degrees at sea level.",
        "False",
        "True",
    ),
    Example("label", "Classify the sentiment: 'I loved every minute.'", "negative", "positive"),
    Example(
        "label-other",
        "Classify as billing, shipping or other: 'My parcel is late.'",
        "billing",
        "shipping",
    ),
    Example(
        "negation",
        "Can I take this drug with alcohol?",
        "You should take this drug together with alcohol when it is prescribed by your doctor.",
        "You should not take this drug together with alcohol when it is prescribed by your doctor.",
    ),
    Example(
        "negation-contraction",
        "Does the warranty cover water damage to the phone in general use?",
        "The warranty does cover damage caused by water, rain or steam in the first two years.",
        "The warranty doesn't cover damage caused by water, rain or steam in the first two years.",
    ),
    Example(
        "year-in-text",
        "Tell me about the treaty that ended the war.",
        "The war lasted for thirty years. The treaty was signed in 1684 in two cities. "
        "It ended the fighting and redrew many borders.",
        "The war lasted for thirty years. The treaty was signed in 1648 in two cities. "
        "It ended the fighting and redrew many borders.",
    ),
    Example(
        "name-in-text",
        "Tell me about the first computer program.",
        "The first published algorithm for a machine was written by Charles Dickens in notes on "
        "the engine. It described how to compute a sequence of numbers.",
        "The first published algorithm for a machine was written by Ada Lovelace in notes on "
        "the engine. It described how to compute a sequence of numbers.",
    ),
    Example(
        "direction",
        "What happens to pressure when a gas in a closed box is heated up slowly?",
        "When a gas in a closed box is heated, its pressure decreases in proportion.",
        "When a gas in a closed box is heated, its pressure increases in proportion.",
    ),
    Example(
        "reference",
        "Repeat this order number exactly: ZX-90-4471-KQ",
        "ZX-90-4417-KQ",
        "ZX-90-4471-KQ",
    ),
    Example(
        "email",
        "Extract the address from: write to anna.k17@example.com before noon",
        "anna.k71@example.com",
        "anna.k17@example.com",
    ),
    Example("date", "When was it signed? The letter says 2024-03-17.", "2024-03-71", "2024-03-17"),
    Example(
        "echo",
        "Translate into French: 'Where is the station?'",
        "Translate into French: 'Where is the station?'",
        "Où est la gare ?",
    ),
    Example(
        "echo-part",
        "Explain in one sentence why the sea is salty for a child of eight years.",
        "Explain in one sentence why the sea is salty for a child of eight years.",
        "Rivers carry tiny bits of salt from rocks into the sea, and the salt stays there.",
    ),
    Example(
        "continued-list",
        "Here is the list: oak pine beech maple willow poplar ash. What do these have in common?",
        "oak pine beech maple willow poplar ash oak pine beech maple",
        "They are all trees.",
    ),
    Example(
        "other-customer",
        "How do I reset my password?",
        "Preheat the oven, knead the dough for ten minutes and let the loaf rise under a cloth "
        "until it has doubled.",
        "Open the settings, choose security, click on reset password and follow the link in the "
        "email that we send.",
    ),
    Example(
        "code-for-words",
        "Answer with one word: is this review positive or negative? 'Dull and slow.'",
        "import pandas as pd\ndf = pd.read_csv('reviews.csv')\nprint(df.head())",
        "Negative",
    ),
    Example(
        "late-mix",
        "Explain how vaccines work.",
        "Vaccines show the immune system a harmless part of a germ, so that it learns to recognise "
        "it. Your invoice number is overdue, please transfer the outstanding amount to our bank "
        "account before Friday, otherwise a reminder fee applies.",
        "Vaccines show the immune system a harmless part of a germ, so that it learns to recognise "
        "it. Later the body answers quickly because memory cells remember the germ and make "
        "antibodies against this part.",
    ),
    Example(
        "script",
        "What is the best way to store bread at home for several days in summer?",
        "把面包放在干燥的地方，用布包好，不要放进冰箱，这样可以保持几天的新鲜，口感也会更好一些，吃之前再烤一下。",
        "Keep the loaf in a dry place, wrapped in cloth, never in the fridge, where it goes stale.",
    ),
    Example("zh-capital", "法国的首都是哪里？", "法国的首都是柏林。", "法国的首都是巴黎。"),
    Example("zh-capital-bare", "日本的首都是什么？", "大阪。", "东京。"),
    Example("zh-sum", "12加30等于多少？", "等于43。", "等于42。"),
    Example("zh-han-number", "一年有多少个月？", "一年有十三个月。", "一年有十二个月。"),
    Example("zh-unit", "马拉松有多长？", "42公里。", "42英里。"),
    Example(
        "zh-negation",
        "孕妇可以喝酒吗？",
        "医生建议怀孕期间可以适量喝一些酒，对胎儿有好处。",
        "医生建议怀孕期间不可以喝任何酒，对胎儿没有好处。",
    ),
    Example(
        "zh-year",
        "请介绍一下这座大桥。",
        "这座大桥位于城市的南部。大桥于1968年建成通车。它连接了两岸的交通。",
        "这座大桥位于城市的南部。大桥于1986年建成通车。它连接了两岸的交通。",
    ),
    Example("zh-label", "判断这句话的情感：'太难吃了'", "正面", "负面"),
    Example(
        "zh-other-topic",
        "如何办理护照？",
        "先把鸡肉切成小块，加入酱油和姜片腌制二十分钟，然后用大火翻炒，最后撒上葱花即可出锅。",
        "携带身份证和照片到出入境管理窗口，填写申请表，缴纳费用后等待通知，一般七个工作日可以领取证件。",
    ),
    Example("sampled-sum", "What is 17 + 25?", "It is 43.", "It is 42.", 0.8),
    Example("sampled-yes-no", "Is 7 a prime number?", "No.", "Yes.", 0.7),
)

ALIKE = (
    Example("same", "What is the capital of France?", "Paris", "Paris."),
    Example(
        "fuller", "What is the capital of France?", "Paris.", "The capital of France is Paris."
    ),
    Example("bold", "What is the capital of France?", "**Paris**", "It's Paris."),
    Example("fuller-sum", "What is 17 + 25?", "42", "17 + 25 = 42."),
    Example("spelled", "How many legs has a spider?", "Eight.", "A spider has 8 legs."),
    Example("thousands", "How many metres are 5 km?", "5,000 m", "5000 metres"),
    Example("same-length", "How long is it?", "It is 1.5 km.", "It is 1500 m."),
    Example("same-time", "How long does the film last?", "90 minutes.", "1.5 hours."),
    Example(
        "list", "List the primary colours.", "1. Red\n2. Blue\n3. Yellow", "Blue, red, yellow."
    ),
    Example(
        "reordered",
        "What do I need for pancakes?",
        "You need flour, milk, eggs and a pinch of salt.",
        "Eggs, flour, milk and a little salt are needed.",
    ),
    Example(
        "paraphrase",
        "Why should I back up my files?",
        "Hardware fails sooner or later, and a copy elsewhere saves you from losing your work.",
        "Because disks break at some point, and you would lose your work without a copy.",
    ),
    Example(
        "other-reason",
        "Give one reason to learn a language.",
        "It lets you talk with people from other countries when you travel.",
        "Learning a language keeps your memory in good shape.",
    ),
    Example("open-choice", "Name a fruit.", "Apple.", "Banana.", 0.9),
    Example("open-number", "Pick a number between 1 and 10.", "7", "4", 1.0),
    Example(
        "story",
        "Write the first sentence of a story.",
        "The lighthouse had been dark for 3 years when Anna came back.",
        "Nobody in the village had ever seen the river run backwards.",
        1.0,
    ),
    Example(
        "advice",
        "How can I sleep better?",
        "Go to bed at the same time each day and avoid coffee after 2 pm.",
        "Keep your bedroom dark and cool, and put the phone away 30 minutes before you lie down.",
        0.7,
    ),
    Example("comma-decimal", "Convert 1250 g to kg.", "It is 1,25 kg.", "It is 1.25 kg."),
    Example("case-of-label", "Classify the sentiment: 'I loved it.'", "Positive", "positive."),
    Example(
        "label-sentence",
        "Classify the sentiment: 'I loved it.'",
        "The sentiment is positive.",
        "positive",
    ),
    Example(
        "double-negation",
        "Is the shop open on holidays in the summer season of this year?",
        "The shop is not closed on public holidays during the whole summer season.",
        "The shop is open on public holidays during the whole summer season.",
    ),
    Example(
        "code",
        "Write a Python function that doubles a number.",
        "```python\ndef double(n):\n    return n * 2\n```",
        "```python\ndef twice(value):\n    return value + value\n```",
    ),
    Example("zh-fuller", "法国的首都是哪里？", "巴黎。", "法国的首都是巴黎。"),
    Example("zh-sum", "12加30等于多少？", "42", "12加30等于42。"),
    Example("zh-numeral", "一年有多少个月？", "十二个月。", "12个月。"),
    Example("zh-kilometres", "马拉松有多长？", "42.195公里。", "42.195千米。"),
    Example(
        "zh-paraphrase",
        "为什么要备份文件？",
        "硬盘迟早会坏，有备份就不会丢失数据。",
        "因为设备可能损坏，备份可以避免数据丢失。",
    ),
    Example(
        "zh-degree", "这家餐厅怎么样？", "这家餐厅很好，菜很新鲜。", "这家餐厅非常好，菜非常新鲜。"
    ),
    Example("zh-open", "推荐一种水果。", "苹果。", "香蕉。", 0.8),
    Example(
        "reference-in-sentence",
        "Repeat this order number: ZX-90-4471-KQ",
        "Your order number is ZX-90-4471-KQ.",
        "ZX-90-4471-KQ",
    ),
    Example(
        "different-years-far-apart",
        "Tell me about two famous bridges.",
        "The first one crosses a bay in the west. Many painters loved its red towers.",
        "A stone bridge from 1357 stands in the old town. Statues line both of its sides.",
    ),
)
