"""One spelling for the many ways to write the same answer: unicode, LaTeX dress, separators, wrappers.

String level only; what the symbols mean is the business of `tokens` and `structure`. Linear in the length of the text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from maspo_rl.verifier.extract import closing_brace

_SUPER, _SUB = "\ue000", "\ue001"


def _unicode_table() -> dict[int, str]:
    table: dict[str, str] = {
        "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "－": "-", "×": "\\times ", "✕": "\\times ", "÷": "\\div ",
        "·": "\\cdot ", "⋅": "\\cdot ", "∙": "\\cdot ", "•": "\\cdot ", "≤": "\\le ", "⩽": "\\le ", "≦": "\\le ",
        "≥": "\\ge ", "⩾": "\\ge ", "≧": "\\ge ", "≠": "\\ne ", "≈": "\\approx ", "∞": "\\infty ", "√": "\\sqrt ",
        "∛": "\\sqrt[3]", "∜": "\\sqrt[4]", "°": "^\\circ ", "º": "^\\circ ", "℃": "^\\circ ", "′": "'", "’": "'",
        "‘": "'", "“": '"', "”": '"', "″": "''", "∪": "\\cup ", "∩": "\\cap ", "∈": "\\in ", "∅": "\\emptyset ",
        "⌀": "\\emptyset ", "ℝ": "\\mathbb{R}", "ℤ": "\\mathbb{Z}", "ℕ": "\\mathbb{N}", "ℚ": "\\mathbb{Q}",
        "±": "\\pm ", "∓": "\\mp ", "∑": "\\sum ", "∫": "\\int ", "∏": "\\prod ", "⌊": "\\lfloor ", "⌋": "\\rfloor ",
        "⌈": "\\lceil ", "⌉": "\\rceil ", "∶": ":", "⁄": "/", "∕": "/", "∠": "\\angle ", "△": "\\triangle ",
        "、": ",", "。": ".", "｡": ".", "《": "", "》": "", "【": "[", "】": "]", "％": "%", "﹪": "%", "‰": "‰",
        "€": "", "£": "", "¥": "", "￥": "", "₹": "", "＄": "", "…": "\\ldots ", "⋯": "\\ldots ", "→": "\\to ",
        "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u3000": " ", "\u200b": "", "\ufeff": "", "\u2061": "",
        "½": "\\frac{1}{2}", "⅓": "\\frac{1}{3}", "⅔": "\\frac{2}{3}", "¼": "\\frac{1}{4}", "¾": "\\frac{3}{4}",
        "⅕": "\\frac{1}{5}", "⅖": "\\frac{2}{5}", "⅗": "\\frac{3}{5}", "⅘": "\\frac{4}{5}", "⅙": "\\frac{1}{6}",
        "⅚": "\\frac{5}{6}", "⅐": "\\frac{1}{7}", "⅛": "\\frac{1}{8}", "⅜": "\\frac{3}{8}", "⅝": "\\frac{5}{8}",
        "⅞": "\\frac{7}{8}", "⅑": "\\frac{1}{9}", "⅒": "\\frac{1}{10}",
    }  # fmt: skip
    greek = [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "omicron",
        "pi",
        "rho",
    ]
    greek += ["sigma", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"]
    table |= {chr(0x3B1 + index): f"\\{name} " for index, name in enumerate(greek)}
    table |= {"Γ": "\\Gamma ", "Δ": "\\Delta ", "Θ": "\\Theta ", "Λ": "\\Lambda ", "Π": "\\Pi ", "Σ": "\\Sigma "}
    table |= {"Φ": "\\Phi ", "Ψ": "\\Psi ", "Ω": "\\Omega ", "ϕ": "\\phi ", "µ": "\\mu "}
    supers = zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣ", "0123456789+-=()nix", strict=True)
    table |= {raised: f"{_SUPER}{{{plain}}}" for raised, plain in supers}
    subs = zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙₓ", "0123456789+-=()nx", strict=True)
    table |= {lowered: f"{_SUB}{{{plain}}}" for lowered, plain in subs}
    wide = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    return {ord(key): value for key, value in (wide | table).items()}


_UNICODE = _unicode_table()

_COMMANDS = {
    "\\dfrac": "\\frac", "\\tfrac": "\\frac", "\\cfrac": "\\frac", "\\dbinom": "\\binom", "\\tbinom": "\\binom",
    "\\displaystyle": " ", "\\textstyle": " ", "\\limits": "", "\\left": "", "\\right": "", "\\middle": "",
    "\\big": "", "\\Big": "", "\\bigg": "", "\\Bigg": "", "\\bigl": "", "\\bigr": "", "\\Bigl": "", "\\Bigr": "",
    "\\biggl": "", "\\biggr": "", "\\Biggl": "", "\\Biggr": "", "\\lbrace": "\\{", "\\rbrace": "\\}",
    "\\leq": "\\le ", "\\leqslant": "\\le ", "\\leqq": "\\le ", "\\geq": "\\ge ", "\\geqslant": "\\ge ",
    "\\geqq": "\\ge ", "\\neq": "\\ne ", "\\lt": "<", "\\gt": ">", "\\quad": " ", "\\qquad": " ", "\\,": " ",
    "\\;": " ", "\\:": " ", "\\>": " ", "\\!": "", "\\ ": " ", "\\\n": " ", "\\$": "", "\\%": "%", "\\#": "#",
    "\\&": " \\text{and} ", "\\_": "_", "\\(": " ", "\\)": " ", "\\[": " ", "\\]": " ", "\\textbf": "\\text",
    "\\textrm": "\\text", "\\textit": "\\text", "\\textnormal": "\\text", "\\texttt": "\\text", "\\textsf": "\\text",
    "\\mathrm": "\\text", "\\mathbf": "\\text", "\\mathit": "\\text", "\\mathsf": "\\text", "\\mathtt": "\\text",
    "\\mbox": "\\text", "\\hbox": "\\text", "\\operatorname": "\\text", "\\boldsymbol": "\\text", "\\bm": "\\text",
    "\\mathnormal": "\\text", "\\emph": "\\text", "\\underline": "\\text", "\\rm": " ", "\\bf": " ",
    "\\ast": "*", "\\cdotp": "\\cdot ", "\\lvert": "|", "\\rvert": "|", "\\vert": "|", "\\mid": "|",
    "\\varnothing": "\\emptyset ", "\\dots": "\\ldots ", "\\cdots": "\\ldots ", "\\degree": "^\\circ ",
    "\\percent": "%", "\\land": " \\text{and} ", "\\wedge": " \\text{and} ", "\\lor": " \\text{or} ",
    "\\vee": " \\text{or} ", "\\arcsin": "\\asin ", "\\arccos": "\\acos ", "\\arctan": "\\atan ",
    "\\colon": ":", "\\imath": "i", "\\hfill": " ", "\\newline": " ", "\\nonumber": "", "\\euro": "", "\\pounds": "",
    "\\lbrack": "[", "\\rbrack": "]", "\\lparen": "(", "\\rparen": ")", "\\varphi": "\\phi ",
    "\\boxed": "",
    "\\fbox": "",
    "\\infinity": "\\infty ", "\\varepsilon": "\\epsilon ", "\\vartheta": "\\theta ",
}  # fmt: skip
_COMMAND = re.compile(r"\\(?:[a-zA-Z]+|.)", re.DOTALL)
_DOUBLE_ESCAPE = re.compile(r"\\\\(?=(?:d?frac|sqrt|text|pi|infty|cdot|times|left|right|le|ge|pm|cup|circ|begin)\b)")
_STANDALONE = frozenset(
    f"\\{name}"
    for name in (
        *("frac", "sqrt", "binom", "text", "begin", "end", "overline", "bar", "dot", "ddot", "hat", "vec", "mathbb"),
        *("cdot", "times", "div", "pm", "mp", "le", "ge", "ne", "in", "cup", "cap", "to", "circ", "prime", "approx"),
        *("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "sinh", "cosh", "tanh", "log", "ln", "exp"),
        *("pi", "theta", "alpha", "beta", "gamma", "delta", "lambda", "mu", "omega", "sigma", "rho", "tau", "phi"),
        *("psi", "eta", "zeta", "infty", "triangle", "angle", "emptyset", "lfloor", "rfloor", "lceil", "rceil"),
        *("sum", "int", "prod", "lim", "gcd", "lcm", "mod", "bmod", "pmod", "max", "min", "ldots"),
    )
)
_RUN_ON = frozenset(
    f"\\{name}"
    for name in (
        *("pi", "theta", "alpha", "beta", "omega", "sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "le", "leq"),
        *("ge", "geq", "ne", "neq", "cdot", "times", "pm", "triangle", "angle", "infty", "sqrt"),
    )
)
"""Commands that a text stripped of its spaces runs into the letters after them, `\\sinx`."""
_LOST_ROW_END = re.compile(r"(?<!\\)\\(?=[-\d])")
_ELLIPSIS = re.compile(r"\.{3,}")
_LETTER_TIMES = re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*\^)")
_LETTER_DEGREE = re.compile(r"(?<=\d)\s*\^\s*(?:o(?![a-zA-Z])|\{\s*o\s*\})")
_BRACKETED_PERIOD = re.compile(r"(?<![\w.])(\d*\.\d*)\((\d+)\)(?!\d)")
_BRACED_JOINT = re.compile(r"(?<!text)\{(or|and)\}")
_THIN_GROUP = re.compile(r"(?<=\d)(?:\\[,;: ]|~|\{,\}|\{\\,\})(?=\d{3}(?!\d))")
_SPACED_COMMA = re.compile(r",\\!\s*")
_DOT_AFTER_SIZE = re.compile(r"\\(?:left|right)\s*\.")
_SPACED_NUMBER = re.compile(r"[+-]?\d{1,3}(?: \d{3})+(?:\.\d+)?(?=$| \d+/\d+$)")
_PREFIXES = (
    "the final answer is",
    "the answer is",
    "final answer:",
    "answer:",
    "answer is",
    "答案是",
    "答案为",
    "答案:",
)
_EDGE = ' \t\n.,;:`"*_~'
_MODULE = re.compile(r"(?<![A-Za-z])(?:np|numpy|math|sympy|cmath)\.(?=[a-z])")
_MOST_REMEMBERED_CHARS = 256
_DIGIT = re.compile(r"\d")
_WORDLESS = re.compile(r"[\s\d.,:;%()\[\]+\-*/^=<>|!]*[A-Za-z]?[\s\d.,:;%()\[\]+\-*/^=<>|!]*")


def _command(match: re.Match[str]) -> str:
    """The canonical command; an unknown one that begins with a known one is that and the letters after it."""
    name = match.group()
    if name in _COMMANDS:
        return _COMMANDS[name]
    if name not in _STANDALONE:
        for length in range(min(len(name) - 1, 9), 2, -1):
            if name[:length] in _RUN_ON and len(name) - length <= 4:
                return f"{_COMMANDS.get(name[:length], name[:length])} {name[length:]}"
    return name


def _unwrap_text(text: str) -> str:
    """`\\text{...}` stays around words and goes around a number, a letter or an option."""
    pieces: list[str] = []
    position = 0
    while True:
        start = text.find("\\text", position)
        if start < 0:
            break
        brace = start + len("\\text")
        while brace < len(text) and text[brace] == " ":
            brace += 1
        end = closing_brace(text, brace) if brace < len(text) and text[brace] == "{" else -1
        pieces.append(text[position:start])
        if end < 0:
            position = start + len("\\text")
            continue
        content = text[brace + 1 : end].replace("~", " ")
        if "\\text" in content:
            content = _unwrap_text(content)
        if "\\" in content or "{" in content or _WORDLESS.fullmatch(content) or _DIGIT.search(content):
            pieces.append(f" {content} ")
        else:
            pieces.append(f" \\text{{{content.strip()}}} ")
        position = end + 1
    pieces.append(text[position:])
    return "".join(pieces)


def _brace_arguments(text: str, command: str, arguments: int) -> str:
    """TeX's short forms spelt out: `\\frac12` and `\\frac{1}2` become `\\frac{1}{2}`."""
    pieces = text.split(command)
    for index in range(1, len(pieces)):
        rest = pieces[index]
        if rest[:1].isalpha():
            continue
        taken = ""
        for _ in range(arguments):
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


def normalise(text: str) -> str:
    """The canonical spelling of an answer or a gold. Idempotent."""
    return _remembered(text) if len(text) <= _MOST_REMEMBERED_CHARS else _normalise(text)


def _normalise(text: str) -> str:  # noqa: PLR0912
    if not text.isascii():
        text = text.translate(_UNICODE)
        for mark, operator in ((_SUPER, "^"), (_SUB, "_")):
            text = text.replace("}" + mark + "{", "").replace(mark, operator)
    if "\\" in text or "{" in text:
        if "\\\\" in text and "\\begin" not in text:
            text = _DOUBLE_ESCAPE.sub(r"\\", text)
        text = _SPACED_COMMA.sub(",", text)
        text = _THIN_GROUP.sub("", text)
        text = _DOT_AFTER_SIZE.sub("", text)
        if "\\begin" in text:
            text = _LOST_ROW_END.sub(r"\\\\", text)
        text = _COMMAND.sub(_command, text)
        text = _BRACED_JOINT.sub(r" \1 ", text.replace("{,}", ",").replace("{}", ""))
        if "\\text" in text:
            text = _unwrap_text(text)
        if "\\frac" in text:
            text = _brace_arguments(text, "\\frac", 2)
        if "\\binom" in text:
            text = _brace_arguments(text, "\\binom", 2)
    if "." in text:
        text = _BRACKETED_PERIOD.sub(r"\1\\overline{\2}", _ELLIPSIS.sub(r"\\ldots ", _MODULE.sub("", text)))
    if "^" in text:
        text = _LETTER_DEGREE.sub(r"^\\circ ", _LETTER_TIMES.sub(r"\\times ", text))
    text = " ".join(text.replace("$", " ").replace("~", " ").split())
    before = None
    while before != text:
        before = text
        text = text.strip(_EDGE).removesuffix("\\\\")
        if text.startswith("{") and "," not in text and closing_brace(text, 0) == len(text) - 1:
            text = text[1:-1]
        lowered = text[:24].lower()
        for prefix in _PREFIXES:
            for wrapped in (prefix, f"\\text{{{prefix}}}"):
                if lowered.startswith(wrapped) and len(text) > len(wrapped):
                    text = text[len(wrapped) :]
                    break
    spaced = _SPACED_NUMBER.match(text)
    if spaced is None:
        return text
    return spaced.group().replace(" ", "") + text[spaced.end() :]


_remembered = lru_cache(maxsize=8192)(_normalise)
