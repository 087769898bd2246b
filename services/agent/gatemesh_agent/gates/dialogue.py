"""Turns of a conversation that the answer invents after its own end."""

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

TURNS_LIMIT = 1
"""One label may head a section; a question and its answer are two turns."""
LINE_CHARS = 64

ASKER = regex.compile(
    r"""[#*\s]{0,6}(?:user | human | question | \bq | customer | instruction | input
        | usuario | usuário | pregunta | pergunta | utilisateur | question | frage | nutzer
        | benutzer | вопрос | пользователь | domanda | utente | 用户 | 用戶 | 问 | 問 | 问题
        | 提问 | ユーザー | 質問 | 사용자 | 질문 | المستخدم | سؤال | प्रश्न | คำถาม | ผู้ใช้
        | câu\ hỏi | người\ dùng | pertanyaan | pengguna | pytanie | użytkownik | soru
        | kullanıcı | vraag | запитання) \s?\d{0,2}[*\s]{0,3}[:：]""",
    regex.VERBOSE | regex.IGNORECASE,
)
TELLER = regex.compile(
    r"""[#*\s]{0,6}(?:assistant | ai | bot | answer | \ba | response | output | asistente
        | assistente | respuesta | resposta | réponse | antwort | assistent | ответ
        | ассистент | risposta | 助手 | 助理 | 答 | 回答 | 答案 | アシスタント | 回答 | 答え
        | 어시스턴트 | 답변 | 답 | المساعد | جواب | الإجابة | उत्तर | คำตอบ | ผู้ช่วย
        | trả\ lời | trợ\ lý | jawaban | asisten | odpowiedź | asystent | cevap | yanıt
        | відповідь) \s?\d{0,2}[*\s]{0,3}[:：]""",
    regex.VERBOSE | regex.IGNORECASE,
)


FIELD = regex.compile(r"[,;{(\[]\s*$")
"""How a line of a program or of data ends, and no turn does."""


class Dialogue:
    """Counts invented turns."""

    __slots__ = ("_answered", "_context", "_expects_asker", "_since", "_start", "_turns")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._since = 0
        self._answered = False
        self._expects_asker = True
        self._turns = 0
        self._start = 0

    def scan(self, window: TextWindow, *, last: bool = False) -> Finding | None:
        """Look at the lines that ended since the last time."""
        text = window.since(self._since)
        if last and self._turns <= TURNS_LIMIT and ":" not in text and "：" not in text:
            return None
        start = window.end - len(text)
        *lines, open_line = text.split("\n")
        if last or len(open_line) > LINE_CHARS:
            lines.append(open_line)
            open_line = ""
        self._since = window.end - len(open_line)
        for line in lines:
            self._line(line, start)
            start += len(line) + 1
        if self._turns <= TURNS_LIMIT or self._context.asks(Topic.DIALOGUE, Topic.TOKENS):
            return None
        return Finding(
            Reason.SELF_DIALOGUE,
            float(self._turns),
            float(TURNS_LIMIT),
            self._start,
            window.end,
        )

    def _line(self, line: str, start: int) -> None:
        if ":" not in line and "：" not in line:
            self._answered = self._answered or bool(line.strip())
            return
        pattern = ASKER if self._expects_asker else TELLER
        if self._answered and pattern.match(line) is not None and FIELD.search(line) is None:
            self._start = self._start or start
            self._turns += 1
            self._expects_asker = not self._expects_asker
        elif line.strip():
            labelled = ASKER.match(line) is not None or TELLER.match(line) is not None
            self._answered = self._answered or not labelled
