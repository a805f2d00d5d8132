"""One spelling for the many ways to write the same answer: unicode, LaTeX dress, separators, wrappers.

String level only; what the symbols mean is the business of `tokens` and `reader`. Linear in the length of the text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from maspo_rl.verifier.extract import closing_brace
from maspo_rl.verifier.tokens import FUNCTIONS, MARKS, SYMBOLS, UNEVALUATED

_WORDS = "\ue002\ue003"
"""Private characters: the brackets of a text in words."""
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau upsilon "
    "phi chi psi omega"
)
_FRACTIONS = "½1/2 ⅓1/3 ⅔2/3 ¼1/4 ¾3/4 ⅕1/5 ⅖2/5 ⅗3/5 ⅘4/5 ⅙1/6 ⅚5/6 ⅐1/7 ⅛1/8 ⅜3/8 ⅝5/8 ⅞7/8 ⅑1/9 ⅒1/10"
_UNICODE_COMMANDS = (
    "×times ✕times ÷div ·cdot ⋅cdot ∙cdot •cdot ≤le ⩽le ≦le ≥ge ⩾ge ≧ge ≠ne ≈approx ∞infty √sqrt ∪cup ∩cap ∈in "
    "∅emptyset ⌀emptyset ±pm ∓mp ∑sum ∫int ∏prod ⌊lfloor ⌋rfloor ⌈lceil ⌉rceil ∠angle △triangle …ldots ⋯ldots →to "
    "ΓGamma ΔDelta ΘTheta ΛLambda ΠPi ΣSigma ΦPhi ΨPsi ΩOmega ϕphi µmu"
)
_PLAIN = {
    "-": "−–—‐‑－", "'": "′’‘", '"': "“”", "": "《》€£¥￥₹＄\u200b\ufeff\u2061", " ": "\u00a0\u2009\u202f\u3000",
    ":": "∶", "/": "⁄∕", ",": "、", ".": "。｡", "[": "【", "]": "】", "%": "％﹪", "^\\circ ": "°º℃", "''": "″",
    "\\sqrt[3]": "∛", "\\sqrt[4]": "∜", "\\mathbb{R}": "ℝ", "\\mathbb{Z}": "ℤ", "\\mathbb{N}": "ℕ", "\\mathbb{Q}": "ℚ",
}  # fmt: skip


def _unicode_table() -> dict[int, str]:
    table = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    table |= {chr(0x3B1 + index): f"\\{name} " for index, name in enumerate(_GREEK.split())}
    table |= {entry[0]: f"\\{entry[1:]} " for entry in _UNICODE_COMMANDS.split()}
    table |= {entry[0]: "\\frac{{{}}}{{{}}}".format(*entry[1:].split("/")) for entry in _FRACTIONS.split()}
    table |= {character: plain for plain, characters in _PLAIN.items() for character in characters}
    return {ord(key): value for key, value in table.items()}


_UNICODE = _unicode_table()
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣ", "0123456789+-=()nix")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙₓ", "0123456789+-=()nx")
_SHIFTED = _RAISED | _LOWERED
_SHIFTED_RUN = re.compile("|".join(f"[{''.join(map(chr, table))}]+" for table in (_RAISED, _LOWERED)))
_SYNONYMS = {
    "": "limits left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr ! $ nonumber euro "
    "pounds boxed fbox",
    " ": "displaystyle textstyle quad qquad , ; : > ( ) [ ] rm bf hfill newline",
    "\\text": "textbf textrm textit textnormal texttt textsf mathrm mathbf mathit mathsf mathtt mbox hbox operatorname "
    "boldsymbol bm mathnormal emph underline",
    "\\frac": "dfrac tfrac cfrac",
    "\\binom": "dbinom tbinom",
    "\\le ": "leq leqslant leqq",
    "\\ge ": "geq geqslant geqq",
    "\\ldots ": "dots cdots",
    " \\text{and} ": "& land wedge",
    " \\text{or} ": "lor vee",
    "|": "lvert rvert vert mid",
}
_SINGLE = {
    "lbrace": "\\{", "rbrace": "\\}", "neq": "\\ne ", "lt": "<", "gt": ">", "%": "%", "percent": "%", "#": "#",
    "_": "_", " ": " ", "\n": " ", "ast": "*", "cdotp": "\\cdot ", "varnothing": "\\emptyset ", "degree": "^\\circ ",
    "colon": ":", "arcsin": "\\asin ", "arccos": "\\acos ", "arctan": "\\atan ", "imath": "i",
    "lbrack": "[", "rbrack": "]", "lparen": "(", "rparen": ")", "varphi": "\\phi ",
    "infinity": "\\infty ", "varepsilon": "\\epsilon ",
    "vartheta": "\\theta ",
}  # fmt: skip
_COMMANDS = {f"\\{name}": same for same, names in _SYNONYMS.items() for name in names.split()} | {
    f"\\{name}": same for name, same in _SINGLE.items()
}
_STRUCTURAL = "frac binom text begin end overline bar dot ddot hat vec mathbb to cap approx"
_KNOWN = MARKS.keys() | {f"\\{name}" for name in FUNCTIONS | UNEVALUATED | SYMBOLS | set(_STRUCTURAL.split())}
_RUN_ON_NAMES = (
    "pi theta alpha beta omega sin cos tan cot sec csc log ln le leq ge geq ne neq cdot times pm triangle angle "
    "infty sqrt"
)
_RUN_ON = frozenset(f"\\{name}" for name in _RUN_ON_NAMES.split())
"""Commands that a text stripped of its spaces runs into the letters after them, `\\sinx`."""

_COMMAND = re.compile(r"\\(?:[a-zA-Z]+|.)", re.DOTALL)
_DOUBLE_ESCAPE = re.compile(r"\\\\(?=(?:d?frac|sqrt|text|pi|infty|cdot|times|left|right|le|ge|pm|cup|circ|begin)\b)")
_INVISIBLE = re.compile(r"\\[hv]?phantom\s*(?:\{[^{}]*\}|.)", re.DOTALL)
_INFIX = re.compile(r"\{([^{}]*)(?:\\(choose)|\\over)(?![a-z])([^{}]*)\}")
_LOST_ROW_END = re.compile(r"(?<!\\)\\(?=[-\d])")
_LETTER_TIMES = re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*\^)")
_LETTER_DEGREE = re.compile(r"(?<=\d)\s*\^\s*(?:o(?![a-zA-Z])|\{\s*o\s*\})")
_BRACKETED_PERIOD = re.compile(r"(?<![\w.])(\d*\.\d*)\((\d+)\)(?!\d)")
_BRACED_JOINT = re.compile(r"(?<!text)\{(or|and)\}")
_THIN_GROUP = re.compile(r"(?<=\d)(?:\\[,;: ]|~|\{,\}|\{\\,\})(?=\d{3}(?!\d))")
_SPACED_NUMBER = re.compile(r"[+-]?\d{1,3}(?: \d{3})+(?:\.\d+)?(?=$| \d+/\d+$)")
_PREFIX = re.compile(
    r"(?:\\text\{)?(?:the final answer is|the answer is|final answer:|answer:|answer is|答案是|答案为|答案:)\}?(?=.)",
    re.IGNORECASE | re.DOTALL,
)
_OUTWARD = ((re.compile(r"(?:^|(?<=\\cup)|(?<=\\in)) *\]"), "("), (re.compile(r"\[ *(?=$|\\cup)"), ")"))
"""The open ends of an interval as `]0, 1[` writes them."""
_EDGE = ' \t\n,;:`"*_~'
_TEXT = re.compile(r"\\text *\{((?:[^{}]++|\{[^{}]*+\})*+)\}")
_MODULE = re.compile(r"(?<![A-Za-z])(?:np|numpy|math|sympy|cmath)\.(?=[a-z])")
_MOST_REMEMBERED_CHARS = 256
_MOST_PASSES = 20
_WORDLESS = re.compile(
    r"[\s\d.,:;%()\[\]+\-*/^=<>|!]*[A-Za-z]?[\s\d.,:;%()\[\]+\-*/^=<>|!]*"
    r"|\(?[A-Z]\)?(?:(?:, ?and|, ?or|,| and| or) ?\(?[A-Z]\)?)+"
)
"""One letter at most, or several options."""


def _shifted(match: re.Match[str]) -> str:
    """Raised or lowered digits that stand together as a power or subscript."""
    run = match.group()
    return f"{'^' if ord(run[0]) in _RAISED else '_'}{{{run.translate(_SHIFTED)}}}"


def _command(match: re.Match[str]) -> str:
    """The canonical command; an unknown one that begins with a known one is that and the letters after it."""
    name = match.group()
    if name in _COMMANDS:
        return _COMMANDS[name]
    if name not in _KNOWN:
        for length in range(min(len(name) - 1, 9), 2, -1):
            if name[:length] in _RUN_ON and len(name) - length <= 4:
                return f"{_COMMANDS.get(name[:length], name[:length])} {name[length:]}"
    return name


def _text(match: re.Match[str]) -> str:
    content = match[1].replace("~", " ")
    if set(content) & set("\\{" + _WORDS) or any(map(str.isdigit, content)) or _WORDLESS.fullmatch(content):
        return f" {content} "
    return f" {_WORDS[0]}{content.strip()}{_WORDS[1]} "


def _unwrap_text(text: str) -> str:
    """`\\text{...}` stays around words and goes around a number, a letter, an option or more than text."""
    return _TEXT.sub(_text, text).replace(_WORDS[0], "\\text{").replace(_WORDS[1], "}")


def _brace_arguments(text: str, command: str) -> str:
    """TeX's short forms spelt out: `\\frac12` and `\\frac{1}2` become `\\frac{1}{2}`."""
    pieces = text.split(command)
    for index in range(1, len(pieces)):
        rest = pieces[index]
        if rest[:1].isalpha():
            continue
        taken = ""
        for _ in range(2):
            rest = rest.lstrip()
            if rest.startswith("{"):
                end = closing_brace(rest, 0)
                if end < 0:
                    break
                taken, rest = taken + rest[: end + 1], rest[end + 1 :]
                continue
            match = _COMMAND.match(rest)
            short = match.group() if match else rest[:1]
            if not short or short in "([":
                break
            taken, rest = f"{taken}{{{short}}}", rest[len(short) :]
        pieces[index] = taken + rest
    return command.join(pieces)


def _latex(text: str) -> str:
    if "\\\\" in text and "\\begin" not in text:
        text = _DOUBLE_ESCAPE.sub(r"\\", text)
    text = re.sub(r"\\(?:left|right)\s*\.", "", _THIN_GROUP.sub("", re.sub(r",\\!\s*", ",", text)))
    if "\\begin" in text:
        text = _LOST_ROW_END.sub(r"\\\\", text)
    text = _INFIX.sub(lambda match: f"\\{'binom' if match[2] else 'frac'}{{{match[1]}}}{{{match[3]}}}", text)
    text = _COMMAND.sub(_command, _INVISIBLE.sub("", text))
    text = _BRACED_JOINT.sub(r" \1 ", text.replace("{,}", ",").replace("{}", ""))
    return _brace_arguments(_brace_arguments(_unwrap_text(text), "\\frac"), "\\binom")


def _undressed(text: str) -> str:
    """Without the punctuation, braces and introductions around the answer."""
    text = text.strip(_EDGE).rstrip(".").removesuffix("\\\\")
    if text.startswith(".") and not text[1:2].isdigit():
        text = text[1:]
    if text.startswith("{") and "," not in text and closing_brace(text, 0) == len(text) - 1:
        text = text[1:-1]
    return _PREFIX.sub("", text, count=1) if _PREFIX.match(text) else text


def normalise(text: str) -> str:
    """The canonical spelling of an answer or a gold.

    Idempotent: the result is a text that one more pass leaves as it is, or, where the passes come to no end, `text`.
    """
    return _remembered(text) if len(text) <= _MOST_REMEMBERED_CHARS else _normalise(text)


def _normalise(text: str) -> str:
    spelling = text
    for _ in range(_MOST_PASSES):
        before, spelling = spelling, _pass(spelling)
        if spelling == before:
            return spelling
    return text


def _pass(text: str) -> str:
    if not text.isascii():
        text = _SHIFTED_RUN.sub(_shifted, text).translate(_UNICODE)
    if "\\" in text or "{" in text:
        text = _latex(text)
    if "." in text:
        text = _MODULE.sub("", re.sub(r"\.{3,}", r"\\ldots ", text))
        text = _BRACKETED_PERIOD.sub(r"\1\\overline{\2}", text)
    if "^" in text:
        text = _LETTER_DEGREE.sub(r"^\\circ ", _LETTER_TIMES.sub(r"\\times ", text))
    text = _undressed(" ".join(text.replace("$", " ").replace("~", " ").split()))
    for pattern, bracket in _OUTWARD if "[" in text or "]" in text else ():
        text = pattern.sub(bracket, text)
    spaced = _SPACED_NUMBER.match(text)
    return text if spaced is None else spaced.group().replace(" ", "") + text[spaced.end() :]


_remembered = lru_cache(maxsize=8192)(_normalise)
