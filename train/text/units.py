"""Units, and the calendar: lengths, weights, times, sizes of memory, days, months, leap years."""

import datetime
from random import Random

from .conversation import Exchange, assistant, user
from .grammar import fill, held_pair, pick, split
from .noise import noisy

_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTHS = "January February March April May June July August September October November December".split()
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

# One of the first is so many of the second.
_UNITS = [
    ("kilometre", "metre", 1000), ("metre", "centimetre", 100), ("centimetre", "millimetre", 10), ("metre", "millimetre", 1000), ("kilogram", "gram", 1000), ("gram", "milligram", 1000),
    ("tonne", "kilogram", 1000), ("litre", "millilitre", 1000), ("hour", "minute", 60), ("minute", "second", 60), ("day", "hour", 24), ("week", "day", 7), ("year", "month", 12), ("dozen", "piece", 12),
    ("foot", "inch", 12), ("yard", "foot", 3), ("KiB", "byte", 1024), ("MiB", "KiB", 1024), ("GiB", "MiB", 1024), ("kB", "byte", 1000), ("MB", "kB", 1000), ("GB", "MB", 1000), ("byte", "bit", 8),
    ("century", "year", 100), ("decade", "year", 10), ("euro", "cent", 100), ("dollar", "cent", 100), ("hour", "second", 3600), ("day", "minute", 1440), ("minute", "millisecond", 60000), ("second", "millisecond", 1000),
]  # fmt: skip
_PLURAL = {"foot": "feet", "inch": "inches", "century": "centuries", "KiB": "KiB", "MiB": "MiB", "GiB": "GiB", "kB": "kB", "MB": "MB", "GB": "GB", "dozen": "dozen"}


def plural(unit: str, n: int) -> str:
    """The unit after a number."""
    return unit if n == 1 else _PLURAL.get(unit, unit + "s")


_CONVERT = split([
    "how many <b> are <a>?", "how many <b> are in <a>?", "convert <a> to <b>", "<a> in <b>", "<a> to <b>", "what is <a> in <b>?", "how many <b> {has|have} <a>?", "turn <a> into <b>", "<a> is how many <b>?", "how much is <a> in <b>?",
    "give me <a> in <b>", "express <a> in <b>", "how many <b> make <a>?", "I have <a>. how many <b> is that?",
])  # fmt: skip


def convert(rng: Random) -> Exchange:
    """A length, weight, time or size in another unit."""
    large, small, factor = pick(rng, _UNITS)
    n = 1 if rng.random() < 0.3 else rng.randint(2, 12) if factor in (24, 60, 12, 7, 1024, 3600, 1440, 60000) else rng.randint(2, 99)
    if rng.random() < 0.7:
        a, b, result = f"{n} {plural(large, n)}", plural(small, 2), f"{n} {plural(large, n)} {'is' if n == 1 else 'are'} {n * factor} {plural(small, 2)}."
    else:
        a, b = f"{n * factor} {plural(small, 2)}", plural(large, 2)
        result = f"{n * factor} {plural(small, 2)} are {n} {plural(large, n)}."
    question = noisy(rng, fill(pick(rng, _CONVERT[0]), rng, a="\x01", b=b)).replace("\x01", a)
    return Exchange("units", [user(question), assistant(result)])


_DATE_FRAMES = {
    "after day": ["what day {comes|is} after <d>?", "which day follows <d>?", "the day after <d>?", "if today is <d>, what is tomorrow?", "today is <d>. what day is tomorrow?", "what comes after <d>?", "tomorrow of <d>?"],
    "before day": ["what day {comes|is} before <d>?", "the day before <d>?", "if today is <d>, what was yesterday?", "today is <d>. what day was yesterday?", "which day is before <d>?", "what comes before <d>?"],
    "days later": ["if today is <d>, {what|which} day is it in <n> days?", "what day is <n> days after <d>?", "<n> days after <d>?", "today is <d>. what day will it be in <n> days?", "which weekday is <n> days after <d>?"],
    "after month": ["what month {comes|is} after <m>?", "which month follows <m>?", "the month after <m>?", "what comes after <m>?"],
    "before month": ["what month {comes|is} before <m>?", "the month before <m>?", "which month is before <m>?"],
    "month length": ["how many days {has|are in|does} <m>{ have|}?", "how long is <m>?", "number of days in <m>?", "days in <m>?", "how many days are there in <m>?"],
    "month number": ["which month is number <n>?", "what is the <o> month{ of the year|}?", "month number <n>?", "the <o> month?"],
    "leap": ["is <y> a leap year?", "was <y> a leap year?", "leap year <y>?", "does <y> have 366 days?", "how many days {has|had|does} <y>{ have|}?"],
    "date after": ["what date is <n> days after <t>?", "which date is <n> days after <t>?", "<n> days after <t>?", "what is the date <n> days after <t>?", "add <n> days to <t>", "today is <t>. what date is it in <n> days?"],
    "weekday list": ["name the days of the week", "what are the days of the week?", "list the {weekdays|days of the week}", "which days does a week have?", "days of the week?"],
    "month list": ["name the months", "what are the months of the year?", "list the months{ of the year|}", "which months are there?", "all months, please"],
}  # fmt: skip
_DATE_SPLIT = {k: split(v) for k, v in _DATE_FRAMES.items()}
_DATE_KINDS = tuple(k for k in _DATE_FRAMES for _ in range(3 if k in ("days later", "date after", "leap", "month length") else 1))


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd and so on."""
    end = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{end}"


def is_leap(year: int) -> bool:
    """Whether a year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _date(rng: Random, kind: str) -> tuple[dict[str, str], str]:
    d, m = rng.randrange(7), rng.randrange(12)
    if kind == "after day":
        return {"d": _DAYS[d]}, f"{_DAYS[(d + 1) % 7]}."
    if kind == "before day":
        return {"d": _DAYS[d]}, f"{_DAYS[(d - 1) % 7]}."
    if kind == "days later":
        n = rng.randint(2, 21)
        left = n % 7
        steps = f"{n} days are {n // 7} {'week' if n // 7 == 1 else 'weeks'} and {left} {'day' if left == 1 else 'days'}" if n > 6 else ""
        if left == 0:
            return {"d": _DAYS[d], "n": str(n)}, f"{steps}: {_DAYS[d]}."
        walk = ", ".join(f"{i} {_DAYS[(d + i) % 7]}" for i in range(left + 1))
        return {"d": _DAYS[d], "n": str(n)}, f"{steps}{'. ' if steps else ''}{walk}: {_DAYS[(d + n) % 7]}."
    if kind == "after month":
        return {"m": _MONTHS[m]}, f"{_MONTHS[(m + 1) % 12]}."
    if kind == "before month":
        return {"m": _MONTHS[m]}, f"{_MONTHS[(m - 1) % 12]}."
    if kind == "month length":
        return {"m": _MONTHS[m]}, "February has 28 days, and 29 in a leap year." if m == 1 else f"{_MONTHS[m]} has {_LENGTHS[m]} days."
    if kind == "month number":
        return {"n": str(m + 1), "o": ordinal(m + 1)}, f"{_MONTHS[m]}."
    if kind == "leap":
        y = rng.randint(1890, 2110)
        if rng.random() < 0.2:
            y = pick(rng, (1800, 1900, 2000, 2100, 1600, 2400))
        # The last two digits decide, or the first two where the last are 00.
        digits, rest = (y // 100, "ends in 00") if y % 100 == 0 else (y % 100, f"ends in {y % 100:02d}")
        steps = f"{y} {rest}, and {digits} = 4 * {digits // 4} + {digits % 4}"
        return {"y": str(y)}, f"{steps}: {'a leap year' if is_leap(y) else 'no leap year'}, {366 if is_leap(y) else 365} days."
    if kind == "date after":
        start = datetime.date(2023, 1, 1) + datetime.timedelta(days=rng.randrange(1400))
        n = rng.randint(2, 40)
        end = start + datetime.timedelta(days=n)
        # Months are taken off the sum of the days, one after the other.
        steps, days, month, year = [f"{start.day} + {n} = {start.day + n}"], start.day + n, start.month, start.year
        while days > (length := _LENGTHS[month - 1] + (month == 2 and is_leap(year))):
            steps.append(f"{_MONTHS[month - 1]}{f' {year}' if month == 2 else ''} has {length} days, {days} - {length} = {days - length}")
            days, month, year = days - length, month % 12 + 1, year + (month == 12)
        return {"n": str(n), "t": f"{start.day} {_MONTHS[start.month - 1]} {start.year}"}, f"{'; '.join(steps)}: {end.day} {_MONTHS[end.month - 1]} {end.year}."
    if kind == "weekday list":
        return {}, ", ".join(_DAYS) + "."
    return {}, ", ".join(_MONTHS) + "."


_MARKS = {"d": "\x01", "n": "\x02", "m": "\x03", "o": "\x04", "y": "\x05", "t": "\x06"}


def _ask(rng: Random, template: str, values: dict[str, str]) -> str:
    question = noisy(rng, fill(template, rng, **_MARKS))
    lower = rng.random() < 0.4
    for name, value in values.items():
        question = question.replace(_MARKS[name], value.lower() if lower else value)
    return question


def date(rng: Random) -> Exchange:
    """A question about days, months and dates."""
    while True:
        kind = pick(rng, _DATE_KINDS)
        values, answer = _date(rng, kind)
        if kind not in ("days later", "date after", "leap") or not held_pair(kind, *values.values()):
            return Exchange("calendar", [user(_ask(rng, pick(rng, _DATE_SPLIT[kind][0]), values)), assistant(answer)])


def held(rng: Random, count: int) -> list[Exchange]:
    """Questions of the calendar for the trained model."""
    out: list[Exchange] = []
    while len(out) < count:
        kind = pick(rng, ("days later", "date after", "leap"))
        values, answer = _date(rng, kind)
        if held_pair(kind, *values.values()):
            out.append(Exchange("calendar", [user(_ask(rng, pick(rng, _DATE_SPLIT[kind][0]), values)), assistant(answer)], exact=answer, held="pair"))
    return out
