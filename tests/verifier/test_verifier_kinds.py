"""Properties of every kind of answer: spellings of one value agree, and another value does not."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from maspo_rl.types import Label
from maspo_rl.verifier.judge import Judgement, judge, quick
from maspo_rl.verifier.normalise import normalise

small = st.integers(-50, 50)
nonzero = small.filter(bool)
natural = st.integers(1, 10**12)


def agrees(answer: str, gold: str) -> bool:
    result = judge(answer, gold)
    assert result.label in (Label.CORRECT, Label.WRONG), result
    return result.label is Label.CORRECT


def fraction_text(value: Fraction) -> str:
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


@given(natural, st.sampled_from([",", "{,}", ",\\!", "\\,", " ", "\\ ", "，"]))
def test_thousands(number: int, separator: str) -> None:
    spelt = f"{number:,}".replace(",", separator)
    assert agrees(spelt, str(number))
    assert agrees(str(number), spelt)
    assert not agrees(spelt, str(number + 1))


@given(st.integers(1, 999), st.integers(100, 999))
def test_a_list_of_two_is_no_number(first: int, second: int) -> None:
    assert not agrees(f"{first}, {second}", f"{first}{second}")


@given(small, st.integers(1, 40))
def test_fractions(numerator: int, denominator: int) -> None:
    value = Fraction(numerator, denominator)
    gold = fraction_text(value)
    for spelt in (f"{numerator}/{denominator}", f"\\dfrac{{{numerator}}}{{{denominator}}}", f"\\left({gold}\\right)"):
        assert agrees(spelt, gold)
    assert not agrees(f"{numerator + 1}/{denominator}", gold)


@given(st.integers(1, 30), st.integers(1, 20), st.integers(2, 21))
def test_mixed_numbers(whole: int, numerator: int, denominator: int) -> None:
    assume(numerator < denominator)
    gold = fraction_text(Fraction(whole * denominator + numerator, denominator))
    assert agrees(f"{whole}\\frac{{{numerator}}}{{{denominator}}}", gold)
    assert agrees(f"{whole} {numerator}/{denominator}", gold)
    assert not agrees(f"{whole} {numerator}/{denominator}", str(whole))


@given(st.integers(0, 99), st.integers(1, 3), st.integers(0, 999))
def test_repeating_decimals(start: int, digits: int, period: int) -> None:
    block = f"{period % 10**digits:0{digits}}"
    value = Fraction(start, 100) + Fraction(int(block), 100 * (10**digits - 1))
    spelt = f"0.{start:02}\\overline{{{block}}}"
    assert agrees(spelt, fraction_text(value))
    assert not agrees(spelt, fraction_text(value + Fraction(1, 1000)))


@given(st.integers(-(10**6), 10**6), st.integers(0, 4))
def test_unicode(number: int, decimals: int) -> None:
    spelt = str(Decimal(number).scaleb(-decimals))
    wide = spelt.translate({ord(plain): ord(plain) + 0xFEE0 for plain in "0123456789."}).replace("-", "−")
    assert agrees(wide, spelt)
    assert not agrees(wide, str(number * 10 + 1))


@given(st.integers(2, 60), st.integers(2, 9))
def test_unicode_roots_and_powers(inside: int, power: int) -> None:
    raised = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    assert agrees(f"x{raised} − 2√{inside}", f"x^{{{power}}}-2\\sqrt{{{inside}}}")
    assert not agrees(f"x{raised} − 2√{inside}", f"x^{{{power}}}-2\\sqrt{{{inside + 1}}}")


@given(st.integers(1, 9999), st.integers(-30, 40))
def test_scientific(mantissa: int, exponent: int) -> None:
    """A number three times, or a thousandth, as large differs at any magnitude."""
    short = f"{mantissa / 1000:.3f}e{exponent}"
    long = f"{mantissa / 1000:.3f} \\times 10^{{{exponent}}}"
    assert agrees(long, short)
    assert agrees(short, long)
    assert not agrees(f"{3 * mantissa / 1000:.3f} \\times 10^{{{exponent}}}", short)
    assert not agrees(f"{(mantissa + 1) / 1000:.3f} \\cdot 10^{{{exponent}}}", short)


@given(st.integers(1, 999))
def test_percent(tenths: int) -> None:
    spelt = f"{tenths / 10:g}"
    for other in (spelt, f"{spelt}\\%", f"{spelt} percent", f"{spelt} \\text{{percent}}", f"{tenths / 1000:g}"):
        assert agrees(other, f"{spelt}\\%")
    assert not agrees(f"{(tenths + 1) / 10:g}\\%", f"{spelt}\\%")


@given(st.integers(1, 359))
def test_degrees(angle: int) -> None:
    radians = f"\\frac{{{angle}\\pi}}{{180}}"
    for other in (str(angle), f"{angle}°", f"{angle}^\\circ", f"{angle}^{{\\circ}}", f"{angle} degrees", radians):
        assert agrees(other, f"{angle}^\\circ")
    assert not agrees(f"{angle + 1}^\\circ", f"{angle}^\\circ")


@given(
    st.integers(1, 10**4), st.sampled_from(["cm", "kg", "hours", "km/h", "cm^2", "square feet", "apples", "个", "元"])
)
def test_units(number: int, unit: str) -> None:
    gold = f"{number} \\text{{ {unit}}}"
    for other in (str(number), f"{number} {unit}", f"{number}\\mathrm{{~{unit}}}", f"{number}\\mbox{{ {unit}}}"):
        assert agrees(other, gold), other
    assert not agrees(f"{number + 1} \\text{{ {unit}}}", gold)


def test_two_different_units_contradict_each_other() -> None:
    assert not agrees("5 \\text{ km}", "5 \\text{ m}")
    assert agrees("5 \\text{ km}", "5000 \\text{ m}")
    assert agrees("90 \\text{ minutes}", "1.5 \\text{ hours}")
    assert not agrees("5 \\text{ km}", "5 \\text{ km}^2")


@given(st.integers(1, 999), st.sampled_from([("dozen", 12), ("hundred", 100), ("thousand", 10**3), ("million", 10**6)]))
def test_words_for_powers_of_ten(tenths: int, word: tuple[str, int]) -> None:
    name, factor = word
    for spelt in (
        f"{tenths / 10:g} \\text{{ {name}}}",
        f"{tenths / 10:g} {name} dollars",
        f"\\${tenths / 10:g} {name}",
    ):
        assert agrees(spelt, f"{tenths * factor / 10:.15g}")
        assert not agrees(spelt, f"{tenths / 10:g}")


@given(st.integers(2, 99), st.sampled_from(["m/s", "m/s^2", "L", "g/L", "m^3"]))
def test_units_of_one_letter(number: int, unit: str) -> None:
    assert agrees(f"{number} {unit}", str(number))
    assert agrees(f"{number} {unit}", f"{number} \\text{{ {unit}}}")
    assert not agrees(f"{number + 1} {unit}", str(number))
    assert not agrees(f"{number}m/s", f"{number} \\text{{ m}}")


@given(st.integers(1, 12), st.integers(0, 59), st.sampled_from("ap"), st.sampled_from("ap"))
def test_times_of_day(hour: int, minute: int, half: str, other: str) -> None:
    clock = f"{hour}:{minute:02}"
    gold = f"\\text{{{clock} {half}.m.}}"
    for spelt in (
        "{} {}.m.",
        "{} \\text{{ {}M}}",
        "{}{}m",
        "{}\\,\\mathrm{{{}.M.}}",
        "{}~\\text{{{}.m.}}.",
        "{} {}. m.",
    ):
        assert agrees(spelt.format(clock, half), gold)
        assert agrees(spelt.format(clock, half), spelt.format(clock, other)) == (half == other)
        assert not agrees(spelt.format(f"{hour}:{(minute + 1) % 60:02}", half), gold)
    assert agrees(clock, gold)
    assert agrees(gold, clock)
    afternoon = f"{hour % 12 + 12}:{minute:02}"
    assert agrees(afternoon, gold) == (half == "p" or hour == 12)
    assert agrees(f"{hour} \\text{{ {half}.m.}}", gold) == (minute == 0)
    for no_time in (f"{60 * hour + minute}", f"\\frac{{{hour}}}{{{minute + 1}}}", "x", f"{clock}, 99", f"{hour}:60"):
        assert not agrees(no_time, gold)


@given(st.integers(1, 12), st.integers(1, 59), st.integers(2, 4))
def test_a_ratio_is_no_time_of_day(hour: int, minute: int, factor: int) -> None:
    assert not agrees(f"{hour}:{minute:02}", f"{hour + 12}:{minute:02}")
    assert not agrees(f"{factor * hour}:{factor * minute:02}", f"{hour}:{minute:02}")
    assert not agrees("2", "2am")
    assert agrees("2 m a", "2am")


@given(st.integers(1, 10**5))
def test_currency(cents: int) -> None:
    amount = f"{cents / 100:,.2f}"
    for spelt in (f"\\${amount}", f"${amount}", f"€{amount}", f"{amount} dollars"):
        assert agrees(spelt, f"{cents / 100:.2f}")
    assert not agrees(f"\\${amount}", f"{(cents + 1) / 100:.2f}")


@given(st.lists(small, min_size=2, max_size=6, unique=True))
def test_lists_are_unordered_and_tuples_are_not(items: list[int]) -> None:
    shuffled = items[1:] + items[:1]
    plain, turned = ", ".join(map(str, items)), ", ".join(map(str, shuffled))
    assert agrees(turned, plain)
    assert agrees(f"\\{{{turned}\\}}", plain)
    assert agrees(f"{', '.join(map(str, shuffled[:-1]))} \\text{{ and }} {shuffled[-1]}", plain)
    assert agrees(f"({plain})", f"({plain})")
    assert not agrees(f"({turned})", f"({plain})")
    assert not agrees(f"\\{{{plain}\\}}", f"({plain})")
    assert not agrees(plain, f"{plain}, 99")
    for item in items:
        assert not agrees(plain, str(item))
        assert not agrees(plain.replace(", ", " or "), str(item))


@given(small, st.integers(1, 50), st.booleans(), st.booleans())
def test_intervals_and_inequalities(low: int, width: int, low_closed: bool, high_closed: bool) -> None:
    high = low + width
    interval = f"{'[' if low_closed else '('}{low},{high}{']' if high_closed else ')'}"
    below, above = "\\le" if low_closed else "<", "\\leq" if high_closed else "<"
    inequality = f"{low} {below} x {above} {high}"
    assert agrees(inequality, interval)
    assert agrees(interval, inequality)
    assert agrees(f"x \\in {interval}", interval)
    other = f"{'(' if low_closed else '['}{low},{high}{']' if high_closed else ')'}"
    assert not agrees(other, interval)
    assert not agrees(inequality.replace(f" {high}", f" {high + 1}"), interval)
    assert not agrees(str(low), interval)


@given(small)
def test_rays(bound: int) -> None:
    assert agrees(f"({bound}, \\infty)", f"x > {bound}")
    assert agrees(f"{bound} < x", f"({bound}, +\\infty)")
    assert not agrees(f"x < {bound}", f"x > {bound}")
    assert not agrees(f"x \\ge {bound}", f"({bound}, \\infty)")
    assert not agrees("\\mathbb{R}", f"x > {bound}")


@given(nonzero, nonzero, small, st.integers(2, 9))
def test_equations_up_to_a_factor(a: int, b: int, c: int, factor: int) -> None:
    assume(c)
    gold = f"{a}x+{b}y+{c}=0"
    assert agrees(f"{-factor * a}x+{-factor * b}y+{-factor * c}=0", gold)
    assert agrees(f"{a}x+{b}y={-c}", gold)
    assert not agrees(f"{a}x+{b}y+{c + 1}=0", gold)
    assert not agrees(f"{a}x+{b}y+{c}", gold)


@given(small)
def test_assignments(value: int) -> None:
    assert agrees(f"x = {value}", str(value))
    assert agrees(str(value), f"x={value}")
    assert agrees(f"f(n) = {value}", f"f(n)={value}")
    assert not agrees(f"y = {value}", f"x = {value}")
    assert not agrees(f"{value - 1} = {value}", str(value))
    assert not agrees(f"{value - 1} = {value + 1} = {value}", str(value))


@given(small, small, small)
def test_polynomials_expanded_and_factored(a: int, b: int, c: int) -> None:
    factored = f"({a}x+{b})(x-{c})".replace("--", "+").replace("+-", "-")
    expanded = f"{a}x^2+{b - a * c}x+{-b * c}".replace("+-", "-")
    assert agrees(factored, expanded)
    assert not agrees(factored, f"{expanded}+1")
    assert not agrees(factored.replace("x", "y"), expanded) or a == b == 0 or (a == 0 and b == 0)


@given(st.integers(2, 200), st.integers(2, 9))
def test_surds(inside: int, outside: int) -> None:
    assert agrees(f"{outside}\\sqrt{{{inside}}}", f"\\sqrt{{{outside * outside * inside}}}")
    assert agrees(f"\\frac{{1}}{{\\sqrt{{{inside}}}}}", f"\\frac{{\\sqrt{{{inside}}}}}{{{inside}}}")
    assert not agrees(f"{outside}\\sqrt{{{inside}}}", f"\\sqrt{{{outside * outside * inside + 1}}}")


@given(small, nonzero)
def test_complex_numbers(real: int, imaginary: int) -> None:
    assert agrees(f"{imaginary}i+{real}", f"{real}+{imaginary}i".replace("+-", "-"))
    assert not agrees(f"{real}-({imaginary})i", f"{real}+({imaginary})i")
    assert not agrees(str(real), f"{real}+({imaginary})i")


@given(small, st.integers(2, 50))
def test_plus_minus(middle: int, spread: int) -> None:
    gold = f"{middle} \\pm \\sqrt{{{spread}}}"
    assert agrees(f"{middle}-\\sqrt{{{spread}}}, {middle}+\\sqrt{{{spread}}}", gold)
    assert not agrees(f"{middle}+\\sqrt{{{spread}}}", gold)
    assert not agrees(gold, f"{middle}+\\sqrt{{{spread}}}")


@given(st.lists(small, min_size=4, max_size=4))
def test_matrices(cells: list[int]) -> None:
    a, b, c, d = cells
    gold = f"\\begin{{pmatrix}}{a}&{b}\\\\{c}&{d}\\end{{pmatrix}}"
    assert agrees(f"\\begin{{bmatrix}} {a} & {b} \\\\ {c} & {d} \\\\ \\end{{bmatrix}}", gold)
    assert not agrees(f"\\begin{{pmatrix}}{a}&{b}\\\\{c}&{d + 1}\\end{{pmatrix}}", gold)
    assert not agrees(f"\\begin{{pmatrix}}{a}&{b}&{c}&{d}\\end{{pmatrix}}", gold)


@given(st.integers(1, 10**5), st.sampled_from([(2, 3), (5, 7), (8, 9)]))
def test_bases(number: int, bases: tuple[int, int]) -> None:
    digits = str(number).translate(str.maketrans("23456789", "10101010"))
    first, second = bases
    assert agrees(f"{digits}_{{{first}}}", f"{digits}_{first}")
    assert not agrees(f"{digits}_{second}", f"{digits}_{first}")
    assert not agrees(f"{digits}1_{first}", f"{digits}_{first}")


@given(st.permutations("silent"))
def test_words_are_not_products_of_letters(letters: list[str]) -> None:
    word = "".join(letters)
    assert agrees(word, "\\text{silent}") == (word == "silent")
    assert agrees(f"\\text{{{word.capitalize()}}}", "silent") == (word == "silent")


@given(st.sampled_from("ABCDE"), st.sampled_from("ABCDE"))
def test_options(given_letter: str, gold: str) -> None:
    for spelt in ("{}", "({})", "\\text{{{}}}", "\\textbf{{({})}}\\ 12", "{}: text", "\\mathrm{{{}}}", "option {}"):
        assert agrees(spelt.format(given_letter), gold) == (given_letter == gold)
        assert agrees(spelt.format(given_letter), f"\\text{{({gold})}}") == (given_letter == gold)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("\\sum_{k=1}^{100} k", "5050"),
        ("\\int_0^1 x^2 dx", "\\frac{1}{3}"),
        ("\\lim_{x \\to 0} \\frac{\\sin x}{x}", "1"),
        ("\\prod_{k=1}^{5} k", "120"),
        ("\\gcd(84,36)", "12"),
        ("\\operatorname{lcm}(4,6)", "12"),
        ("17 \\mod 5", "2"),
        ("17+25", "42"),
        ("6 \\cdot 7", "42"),
        ("50-8", "42"),
        ("\\max(3, 42)", "42"),
    ],
)
def test_the_question_is_not_its_answer(answer: str, gold: str) -> None:
    assert not agrees(answer, gold)


@pytest.mark.parametrize("answer", ["\\frac{0}{0}", "\\frac{1}{0}", "?", "\\text{nan}", "\\infty - \\infty", "0^{-1}"])
def test_what_has_no_value_equals_nothing(answer: str) -> None:
    assert not agrees(answer, "5")


@given(st.integers(60, 400))
def test_tiny_and_huge_values_differ(power: int) -> None:
    assert not agrees(f"2^{{-{power}}}", f"2^{{-{power + 1}}}")
    assert not agrees(f"\\frac{{1}}{{{power}!}}", f"\\frac{{1}}{{{power + 1}!}}")
    assert not agrees(f"10^{{{power}}}+1", f"10^{{{power}}}")
    assert not agrees("0", f"2^{{-{power}}}")


@given(st.integers(2, 10**6).filter(lambda number: int(number**0.5) ** 2 != number))
def test_decimals_stand_for_a_value_only_when_rounded_rightly_to_six_places(number: int) -> None:
    root = f"\\sqrt{{{number}}}"
    assert agrees(f"{number**0.5:.9f}", root)
    assert not agrees(f"{number**0.5 + 3e-9:.9f}", root)
    assert not agrees(f"{number**0.5:.2f}", root)


numbers = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.decimals(-1000, 1000, places=3).map(str),
    st.tuples(small, st.integers(1, 50)).map(lambda pair: f"\\frac{{{pair[0]}}}{{{pair[1]}}}"),
    st.tuples(st.integers(0, 50), st.integers(1, 50)).map(lambda pair: f"{pair[0]}/{pair[1]}"),
    st.sampled_from(
        ["0.333333", "1/3", "0.30000000000000004", "0.3", "3/10", "0", "-0", "1,234", "1234.0", "+7", "7."]
    ),
)


@given(numbers, numbers)
def test_the_fast_path_says_what_the_full_judgement_says(answer: str, gold: str) -> None:
    fast = quick(answer, gold)
    if fast is not None:
        assert Judgement(answer, gold).result().label is fast.label


PIECES = [
    *"0123456789abxEeio+-*/^_={}()[]<>|,.;:'\"~!?%$&#\\ \n",
    *(
        "\\frac",
        "\\dfrac",
        "\\text{",
        "\\mathrm{",
        "\\left",
        "\\right.",
        "\\!",
        "\\,",
        "\\ ",
        "\\\\",
        "\\boxed{",
        "\\sqrt",
    ),
    *(
        "\\sinx",
        "\\circ",
        "\\begin{pmatrix}",
        "{,}",
        "{or}",
        "{}",
        "or",
        "the answer is ",
        "Answer:",
        "np.",
        "...",
        "0.(3)",
    ),
    *("½", "，", "²", "₂", "π", "∛", "°", "\u200b", "＼", "100 000", " x 10^"),
]


@given(st.one_of(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.text(max_size=25)))
@example("1{{}}")
@example("\\\\" * 40)
def test_normalisation_is_idempotent(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


def test_a_raised_digit_after_a_brace_is_a_power() -> None:
    assert not agrees("\\sqrt{2}²", "\\sqrt{22}")
    assert agrees("\\sqrt{3}⁴", "9")


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("1000,99", "1000.99"),
        ("100,200", "100, 200"),
        ("100,200", "100200"),
        ("0.333...", "\\frac{1}{3}"),
        ("0.1(6)", "\\frac{1}{6}"),
        ("0.1212\\ldots", "\\frac{4}{33}"),
        ("6.02 x 10^23", "6.02e23"),
        ("4.5 × 10³³", "4.5e33"),
        ("20^\\circ\\text{C}", "20"),
        ("\\text{12 cm}", "12"),
        ("3\\pi \\approx 9.42", "3\\pi"),
        ("x = 2 + 3 = 5", "5"),
        ("\\{5\\}", "5"),
        ("(x,y) = (1,2)", "(1,2)"),
        ("x = 3, y = 5", "(3,5)"),
        ("x = 1 \\text{ or } x = -2", "\\{1,-2\\}"),
        ("x>1 \\text{ and } x<3", "(1,3)"),
        ("x<1 \\text{ or } x>3", "(-\\infty,1)\\cup(3,\\infty)"),
        ("\\mathbb{R} \\setminus \\{0\\}", "x \\ne 0"),
        ("\\text{all real numbers}", "\\mathbb{R}"),
        ("\\text{no solution}", "\\emptyset"),
        ("1001_{\\text{two}}", "1001_2"),
        ("\\left[\\begin{array}{cc}1&2\\\\3&4\\end{array}\\right]", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"),
        ("x y = 1", "y = \\frac{1}{x}"),
        ("-x > -1", "x < 1"),
        ("7*sin(pi*x/5)+1", "7\\sin\\left(\\frac{\\pi x}{5}\\right)+1"),
        ("np.arcsin(10/13)", "\\sin^{-1}\\left(\\frac{10}{13}\\right)"),
        ("\\log_2 8", "3"),
        ("\\frac{d x}{d t}=k x-a", "\\frac{dx}{dt} = kx - a"),
        ("\\sinx", "\\sin x"),
        ("\\begin{pmatrix}4\\-3\\end{pmatrix}", "\\begin{pmatrix}4\\\\-3\\end{pmatrix}"),
        (
            "\\begin{pmatrix}1&\\phantom{-}2\\\\-3&\\phantom -4\\end{pmatrix}",
            "\\begin{pmatrix}1&2\\\\-3&4\\end{pmatrix}",
        ),
        ("3万", "30000"),
        ("33\\frac{1}{3}\\%", "\\frac{1}{3}"),
        ("1,234 1/2", "1234.5"),
        ("]0,1[", "(0,1)"),
        ("]-\\infty, 0] \\cup [1, 2[", "x \\le 0 \\text{ or } 1 \\le x < 2"),
        ("5 = x", "5"),
        ("{5 \\choose 2}", "10"),
        ("{x+1 \\over 2}", "\\frac{x+1}{2}"),
        ("f^{-1}(x) = x-1", "x-1"),
        ("\\text{B and C}", "C, B"),
        ("\\sqrt[3]{-8}", "-2"),
        ("\\frac{\\log 2}{\\log 2-\\log 3}", "\\frac{1}{1-\\log_2 3}"),
        ("\\binom{2n}{n}", "\\frac{(2n)!}{n!n!}"),
        ("e^{i\\pi/3}", "\\frac{1}{2}+\\frac{\\sqrt{3}}{2}i"),
    ],
)
def test_other_spellings_of_one_answer(answer: str, gold: str) -> None:
    assert agrees(answer, gold)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("11 6/6", "11"),
        ("10^2\\frac{1}{3}", "10^{7/3}"),
        ("]0,1]", "(0,1)"),
        ("2x = y", "2x = z"),
        ("11 6/6", "12"),
        ("1, 2, 3, ...", "1, 2, 3"),
        ("5?", "5"),
        ("\\text{5 or 6}", "5"),
        ("5 \\text{(or 6)}", "5"),
        ("5 \\pm 100", "5"),
        ("[1,100]", "50"),
        ("x = 5, y = 5", "5"),
        ("3\\pi \\approx 5", "3\\pi"),
        ("2x = 10", "5"),
        ("12:00", "1:00"),
        ("16:30", "4:30"),
        ("I(0) e^{-\\frac{t}{RC}}", "I(0)"),
        ("\\frac{v}{t}", "\\frac{dv}{dt}"),
        ("4\\sqrt(2)", "4"),
        ("|x|", "x"),
        ("\\sqrt{x^2}", "x"),
        ("2^{61}-1", "0"),
        ("2305843009213693951", "0"),
        ("x^2+y^2=2", "y^2=1-x^2"),
        ("p=5,q=3;p=7,q=2", "p=5,q=2;p=7,q=3"),
        ("100, 200", "100200"),
    ],
)
def test_what_only_looks_like_the_answer(answer: str, gold: str) -> None:
    assert not agrees(answer, gold)
