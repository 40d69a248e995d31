"""Calls of tools: choosing one and its arguments, answering from what came of it, and
saying so where none of them fits."""

from random import Random

from .conversation import Exchange, assistant, call, response, system, to_json, user
from .grammar import fill, pick, share, split
from .noise import noisy
from .pools import ANIMALS, COLOURS, FOODS, FRUITS, NATURE, THINGS, city, made_up, person

_LANGUAGES = "French German Spanish Italian Portuguese Dutch Polish Swedish Japanese Chinese Korean Turkish".split()
_CURRENCIES = "EUR USD GBP JPY CHF SEK NOK CAD AUD INR".split()
_ROOMS = "kitchen bedroom bathroom office garage hall garden".split()
_DEVICES = "lamp heater fan radio television alarm oven".split()
_UNITS = ("celsius", "fahrenheit")

_PHRASES = (
    "good morning", "thank you", "see you later", "I am late", "where is the station", "happy birthday", "I like tea", "the soup is cold", "call me back", "all is well",
    "dinner is ready", "I miss you", "the train is late", "bring milk", "we won", "where are you", "good night", "I am at home",
)  # fmt: skip
_EVENTS = (
    "dentist", "team meeting", "lunch", "yoga", "concert", "exam", "piano lesson", "birthday party", "haircut", "football", "dinner", "job interview", "parents' evening", "swimming",
    "doctor", "choir", "garden work", "book club", "train to work", "holiday",
)  # fmt: skip


def _phrase(rng: Random) -> str:
    r = rng.random()
    if r < 0.5:
        return pick(rng, _PHRASES)
    if r < 0.8:
        return f"the {pick(rng, THINGS)} is {pick(rng, ('in', 'under', 'behind', 'near'))} the {pick(rng, THINGS + NATURE)}"
    return f"{person(rng)} has {rng.randint(2, 90)} {pick(rng, ANIMALS + THINGS)}s"


_MAKE = {
    "city": city, "person": person, "time": lambda r: f"{r.randint(0, 23):02d}:{r.choice((0, 10, 15, 30, 45)):02d}", "number": lambda r: r.randint(1, 999), "small": lambda r: r.randint(1, 30),
    "date": lambda r: f"{r.randint(2024, 2028)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}", "language": lambda r: pick(r, _LANGUAGES), "currency": lambda r: pick(r, _CURRENCIES),
    "room": lambda r: pick(r, _ROOMS), "device": lambda r: pick(r, _DEVICES), "thing": lambda r: pick(r, THINGS), "food": lambda r: pick(r, FOODS + FRUITS), "animal": lambda r: pick(r, ANIMALS),
    "word": lambda r: made_up(r) if r.random() < 0.4 else pick(r, THINGS + NATURE), "colour": lambda r: pick(r, COLOURS), "email": lambda r: f"{made_up(r)}@example.com", "symbol": lambda r: "".join(r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(r.randint(2, 4))),
    "unit": lambda r: pick(r, _UNITS), "phrase": lambda r: _phrase(r),
    "event": lambda r: pick(r, _EVENTS),
    "topic": lambda r: f"{pick(r, ('old', 'new', 'small', 'cheap', 'famous', 'wild'))} {pick(r, ANIMALS + THINGS + NATURE)}s", "file": lambda r: f"{made_up(r)}.{pick(r, ('txt', 'csv', 'md', 'json', 'log'))}",
    "percent": lambda r: r.randint(0, 100), "song": lambda r: f"{pick(r, COLOURS).capitalize()} {pick(r, NATURE).capitalize()}",
}  # fmt: skip
_TYPES = {"number": "integer", "small": "integer", "percent": "integer"}

# A tool: its names, its descriptions, its parameters (names, kind, description), the
# requests for it, what it may answer (as JSON fields by kind) and how that is told.
_TOOLS = [
    (("get_weather", "weather", "current_weather", "fetch_weather", "weather_now"), ("Get the weather of a city", "The current weather in a place", "Weather report for a town"), [(("city", "location", "place", "town"), "city", "The city")],
     ["what is the weather in <0>?", "how is the weather in <0>?", "weather in <0>?", "is it raining in <0>?", "do I need a coat in <0>?", "will I need an umbrella in <0> today?", "how warm is it in <0>?", "tell me the weather of <0>", "what's it like outside in <0>?", "is it cold in <0>?"],
     {"temperature": "degrees", "condition": "weather"}, ["It is {temperature} degrees and {condition} in <0>.", "In <0> it is {condition} at {temperature} degrees."]),
    (("get_time", "current_time", "time_in", "clock"), ("Get the time in a city", "The current local time of a place"), [(("city", "location", "place"), "city", "The city")],
     ["what time is it in <0>?", "the time in <0>?", "how late is it in <0>?", "tell me the time in <0>", "local time of <0>?", "what's the clock in <0>?"], {"time": "time"}, ["It is {time} in <0>."]),
    (("convert_currency", "exchange", "currency"), ("Convert an amount of money", "Convert between currencies"), [(("amount", "value"), "number", "The amount"), (("from", "source", "from_currency"), "currency", "Currency to convert from"), (("to", "target", "to_currency"), "currency", "Currency to convert to")],
     ["how much is <0> <1> in <2>?", "convert <0> <1> to <2>", "<0> <1> in <2>?", "what are <0> <1> in <2>?", "change <0> <1> into <2>", "I have <0> <1>. how many <2> is that?"], {"result": "money"}, ["<0> <1> are {result} <2>."]),
    (("translate", "translate_text", "translator"), ("Translate a text", "Translate text into another language"), [(("text", "phrase", "input"), "phrase", "The text"), (("language", "target_language", "to"), "language", "The language")],
     ["translate \"<0>\" to <1>", "what is \"<0>\" in <1>?", "how do I say \"<0>\" in <1>?", "say \"<0>\" in <1>", "<1> for \"<0>\"?", "translate into <1>: \"<0>\""], {"translation": "madeup"}, ["In <1> that is \"{translation}\"."]),
    (("send_message", "message", "send_text", "text_person"), ("Send a message to somebody", "Send a text message"), [(("to", "recipient", "name"), "person", "Who gets it"), (("text", "message", "body"), "phrase", "What to say")],
     ["send a message to <0>: \"<1>\"", "tell <0> \"<1>\"", "text <0> \"<1>\"", "write to <0> that \"<1>\"", "message <0>: \"<1>\"", "let <0> know: \"<1>\""], {"status": "sent"}, ["The message to <0> was sent.", "Done: <0> has the message."]),
    (("send_email", "email", "mail"), ("Send an e-mail", "Send mail to an address"), [(("to", "address"), "email", "The address"), (("subject", "title"), "phrase", "The subject")],
     ["send an email to <0> with the subject \"<1>\"", "mail <0> about \"<1>\"", "email <0>, subject \"<1>\"", "write an e-mail to <0>: \"<1>\""], {"status": "sent"}, ["The mail to <0> was sent."]),
    (("set_alarm", "alarm", "wake_me"), ("Set an alarm", "Set an alarm clock"), [(("time", "at"), "time", "When, as HH:MM")],
     ["wake me at <0>", "set an alarm for <0>", "alarm at <0>", "I must get up at <0>", "please wake me up at <0>"], {"status": "ok"}, ["The alarm is set for <0>."]),
    (("set_timer", "timer", "start_timer", "countdown"), ("Start a timer", "Start a countdown of some minutes"), [(("minutes", "duration"), "small", "How many minutes")],
     ["set a timer for <0> minutes", "timer, <0> minutes", "remind me in <0> minutes", "start a countdown of <0> minutes", "tell me when <0> minutes are over"], {"status": "ok"}, ["The timer runs for <0> minutes."]),
    (("create_event", "add_event", "calendar_add", "new_appointment"), ("Add an event to the calendar", "Create a calendar entry"), [(("title", "name"), "event", "What it is"), (("date", "day"), "date", "The day"), (("time", "start"), "time", "When it begins")],
     ["put \"<0>\" into my calendar on <1> at <2>", "add \"<0>\" on <1> at <2>", "create an event \"<0>\", <1>, <2>", "schedule \"<0>\" for <1> at <2>", "I have \"<0>\" on <1> at <2>, note it"], {"status": "ok"}, ["Your calendar has <0> on <1> at <2>."]),
    (("search", "web_search", "search_web", "find"), ("Search the web", "Look something up"), [(("query", "q", "text"), "topic", "What to search for")],
     ["search for <0>", "look up <0>", "find something about <0>", "search the web for <0>", "what does the web say about <0>?", "google <0>"], {"results": "count"}, ["There are {results} results for <0>."]),
    (("turn_on", "switch_on", "device_on"), ("Turn a device on", "Switch something on in a room"), [(("device", "name"), "device", "The device"), (("room", "where"), "room", "The room")],
     ["turn on the <0> in the <1>", "switch the <0> on in the <1>", "<0> on in the <1>, please", "the <0> of the <1> should be on", "I want the <0> on in the <1>"], {"status": "ok"}, ["The <0> in the <1> is on."]),
    (("turn_off", "switch_off", "device_off"), ("Turn a device off", "Switch something off in a room"), [(("device", "name"), "device", "The device"), (("room", "where"), "room", "The room")],
     ["turn off the <0> in the <1>", "switch the <0> off in the <1>", "<0> off in the <1>, please", "the <0> of the <1> should be off", "no <0> in the <1> any more"], {"status": "ok"}, ["The <0> in the <1> is off."]),
    (("set_volume", "volume"), ("Set the volume", "Change how loud it is"), [(("level", "percent", "value"), "percent", "From 0 to 100")],
     ["set the volume to <0>", "volume <0>", "make it <0> percent loud", "volume to <0> percent", "put the sound at <0>"], {"status": "ok"}, ["The volume is <0>."]),
    (("play_song", "play", "play_music"), ("Play a song", "Play music"), [(("title", "song", "name"), "song", "The song")],
     ["play <0>", "I want to hear <0>", "put on <0>", "play the song <0>", "can you play <0>?"], {"status": "playing"}, ["<0> is playing."]),
    (("get_stock_price", "stock", "share_price", "quote"), ("Get the price of a share", "Price of a stock by its symbol"), [(("symbol", "ticker"), "symbol", "The symbol")],
     ["what is the price of <0>?", "stock price of <0>", "how is <0> doing at the stock exchange?", "price of the share <0>?", "what does a share of <0> cost?"], {"price": "money"}, ["A share of <0> costs {price}."]),
    (("add_to_list", "shopping_add", "add_item", "buy"), ("Put something on the shopping list", "Add an item to the shopping list"), [(("item", "product", "thing"), "food", "What to buy"), (("quantity", "amount", "count"), "small", "How many")],
     ["put <1> <0> on the shopping list", "add <1> <0> to my list", "I need <1> <0>, note that", "shopping list: <1> <0>", "we must buy <1> <0>"], {"status": "ok"}, ["<1> <0> are on the list."]),
    (("read_file", "open_file", "cat", "show_file"), ("Read a file", "Show what is in a file"), [(("path", "file", "name"), "file", "The file")],
     ["read <0>", "what is in <0>?", "open the file <0>", "show me <0>", "print <0>", "show the content of <0>"], {"lines": "count"}, ["The file <0> has {lines} lines."]),
    (("delete_file", "remove_file", "rm"), ("Delete a file", "Remove a file"), [(("path", "file", "name"), "file", "The file")],
     ["delete <0>", "remove the file <0>", "throw <0> away", "I don't need <0> any more, delete it"], {"status": "ok"}, ["The file <0> is deleted."]),
    (("roll_dice", "dice", "roll"), ("Roll dice", "Roll some dice"), [(("count", "number", "dice"), "small", "How many dice")],
     ["roll <0> dice", "throw <0> dice", "roll the dice <0> times", "<0> dice, please"], {"sum": "count"}, ["The dice add up to {sum}."]),
    (("add", "add_numbers", "plus", "sum"), ("Add two numbers", "The sum of two numbers"), [(("a", "x", "first"), "number", "The first number"), (("b", "y", "second"), "number", "The second number")],
     ["what is <0> + <1>?", "add <0> and <1>", "<0> plus <1>", "the sum of <0> and <1>?", "calculate <0> + <1>"], {"result": "sum"}, ["<0> + <1> = {result}."]),
    (("multiply", "times", "product"), ("Multiply two numbers", "The product of two numbers"), [(("a", "x", "first"), "number", "The first number"), (("b", "y", "second"), "number", "The second number")],
     ["what is <0> * <1>?", "multiply <0> by <1>", "<0> times <1>", "the product of <0> and <1>?", "calculate <0> x <1>"], {"result": "product"}, ["<0> * <1> = {result}."]),
    (("book_table", "reserve_table", "reservation"), ("Book a table in a restaurant", "Reserve a table"), [(("people", "guests", "persons"), "small", "How many people"), (("time", "at"), "time", "When")],
     ["book a table for <0> at <1>", "a table for <0> people at <1>", "reserve a table at <1> for <0>", "we are <0> and want to eat at <1>"], {"status": "ok"}, ["A table for <0> is booked at <1>."]),
    (("find_train", "trains", "train_connection"), ("Find a train", "Find trains between two cities"), [(("from", "start", "origin"), "city", "Where it starts"), (("to", "destination", "end"), "city", "Where it goes")],
     ["when does a train go from <0> to <1>?", "trains from <0> to <1>", "I want to go from <0> to <1> by train", "next train from <0> to <1>?", "find a train to <1> from <0>"], {"departure": "time"}, ["A train goes from <0> to <1> at {departure}."]),
    (("get_definition", "define", "dictionary"), ("Look up a word", "The meaning of a word"), [(("word", "term"), "word", "The word")],
     ["what does the word <0> mean?", "define <0>", "look up the word <0>", "meaning of <0>?", "what is the definition of <0>?"], {"definition": "madeup"}, ["<0>: {definition}."]),
    (("set_light", "light", "light_colour"), ("Set the colour of the light", "Change the light in a room"), [(("room", "where"), "room", "The room"), (("colour", "color"), "colour", "The colour")],
     ["make the light in the <0> <1>", "<1> light in the <0>", "set the light of the <0> to <1>", "I want <1> light in the <0>"], {"status": "ok"}, ["The light in the <0> is <1>."]),
    (("call_person", "phone", "dial"), ("Call somebody", "Make a phone call"), [(("name", "person", "who"), "person", "Whom to call")],
     ["call <0>", "phone <0>", "I want to talk to <0>", "ring <0>", "dial <0>, please"], {"status": "calling"}, ["I am calling <0>."]),
]  # fmt: skip

_SYSTEMS = (
    "You are a helpful assistant.", "Use the tools where they help.", "You are a home assistant.", "Call a tool when you need one.", "Be brief.", "You can call functions.", "You are an assistant with tools.",
    "Answer with a call where a tool fits.", "Today is a nice day. Help the user.",
)  # fmt: skip
_NO_FIT = (
    "None of the tools that I have does that.", "I have no tool for that.", "No tool here fits, so I cannot do that.",
)  # fmt: skip
_SPLIT = [split(t[3]) for t in _TOOLS]


def _tool(rng: Random, index: int) -> tuple[dict, list[tuple[str, str]]]:
    """A tool as a request has it, and its parameters' names and kinds."""
    named, described, parameters, *_ = _TOOLS[index]
    chosen: list[tuple[str, str]] = []
    properties: dict[str, dict] = {}
    for options, kind, description in parameters:
        name = pick(rng, options)
        about: dict = {"type": _TYPES.get(kind, "string")}
        if rng.random() < 0.5:
            about["description"] = description
        properties[name] = about
        chosen.append((name, kind))
    # A name may say nothing: then the description has to.
    name = pick(rng, named) if rng.random() < 0.85 else f"{made_up(rng)}_{made_up(rng)}" if rng.random() < 0.5 else f"{pick(rng, named)}_{rng.randint(1, 9)}"
    required = [n for n, _ in chosen]
    schema = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": pick(rng, described), "parameters": schema}}, chosen


def _tools(rng: Random, index: int | None) -> tuple[list[dict], dict | None, list[tuple[str, str]]]:
    """One to four tools, and the wanted one among them."""
    others = [i for i in range(len(_TOOLS)) if i != index]
    if index is not None:  # what means the same to a user must not stand beside it
        words = set(_TOOLS[index][0])
        others = [i for i in others if not words & set(_TOOLS[i][0])]
    count = rng.randint(0 if index is not None else 1, 3)
    indices = rng.sample(others, count) + ([index] if index is not None else [])
    rng.shuffle(indices)
    tools, wanted, kinds, names = [], None, [], set()
    for i in indices:
        tool, parameters = _tool(rng, i)
        while tool["function"]["name"] in names:
            tool, parameters = _tool(rng, i)
        names.add(tool["function"]["name"])
        tools.append(tool)
        if i == index:
            wanted, kinds = tool, parameters
    return tools, wanted, kinds


_MARKS = ("\x01", "\x02", "\x03")


def _ask(rng: Random, template: str, values: list) -> str:
    text = template
    for i in range(len(values)):
        text = text.replace(f"<{i}>", _MARKS[i])
    question = noisy(rng, fill(text, rng))
    for mark, value in zip(_MARKS, values):
        question = question.replace(mark, str(value))
    return question




def _call(rng: Random, index: int, templates: list[str]) -> tuple[list[dict], dict, list, str]:
    """The tools, the call's name and arguments, their values in order, and the question."""
    tools, wanted, kinds = _tools(rng, index)
    values = [_MAKE[kind](rng) for _, kind in kinds]
    if _TOOLS[index][0][0] == "convert_currency":
        while values[1] == values[2]:
            values[2] = _MAKE["currency"](rng)
    arguments = {name: value for (name, _), value in zip(kinds, values)}
    assert wanted is not None
    return tools, {"name": wanted["function"]["name"], "arguments": arguments}, values, _ask(rng, pick(rng, templates), values)


def is_held(arguments: dict) -> bool:
    """Whether training never has a call with these arguments: one of 12."""
    return share("tools", to_json(list(arguments.values()))) < 80


def _result(rng: Random, fields: dict, values: list) -> dict:
    out: dict = {}
    for name, kind in fields.items():
        if kind == "degrees":
            out[name] = rng.randint(-15, 38)
        elif kind == "weather":
            out[name] = pick(rng, ("sunny", "rainy", "cloudy", "windy", "foggy", "snowy", "clear"))
        elif kind == "time":
            out[name] = f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
        elif kind == "money":
            out[name] = round(rng.randint(100, 99999) / 100, 2)
        elif kind == "madeup":
            out[name] = " ".join(made_up(rng) for _ in range(rng.randint(1, 3)))
        elif kind == "count":
            out[name] = rng.randint(1, 400)
        elif kind == "sum":
            out[name] = values[0] + values[1]
        elif kind == "product":
            out[name] = values[0] * values[1]
        else:
            out[name] = kind
    return out


def _tell(rng: Random, index: int, values: list, result: dict) -> str:
    text = pick(rng, _TOOLS[index][5])
    for i, value in enumerate(values):
        text = text.replace(f"<{i}>", str(value))
    for name, value in result.items():
        text = text.replace("{" + name + "}", str(value))
    return text[0].upper() + text[1:]


def _failure(rng: Random) -> tuple[str, str]:
    reason = pick(rng, ("not found", "timeout", "no connection", "permission denied", "busy", "unknown name", "service unavailable"))
    return to_json({"error": reason}), f"That did not work: {reason}."


def use(rng: Random) -> Exchange:
    """A call, and often what came of it."""
    while True:
        index = int(rng.random() * len(_TOOLS))
        tools, called, values, question = _call(rng, index, _SPLIT[index][0])
        if not is_held(called["arguments"]):
            break
    messages = [system(pick(rng, _SYSTEMS))] if rng.random() < 0.35 else []
    messages += [user(question), call(called["name"], called["arguments"])]
    if rng.random() < 0.6:
        if rng.random() < 0.1:
            came, told = _failure(rng)
        else:
            result = _result(rng, _TOOLS[index][4], values)
            came, told = to_json(result), _tell(rng, index, values, result)
        messages += [response(came), assistant(told)]
        if rng.random() < 0.25:
            messages += _thanks(rng)
        elif rng.random() < 0.3:  # another call of the same tool
            values2 = [_MAKE[_TOOLS[index][2][i][1]](rng) for i in range(len(values))]
            arguments = dict(zip(called["arguments"], values2))
            if not is_held(arguments) and _TOOLS[index][0][0] != "convert_currency":
                messages += [user(_ask(rng, pick(rng, _SPLIT[index][0]), values2)), call(called["name"], arguments)]
    return Exchange("tools", messages, tools=tools)


def _thanks(rng: Random) -> list[dict]:
    asked = noisy(rng, pick(rng, ("thanks", "thank you", "great", "good", "nice, thank you", "perfect")))
    return [user(asked), assistant(pick(rng, ("You are welcome.", "Gladly.", "You're welcome!")))]


def none_fits(rng: Random) -> Exchange:
    """A request that none of the tools is for."""
    while True:
        wanted = int(rng.random() * len(_TOOLS))
        tools, _, _ = _tools(rng, None)
        names = {t["function"]["description"] for t in tools}
        if not names & set(_TOOLS[wanted][1]) and _TOOLS[wanted][0][0] not in ("add", "multiply", "get_definition"):
            break
    values = [_MAKE[kind](rng) for _, kind, _ in _TOOLS[wanted][2]]
    question = _ask(rng, pick(rng, _SPLIT[wanted][0]), values)
    messages = [system(pick(rng, _SYSTEMS))] if rng.random() < 0.3 else []
    return Exchange("tools", [*messages, user(question), assistant(pick(rng, _NO_FIT))], tools=tools)


def some_tools(rng: Random) -> list[dict]:
    """Tools that a conversation about something else may have at hand."""
    return _tools(rng, None)[0]


def held(rng: Random, count: int) -> list[Exchange]:
    """Calls for the trained model, and answers from what came of them."""
    out: list[Exchange] = []
    while len(out) < count:
        index = int(rng.random() * len(_TOOLS))
        train, kept = _SPLIT[index]
        use_kept = bool(kept) and rng.random() < 0.4
        tools, called, values, question = _call(rng, index, kept if use_kept else train)
        if not is_held(called["arguments"]):
            continue
        why = "frame" if use_kept else "pair"
        messages = [user(question), call(called["name"], called["arguments"])]
        if rng.random() < 0.3:
            result = _result(rng, _TOOLS[index][4], values)
            told = _tell(rng, index, values, result)
            must = [str(v) for v in result.values() if v not in ("ok", "sent", "playing", "calling")] or [str(values[0])]
            out.append(Exchange("tool responses", [*messages, response(to_json(result)), assistant(told)], must, ["<tool_call>"], tools=tools, held=why))
        else:
            out.append(Exchange("tool calls", messages, data=called, tools=tools, held=why))
    for _ in range(count // 8):
        e = none_fits(rng)
        e.kind, e.must, e.must_not, e.held = "tools: none fits", [["no tool", "none of the tools"]], ["<tool_call>"], "pair"
        out.append(e)
    return out
