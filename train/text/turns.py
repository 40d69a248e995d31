"""Conversations of several turns: subjects that change, and questions that lean on the last answer."""

from random import Random

from . import about, api, arithmetic, commands, concepts, errors, flags, general, lists, names, recipes, schema, smalltalk, stories, tools, units
from .conversation import Exchange, assistant, system, user
from .grammar import fill, literal, pick
from .noise import noisy

# Subjects and how often each is taken, in thousandths of exchanges.
SUBJECTS = [
    (flags.FACTS, 250), (flags.GENERAL, 16), (flags.has_flag, 40), (flags.unknown_flag, 26),
    (commands.FACTS, 95), (commands.GENERAL, 48),
    (recipes.write_line, 46), (recipes.explain_line, 24),
    (about.FACTS, 70), (concepts.FACTS, 56), (api.FACTS, 62), (api.GENERAL, 34), (errors.FACTS, 44),
    (smalltalk.FACTS, 60), (smalltalk.beyond, 18), (smalltalk.unknown_person, 7), (smalltalk.naming, 6),
    (general.FACTS, 32), (general.name_one, 9),
    (arithmetic.plain, 96), (arithmetic.chain, 20), (arithmetic.extra, 14),
    (lists.task, 78), (units.convert, 16), (units.date, 36),
    (schema.extract, 34), (schema.example, 3), (tools.use, 36), (tools.none_fits, 7),
    (stories.story, 28), (stories.poem, 8),
]  # fmt: skip
_BAG = [s for s, weight in SUBJECTS for _ in range(weight)]

_SYSTEMS = (
    "You are a helpful assistant.", "You are demo, the model inside realizar.", "You help users of realizar.", "Answer briefly.", "Be brief and correct.", "You are an assistant.", "You know realizar's command line.",
    "Help the user.", "Answer in one or two sentences.", "You are a friendly assistant.", "Today is a good day. Help the user.", "You are a support agent for realizar.", "You are a small language model.",
)  # fmt: skip


def _say(rng: Random, template: str, **slots: str) -> dict:
    return user(noisy(rng, fill(template, rng, **slots)))


_EXAMPLE = ("{give|show} me an example", "an example{, please|?|}", "example?", "can I see an example?", "how do I write that?", "what does that look like?", "show me", "for example?", "and the command line?", "how is it used?", "could you show me how?", "how exactly?", "give an example of it")
_DEFAULT = ("what is {the|its} default?", "and the default?", "what if I leave it out?", "default?", "what is it by default?", "and without it?", "do I have to set it?", "which value does it have otherwise?")
_WHERE = ("{which|what} commands have it?", "where can I use it?", "and in which command?", "which command is that for?", "is that for all commands?", "does every command have it?", "for which commands is that?")
_MEANING = ("what does it do?", "what exactly does it do?", "and what does that mean?", "explain it", "what is it for?", "say that again, please", "what was that flag?", "can you explain it?")
_NEXT = ("and <x>?", "what about <x>?", "and what is <x>?", "<x>?", "and <x>, what does it do?", "then what is <x>?", "how about <x>?", "and what does <x> do?", "and for <x>?", "now <x>")


def follow_flag(rng: Random, last: Exchange) -> list[dict]:
    """A question that leans on an answer about a flag."""
    flag, command = last.flag, last.command
    about_flag = names.flags_of(command)[flag]
    r = rng.random()
    if r < 0.3:
        return [_say(rng, pick(rng, _EXAMPLE)), assistant(f"`{about_flag['example']}`")]
    if r < 0.45 and about_flag["default"]:
        default = about_flag["default"]
        if default == "off":
            said = f"`{flag}` is off unless you give it."
        elif default == "none":
            said = f"Without `{flag}` there is none."
        elif default == "required":
            said = f"`{flag}` has no default: `realizar {command}` needs it."
        else:
            said = f"The default of `{flag}` is {default}."
        return [_say(rng, pick(rng, _DEFAULT)), assistant(said)]
    if r < 0.6:
        having = names.commands_with(flag)
        text = having[0] if len(having) == 1 else ", ".join(having[:-1]) + " and " + having[-1]
        return [_say(rng, pick(rng, _WHERE)), assistant(f"`{flag}` is a flag of {'the command' if len(having) == 1 else 'the commands'} {text}.")]
    if r < 0.72:
        value = about_flag["value"]
        return [_say(rng, pick(rng, _MEANING)), assistant(f"`{flag}{' ' + value if value else ''}` {about_flag['meaning']}.")]
    # Another flag of the same command, named alone.
    other = pick(rng, list(names.flags_of(command)))
    about_other = names.flags_of(command)[other]
    value, last.flag = about_other["value"], other
    named = other if rng.random() < 0.7 else f"`{other}`"
    return [_say(rng, pick(rng, _NEXT), x=named), assistant(f"`{other}{' ' + value if value else ''}` {about_other['meaning']}.")]


def follow_command(rng: Random, last: Exchange) -> list[dict]:
    """A question that leans on an answer about a command."""
    command = last.command
    r = rng.random()
    if r < 0.5:
        return [_say(rng, pick(rng, _EXAMPLE)), assistant(f"`{pick(rng, names.COMMANDS[command]['examples'])}`")]
    other = pick(rng, list(names.COMMANDS))
    word, last.command = "bench" if other == "bench model" else other, other
    return [_say(rng, pick(rng, _NEXT), x=pick(rng, (word, f"`{word}`", f"realizar {word}"))), assistant(f"`realizar {word}` {names.COMMANDS[other]['help']}.")]


_SUM_NEXT = ("and <x>?", "what about <x>?", "<x>?", "and <x>", "now <x>", "then <x>?", "<x>, too")


def follow_sum(rng: Random) -> list[dict]:
    """Another sum, named alone."""
    while True:
        op, a, b = pick(rng, "+-"), rng.randint(0, 999), rng.randint(0, 99)
        if not arithmetic.is_held(op, a, b):
            break
    result = a + b if op == "+" else a - b
    said = f"{a} {op} {b} = {arithmetic.by_places(a, b) if op == '+' else ''}{result}."
    return [user(noisy(rng, fill(pick(rng, _SUM_NEXT), rng, x="\x01")).replace("\x01", f"{a} {op} {b}")), assistant(said)]


def follow_capital(rng: Random) -> list[dict]:
    """The capital of another country."""
    country = pick(rng, list(general.CAPITALS))
    return [_say(rng, pick(rng, ("and of <x>?", "and <x>?", "what about <x>?", "and the one of <x>?", "<x>?")), x=literal(country)), assistant(f"The capital of {country} is {general.CAPITALS[country]}.")]


_WHY_SMALL = ("why?", "why not?", "why is that?", "why can't you?", "how come?")


def _follow(rng: Random, last: Exchange) -> list[dict]:
    """A question that leans on the last exchange, if there is one of its kind."""
    if last.flag and rng.random() < 0.75:
        return follow_flag(rng, last)
    if last.kind == "commands" and last.command:
        return follow_command(rng, last)
    if last.kind == "arithmetic":
        return follow_sum(rng)
    if last.kind == "general" and last.answer().startswith("The capital"):
        return follow_capital(rng)
    if last.kind == "beyond":
        return [_say(rng, pick(rng, _WHY_SMALL)), assistant("Because I am small: I have 6.6 million parameters, and was taught little beside realizar.")]
    if last.kind == "stories":
        return stories.story(rng).messages[-2:]
    if last.kind in ("flags", "api", "about realizar", "concepts", "errors") and rng.random() < 0.3:
        said = pick(rng, ("thanks", "thank you", "ok", "I see", "good to know", "aha", "ok thanks", "great"))
        return [_say(rng, said), assistant(pick(rng, ("You are welcome.", "You're welcome!", "Gladly.")))]
    return []


def conversation(rng: Random) -> Exchange:
    """A conversation as training has it: one exchange, or several."""
    last = pick(rng, _BAG)(rng)
    r = rng.random()
    if r < 0.58 or last.tools or last.messages[0]["role"] == "system":
        messages, given = last.messages, last.tools
    else:
        messages, given = list(last.messages), None
        turns = 1 if r < 0.8 else 2 if r < 0.92 else 3
        for _ in range(turns):
            more = _follow(rng, last) if rng.random() < 0.6 else []
            if more:
                messages += more
                continue
            last = pick(rng, _BAG)(rng)
            while last.tools or last.messages[0]["role"] == "system":
                last = pick(rng, _BAG)(rng)
            messages += last.messages
    if messages[0]["role"] != "system" and rng.random() < 0.09:
        messages = [system(pick(rng, _SYSTEMS)), *messages]
    if given is None and messages[0]["role"] != "system" and rng.random() < 0.03 and last.kind not in ("arithmetic", "beyond", "units", "json", "concepts", "general", "small talk"):
        given = tools.some_tools(rng)
    return Exchange(last.kind, messages, tools=given)
