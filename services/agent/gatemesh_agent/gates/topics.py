"""What a prompt speaks of, so that a wanted oddity is not taken for a fault."""

from enum import StrEnum

import regex


class Topic(StrEnum):
    """Subjects that make an odd answer the right one."""

    CONTROL_CHARS = "control_chars"
    ICONS = "icons"
    ENCODING = "encoding"
    TOKENS = "tokens"
    LANGUAGES = "languages"
    DIALOGUE = "dialogue"
    ENCODED = "encoded"
    DRAWING = "drawing"
    ESCAPES = "escapes"
    LINE_BREAKS = "line_breaks"
    INVISIBLE = "invisible"
    GLUED = "glued"
    REPEATING = "repeating"
    PLAYFUL = "playful"
    ENDLESS = "endless"
    SHORT = "short"
    COMPOSING = "composing"
    MARKUP = "markup"
    SPELLING = "spelling"
    SIGNS = "signs"
    PROGRAMS = "programs"
    MISSPELT = "misspelt"
    COMMANDS = "commands"


def speaks_of(prompt: str, topic: Topic) -> bool:
    """Return True when the prompt names the topic in one of a dozen languages."""
    return TOPIC_WORDS[topic].search(prompt) is not None


def words(pattern: str) -> "regex.Pattern[str]":
    """Compile one row of the table."""
    return regex.compile(pattern, regex.IGNORECASE | regex.VERBOSE)


TOPIC_WORDS = {
    Topic.CONTROL_CHARS: words(
        r"""escape | \bansi\b | \bvt\d | raw\ (?:byte | char | output) | control[\ -](?:char
        | code) | terminal | null\ (?:byte | char) | \bnul\b | \bbinary\b | \bbell\b
        | \bbytes?\b | ascii\ 0 | \\x[01][0-9a-f] | \\033 | \\e\[ | form\ feed
        | vertical\ tab | unprintable | non-printable | 转义 | 控制字符 | 終端 | 终端
        | エスケープ | 制御(?:文字 | コード) | 이스케이프 | 제어\ ?문자 | управляющ
        | терминал | échappement | contrôle | steuerzeichen | escap
        | caracteres\ de\ control | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"""
    ),
    Topic.ICONS: words(
        r"""icon | glyph | \bfonts?\b | powerline | nerd | private[\ -]use | \bpua\b | codepoint
        | code\ point | unicode | starship | waybar | polybar | tmux | separator
        | shell\ (?:theme | prompt) | klingon | tengwar | conscript | ligature | apple\ logo
        | symbol | 图标 | 圖示 | 字体 | 字型 | 私用 | アイコン | フォント | 記号 | 외자
        | 아이콘 | 글꼴 | иконк | шрифт | значк | icône | police | schriftart | zeichen
        | icono | ícono | ícone | fuente | fonte | [\ue000-\uf8ff]"""
    ),
    Topic.ENCODING: words(
        r"""mojibake | \bu\+[0-9a-f]{4} | encod | utf-?8 | utf-?16 | latin-?1 | iso-?8859
        | cp125\d | windows-125\d | charset | character\ set | replacement\ char | \ufffd
        | garbled | \bunicode\b | surrogate | bytes | 乱码 | 亂碼 | 编码 | 編碼 | 文字化け
        | エンコード | 文字コード | 인코딩 | 깨진 | кодиров | кракозябр | encodage
        | kodierung | zeichensatz | codificaci | codifica | [ÃÂ][\x80-\xbf]"""
    ),
    Topic.TOKENS: words(
        r"""<\|[^|\s]{1,40}\|> | <\uff5c | \[/?inst\] | </?s> | <(?:pad | unk | bos | eos
        | mask)> | \btokeni[sz] | \btokens?\b | special\ token | chatml | chat\ template
        | prompt\ (?:format | template) | sentencepiece | \bbpe\b | wordpiece | vocab
        | fine-?tun | \bsft\b | \bllms?\b | llama | mistral | qwen | gemma | \bgpt
        | \bbert\b | \bt5\b | transformer | hugging\ ?face | vllm | training\ (?:data
        | example | sample) | jsonl | jinja | 分词 | 词表 | 特殊标记 | 模板 | 微调 | 大模型
        | トークン | ファインチューニング | 토큰 | 토크나이저 | токен | дообуч | jeton
        | jetons | \btokenizador | (?<!\w)[Ġ▁](?=\w)"""
    ),
    Topic.LANGUAGES: words(
        r"""translat | languages? | \bscripts?\b | alphabet | unicode | pronounc | kanji | hanzi
        | kana\b | hangul | transliterat | etymolog | bilingual | multilingual | polyglot
        | greetings?\ (?:in | from) | \bidiom | how\ (?:do | would)\ (?:you | i | we
        | they)\ say | (?:word | letter | character | name | term)s?\ for
        | around\ the\ world | in\ the\ original | original\ (?:text | wording | script | title)
        | word\ .{0,30}\ come\ from | origin\ of\ (?:the | this)\ (?:word | name | term)
        | recite | quran | koran | torah | genesis | psalm | scripture | bible | talmud | gita
        | sutra | veda | national\ anthem | in\ (?:arabic | bengali | bulgarian | chinese | cyrillic
        | farsi | georgian | greek | hebrew | hindi | japanese | khmer | korean | mandarin
        | marathi | persian | punjabi | russian | sanskrit | serbian | tamil | telugu | thai
        | ukrainian | urdu | cantonese) | \b(?:arabic | bengali | chinese | greek | hebrew
        | hindi | japanese | korean | mandarin | persian | russian | sanskrit | tamil | thai
        | ukrainian | urdu | armenian | georgian | amharic | burmese | khmer | mongolian
        | tibetan | cyrillic | devanagari)\b | 翻译 | 翻譯 | 语言 | 語言 | 英文 | 中文
        | 日文 | 日语 | 韩语 | 俄语 | 法语 | 德语 | 西班牙语 | 阿拉伯语 | 泰语 | 希腊 | 英语
        | 翻訳 | 訳し | 言語 | 英語 | 中国語 | 韓国語 | ロシア語 | 日本語 | アルファベット
        | 文字 | 번역 | 언어 | 영어 | 중국어 | 일본어 | 러시아어 | 한자 | 알파벳
        | перев[её]д | перевод | язык | алфавит | по-английски | на\ (?:английск | китайск
        | японск | греческ | иврит | араб) | tradui | langue | alphabet | (?:en
        | du)\ (?:russe | grec | chinois | japonais | arabe | coréen | hébreu) | übersetz
        | sprache | (?:auf | ins)\ (?:russisch | griechisch | chinesisch | japanisch
        | arabisch | koreanisch) | traduc | traduz | tradur | idioma | lengua | língua
        | lingua | alfabeto | ترجم | لغة | لغات | زبان | अनुवाद | भाषा | แปล | ภาษา | תרגם
        | שפה | dịch | ngôn\ ngữ | terjemah | bahasa | çevir"""
    ),
    Topic.DIALOGUE: words(
        r"""dialog | conversation | \bchat\b | chatml | chatbot | interview | \bscene\b
        | \bscript\b | screenplay | transcript | role-?\ ?play | \bq\s?(?:& | and | /)\s?a\b
        | \bfaqs?\b | questions? | quiz | flash\ ?cards? | \bturns?\b | exchange | speakers?
        | exam\b | survey | training\ (?:data | example | sample) | few-?shot | jsonl | skit
        | play\b | 对话 | 對話 | 聊天 | 访谈 | 采访 | 问答 | 問答 | 问题 | 提问 | 剧本
        | 常见问题 | 测验 | 会話 | 対話 | 対談 | インタビュー | 質問 | 台本 | クイズ | 대화
        | 인터뷰 | 질문 | 문답 | 퀴즈 | диалог | беседа | интервью | вопрос | сцен
        | викторин | entretien | questions | saynète | scène | gespräch | fragen | szene
        | diálogo | conversaci | conversa | preguntas | perguntas | entrevista | domande
        | intervista | حوار | محادثة | أسئلة | संवाद | प्रश्न | บทสนทนา | คำถาม | hội\ thoại
        | câu\ hỏi | percakapan | pertanyaan | (?m:^(?:user | human | assistant | q | a
        | question | answer)\s*:)"""
    ),
    Topic.ENCODED: words(
        r"""base-?\ ?(?:16 | 32 | 58 | 62 | 64 | 85) | encod | hash | digest | sha-?\d | \bmd5\b
        | \bhex | hexadec | \bkeys?\b | token | certificate | \bpem\b | \bssh\b | \bpgp\b
        | \bgpg\b | \bjwt\b | \buuid | \bguid | \bids?\b | identifier | random | password
        | secret | signature | checksum | \bblob\b | binary | data[\ -]?ur[il] | \bsvg\b
        | image | encrypt | cipher | \bdna\b | \brna\b | sequence | genome | protein
        | serial | nonce | \bseed\b | hash | 编码 | 哈希 | 散列 | 密钥 | 随机 | 加密 | 序列
        | 证书 | 密码 | エンコード | ハッシュ | ランダム | 暗号 | 인코딩 | 해시 | 무작위
        | 암호 | кодир | хеш | хэш | ключ | случайн | шифр | пароль | encod | hachage | clé
        | aléatoire | kodier | zufäll | schlüssel | codific | clave | aleatori | chave
        | senha"""
    ),
    Topic.DRAWING: words(
        r"""\bdraw | ascii | \bart\b | sketch | diagram | banner | pattern | checkerboard
        | chess | \bboard\b | \bgrid\b | \bbox(?:es)?\b | \btree\b | chart | \bplot\b
        | graph | histogram | sparkline | \bmaze | \bmap\b | emoticon | kaomoji | emoji
        | smil(?:ey | ies) | brainf | esolang | esoteric | regex | regular\ expression
        | perl\b | \bapl\b | \bline\ of\b | \brow\ of\b | divider | separator | border
        | \bruler?\b | \btabs?\b | tablature | morse | braille | 画 | 畫 | 图 | 圖 | 表情
        | 顔文字 | 絵文字 | 描いて | アスキー | 그려 | 그림 | 이모지 | 이모티콘 | нарис
        | рисун | схем | эмодзи | смайл | dessin | zeichne | zeichnung | muster | dibuj
        | desenh | disegn | ارسم | vẽ | gambar"""
    ),
    Topic.ESCAPES: words(
        r"""escap | regex | regular\ expression | latex | \btex\b | printf | \bjson\b | python
        | javascript | \bcode\b | \bc\+\+ | \bjava\b | bash | shell | string\ literal
        | backslash | newline | unicode | \\[nutr\\"] | path | 转义 | 代码 | 正则 | 程序
        | エスケープ | コード | 正規表現 | 이스케이프 | 코드 | 정규식 | экранир | код
        | регуляр | échappe | maskier | zeilenumbruch | código | programa"""
    ),
    Topic.LINE_BREAKS: words(
        r"""escap | regex | regular\ expression | printf | \bjson | literal | backslash | newline
        | line[\ -]?(?:break | feed) | latex | \btex\b | \\[nutr\\"] | \brepr\b | \braw\b | 转义
        | 正则 | 换行 | エスケープ | 改行 | 正規表現 | 이스케이프 | 줄바꿈 | 정규식 | экранир
        | регуляр | перенос | échappe | saut | maskier | zeilenumbruch | salto | quebra"""
    ),
    Topic.INVISIBLE: words(
        r"""zalgo | glitch | cursed | combining | diacriti | zero[\ -]?width | invisible | zwj
        | zwnj | zwsp | unicode | blank\ char | accents? | 零宽 | 不可见 | 组合字符 | ゼロ幅
        | 結合文字 | 不可視 | 영폭 | невидим | диакрит | invisible | unsichtbar | invisibl
        | [\u200b\u2060\ufeff]"""
    ),
    Topic.GLUED: words(
        r"""(?:without | no | remove | strip | delete | omit)\s(?:(?:the | any
        | all)\s)?(?:blank | space | whitespace | spacing) | one\ (?:long\ )?word | hashtag
        | camel\ ?case | single\ word | longest | concatenat | joined | scriptio | compound
        | chemical | iupac | \burls?\b | slug | domain | palindrom | sans\ espace
        | ohne\ (?:leer | abst) | sin\ espacio | sem\ espaço | без\ пробел | senza\ spazi
        | 空格 | スペース"""
    ),
    Topic.REPEATING: words(
        r"""repeat | \btimes\b | \bcopies\b | over\ and\ over | again\ and\ again | \bfill
        | string\ of | \b(?:rows? | lines?)\ of | \bzeros?\b | \d\ letters | in\ a\ row
        | 重复 | 重複 | 反复 | 遍 | \d\ ?次 | 繰り返 | \d\ ?回 | 何度も | 반복 | \d\ ?번
        | повтор | \bраз\b | раза | répèt | répét | \bfois\b | wiederhol | \d\ mal\b
        | \w{3}mal\b | repet | repit | \bveces\b | \bvezes\b | ripet | \bvolte\b | كرر | مرة
        | مرات | बार | दोहरा | ซ้ำ | ครั้ง | lặp | \blần\b | ulang | \bkali\b | tekrar
        | \bkez\b | \bkere\b | \bdefa\b | פעמים | פעם | \brazy\b | разів | рази | \bkrát\b
        | \bkertaa\b | \bgånger\b | \bkeer\b | \bgange\b | φορές | \bبار\b"""
    ),
    Topic.PLAYFUL: words(
        r"""laugh | \bhaha | \blol\b | scream | \byell | sound\ of | onomatop | refrain | chorus
        | mantra | chant | \bcheer | \bcall(?:[\ -]and[\ -] | \ &\ | /)response
        | lullaby | rhyme | \bsong\b | \bpoem | lyrics | litany
        | tongue.twister | very\ long | lots\ of | (?<!how\ )\bmany\b | as\ much | stretch
        | 笑 | 歌 | 诗 | 叠句 | 許多 | 许多 | 很多 | たくさん | 歌詞 | 詩 | 많이 | 웃 | 노래
        | 후렴 | ㅋㅋ | много | песн | стих | припев | смех | смей | beaucoup | \brire
        | comptine | chanson | poème | (?<!wie\ )\bviele | lach | gedicht | \blied\b | mucho
        | muito | \brí | \bri[ae] | riéndote | estribillo | poema | canci | canção | ขำ
        | หัวเราะ | เพลง | กลอน | şarkı | şiir | kahkaha | tekerleme | कविता | गीत | हँस | हंस
        | أغنية | قصيدة | اضحك | שיר | פזמון | wiersz | piosenk | śmiej | łamaniec | bài\ thơ
        | bài\ hát | cười | вірш | пісн | скоромовк | скороговорк | canzone | filastrocca
        | poesia | scioglilingua | trabalenguas | trava-línguas | virelangue | zungenbrecher
        | \blagu\b | puisi | 鳴き声 | 擬音 | オノマトペ | 早口言葉 | 拟声 | 绕口令 | 儿歌
        | 의성어 | lautgedicht | sound\ effect"""
    ),
    Topic.ENDLESS: words(
        r"""forever | endless | infinite | until\ (?:you | i | it | stop) | as\ (?:many | long
        | often)\ as | without\ (?:end | stopping) | never\ stop | non-?stop
        | keep\ (?:going | repeating | writing) | 无限 | 不停 | 永远 | 一直 | ずっと | 無限
        | 永遠 | 끝없이 | 무한 | 계속 | бесконеч | без\ остановки | à\ l'infini
        | sans\ (?:fin | arrêt) | endlos | unendlich | infinit | sin\ parar | sem\ parar"""
    ),
    Topic.SHORT: words(
        r"""one[\ -]word | single[\ -]word | \bword\b | \btitle\b | \bname\b | slogan | headline
        | yes\ or\ no | label | classif | first\ word | (?:one | single)\ (?:letter | line
        | character | digit) | short(?:est)? | salutation | greeting | 一个词 | 标题 | 題
        | タイトル | 一言 | 単語 | 한\ 단어 | 제목 | одн(?:о | им)\ слов | заголов | назван
        | \bmot\b | titre | \bwort\b | titel | anrede | \bnamen?\b | palabra | título
        | palavra | parola | titolo"""
    ),
    Topic.SPELLING: words(
        r"""spell | \bletters? | alphabet | crossword | hangman | word\ search | scrabble | acronym
        | 字母 | 文字 | буква | букв | buchstab | lettre | letra | 스펠링"""
    ),
    Topic.SIGNS: words(
        r"""operator | \bsigns?\b | symbol | character | markdown | syntax | punctuation | comment
        | asterisk | star | hash | backtick | underscore | role | prefix | delimiter | 符号
        | 记号 | 記号 | 기호 | символ | знак | zeichen | signe | signo | sinal"""
    ),
    Topic.MARKUP: words(
        r"""\bhtml | \bxml | \bxhtml | entit | \burls?\b | \buri | \blinks? | percent | web\ page
        | markup | markdown | \bfeed\b | \brss\b | template | query\ string | ampersand | &\w+;
        | 网页 | 链接 | 实体 | リンク | ссылк | сущност | lien | enlace | verweis"""
    ),
    Topic.COMMANDS: words(
        r"""linux | unix | \bbsd\b | ubuntu | debian | command | \bcli\b | terminal | shell | bash
        | \btools?\b | package | librar | kernel | driver | \bapt\b | systemd | network | server
        | flag | option | parameter | syscall | \bgit\b | docker | kubernetes | \bdevops\b
        | gene\b | genes\b | protein | species | taxonom | drug | medication | stock | ticker"""
    ),
    Topic.MISSPELT: words(
        r"""typos? | mock | sarcas | spongebob | (?:random | altern\w+ | mixed)\ (?:case | cap)
        | mis-?spel | spelling | speling | vowel | scrambl | jumbl | shuffl | garbl
        | corrupt | gibberish | nonsense | jabberwock | lorem | invented | made-up | conlang
        | dialect | accent | phonetic | \bscots\b | patois | creole | pidgin | slang | texting
        | \bsms\b | leet | 1337 | pig\ latin | backward | revers | mirror | shorthand | abbrev
        | stutter | stammer | drunk | slur | toddler | baby\ talk | middle\ english | old\ english
        | chaucer | beowulf | proto- | elvish | klingon | latin\b | welsh | \bdrop\b | missing
        | letters | ocr | noisy | noise"""
    ),
    Topic.PROGRAMS: words(
        r"""\bcode\b | coding | python | java | script | program | \bapi\b | json | yaml | \bsse\b
        | stream | event | error | exception | trace | \blogs?\b | debug | crash | \bbug | curl
        | server | endpoint | https? | \bhtml | web\ ?page | website | nginx | request
        | websocket | django | flask | \bsites?\b | \bapps?\b | upgrad | brows
        | install | \bforms?\b | deploy | docker | module | notebook
        | \bsql\b | \breturns?\b | function
        | variable | output | evaluat | print | typeof | fehler | ausnahme | erreur | errore
        | fallo | código | erro\b | błąd | błęd | hata\b | ошибк | исключен | код | лог\b | скрипт
        | помилк | 代码 | 错误 | 异常 | 日志 | 接口 | 程序 | 报错 | コード | エラー | 例外 | ログ
        | プログラム | 코드 | 오류 | 에러 | 로그 | 프로그램 | خطأ | كود | شגיאה | שגיאה | קוד | त्रुटि
        | कोड | โค้ด | ข้อผิดพลาด | lỗi | \bmã\b"""
    ),
    Topic.COMPOSING: words(
        r"""(?:\bwrite | \bcompose | \bdraft | \bcreate | \bschreib | \bverfass | \bécri
        | \brédige | \bescrib | \bredact | \bescrev | \bredig | \bscriv | напиши | составь
        | сочини | 写 | 撰写 | 寫 | 書いて | 작성 | 써\ ?줘 | اكتب | लिख | เขียน | viết
        | tulis | yaz) .{0,80}? (?: e-?mail | letter | essay | story | article | invitation
        | description | paragraph | poem | report | summary | speech | review | post\b
        | plan | guide | recipe | cover | message | announcement | proposal | page | blog
        | haiku | brief | einladung | mail | aufsatz | geschichte | beschreibung | absatz
        | gedicht | bericht | rede | artikel | rezept | lettre | courriel | histoire
        | description | paragraphe | poème | rapport | discours | annonce | recette | carta
        | correo | cuento | historia | descripci | descriç | párrafo | parágrafo | poema
        | informe | relat[oó]rio | discurso | письм | рассказ | эссе | стать | описани
        | абзац | стих | отч[её]т | речь | приглаш | рецепт | 邮件 | 信 | 文章 | 故事 | 作文
        | 介绍 | 描述 | 段 | 诗 | 报告 | 演讲 | 邀请 | 手紙 | メール | 物語 | 作文 | 説明
        | 記事 | 詩 | 招待 | 편지 | 메일 | 이야기 | 글 | 설명 | 시를 | 보고서 | 초대 | رسالة
        | فقرة | قصة | مقال | पत्र | कहानी | निबंध | จดหมาย | เรื่อง | บทความ )
        | (?: 手紙 | メール | 物語 | 作文 | 説明文 | 記事 | 詩 | 招待状 | 感想文 | 報告書 | 편지
        | 메일 | 이야기 | 글 | 시를 | 보고서 | 초대장 | 에세이 | पत्र | कहानी | निबंध | कविता
        | mektup | hikâye | hikaye | deneme | makale | şiir | kompozisyon | e-posta | davetiye )
        .{0,40}? (?: 書いて | 作って | 考えて | 작성 | 써 | 지어 | लिख | yaz | oluştur
        | hazırla )"""
    ),
}
