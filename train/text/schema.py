"""JSON by a schema: an object made of what a text says, or any object that fits."""

import json
from random import Random

from .conversation import Exchange, assistant, system, to_json, user
from .grammar import fill, pick, share, split
from .noise import noisy
from .pools import ADJECTIVES, ANIMALS, CITIES, COLOURS, FOODS, FRUITS, JOBS, THINGS, city, made_up, person

# A field: its type, how its value is made, and how a text says it ("<v>" is the value, "<s>" the subject).
# "subject" fields name what the text is about.
_MAKE = {
    "person": person, "city": city,
    "age": lambda r: r.randint(1, 99), "job": lambda r: pick(r, JOBS), "thing": lambda r: pick(r, THINGS), "animal": lambda r: pick(r, ANIMALS),
    "colour": lambda r: pick(r, COLOURS), "price": lambda r: r.randint(1, 999), "decimal": lambda r: round(r.randint(1, 9999) / 10 ** r.randint(1, 2), 2),
    "small": lambda r: r.randint(1, 12), "year": lambda r: r.randint(1900, 2030), "bool": lambda r: r.random() < 0.5,
    "title": lambda r: f"The {pick(r, ADJECTIVES).capitalize()} {pick(r, ANIMALS + THINGS).capitalize()}", "email": lambda r: f"{made_up(r)}@example.org",
    "words": lambda r: r.sample(FRUITS + FOODS, r.randint(1, 4)), "colours": lambda r: r.sample(COLOURS, r.randint(1, 3)), "names": lambda r: [person(r) for _ in range(r.randint(1, 3))],
    "size": lambda r: pick(r, ("small", "medium", "large")), "mood": lambda r: pick(r, ("positive", "negative", "neutral")), "level": lambda r: pick(r, ("low", "medium", "high")),
    "degrees": lambda r: r.randint(-20, 40), "weather": lambda r: pick(r, ("sunny", "rainy", "cloudy", "windy", "snowy")), "percent": lambda r: r.randint(0, 100),
    "time": lambda r: f"{r.randint(0, 23):02d}:{r.choice((0, 15, 30, 45)):02d}", "date": lambda r: f"{r.randint(2020, 2030)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}",
}  # fmt: skip
_TYPES = {
    "age": "integer", "price": "integer", "small": "integer", "year": "integer", "bool": "boolean", "decimal": "number", "degrees": "integer", "percent": "integer",
    "words": "array", "colours": "array", "names": "array",
}  # fmt: skip
_ENUMS = {
    "size": ["small", "medium", "large"], "mood": ["positive", "negative", "neutral"], "level": ["low", "medium", "high"],
    "weather": ["sunny", "rainy", "cloudy", "windy", "snowy"],
}  # fmt: skip

# Names of a field that mean the same, its kind, and the sentences that say it.
_SUBJECTS = {
    "person": [
        (("name", "first_name", "person", "who"), "person", ["{{This is|Here is|Meet} <v>.|}"]),
        (("age", "years", "age_years"), "age", ["<s> is <v> years old.", "<s> is <v>.", "age: <v>", "<v> years old"]),
        (("city", "town", "home", "place", "lives_in", "location"), "city", ["<s> lives in <v>.", "<s> is from <v>.", "home: <v>"]),
        (("job", "profession", "occupation", "work"), "job", ["<s> is a <v>.", "<s> works as a <v>.", "job: <v>"]),
        (("married", "is_married"), "bool", {True: ["<s> is married."], False: ["<s> is not married."]}),
        (("favourite_colour", "colour", "color", "favorite_color"), "colour", ["<s> likes <v> best.", "<s>'s favourite colour is <v>."]),
        (("pet", "animal"), "animal", ["<s> has a <v>.", "<s>'s pet is a <v>."]),
        (("children", "number_of_children"), "small", ["<s> has <v> children."]),
        (("email", "mail", "address"), "email", ["<s>'s address is <v>.", "write to <v>."]),
        (("friends", "friends_names"), "names", ["<s>'s friends are <v>.", "<s> knows <v>."]),
    ],
    "product": [
        (("name", "product", "item", "article"), "thing", [""]),
        (("price", "cost", "price_eur"), "price", ["<s> costs <v> euros.", "price: <v>", "it is <v> euros."]),
        (("colour", "color"), "colour", ["<s> is <v>.", "colour: <v>", "it comes in <v>."]),
        (("size",), "size", ["size: <v>", "its size is <v>."]),
        (("quantity", "amount", "count", "stock"), "small", ["there are <v> of them.", "<v> pieces.", "quantity: <v>"]),
        (("in_stock", "available"), "bool", {True: ["it is in stock.", "it is available."], False: ["it is not in stock.", "it is sold out."]}),
        (("weight", "weight_kg", "kilograms"), "decimal", ["it weighs <v> kilograms.", "weight: <v>"]),
        (("colours", "colors"), "colours", ["it comes in <v>."]),
    ],
    "book": [
        (("title", "book", "name"), "title", [""]),
        (("author", "writer", "written_by"), "person", ["by <v>.", "it was written by <v>.", "<v> wrote it."]),
        (("year", "published", "year_published"), "year", ["it came out in <v>.", "published in <v>.", "year: <v>"]),
        (("pages", "number_of_pages"), "price", ["it has <v> pages.", "<v> pages."]),
        (("rating", "stars"), "small", ["rating: <v>", "it gets <v> stars."]),
    ],
    "order": [
        (("customer", "name", "buyer"), "person", [""]),
        (("items", "products", "food", "order"), "words", ["<s> orders <v>.", "<s> wants <v>.", "<s> would like <v>."]),
        (("table", "table_number"), "small", ["table <v>.", "<s> sits at table <v>."]),
        (("total", "price", "sum"), "price", ["it comes to <v> euros.", "total: <v>", "that is <v> euros."]),
        (("paid", "is_paid"), "bool", {True: ["it is paid."], False: ["it is not paid."]}),
        (("delivery", "deliver_to", "city"), "city", ["it goes to <v>.", "deliver it to <v>."]),
    ],
    "weather": [
        (("city", "place", "location", "town"), "city", [""]),
        (("temperature", "degrees", "temp"), "degrees", ["it is <v> degrees.", "<v> degrees.", "temperature: <v>"]),
        (("weather", "condition", "sky"), "weather", ["it is <v>.", "the weather is <v>."]),
        (("humidity", "humidity_percent"), "percent", ["humidity is <v> percent.", "humidity: <v>"]),
        (("wind", "wind_kmh"), "percent", ["the wind blows at <v> kilometres an hour.", "wind: <v>"]),
    ],
    "meeting": [
        (("title", "topic", "subject"), "title", [""]),
        (("date", "day"), "date", ["it is on <v>.", "date: <v>", "on <v>."]),
        (("time", "start", "starts_at"), "time", ["it begins at <v>.", "at <v>.", "time: <v>"]),
        (("room", "place", "city"), "city", ["it is in <v>.", "place: <v>"]),
        (("people", "participants", "names"), "names", ["<v> will come.", "with <v>."]),
        (("priority", "importance"), "level", ["its priority is <v>.", "priority: <v>"]),
    ],
}  # fmt: skip

_INTROS = {
    "person": ["<v>.", "This is <v>.", "My friend is called <v>.", "Meet <v>.", "<v> is new here.", "Name: <v>.", "I met <v>."],
    "product": ["We sell a <v>.", "Here is a <v>.", "Product: <v>.", "A <v>.", "The <v> is new."],
    "book": ['"<v>".', "The book is called <v>.", "Title: <v>.", "I read <v>.", "A book: <v>."],
    "order": ["<v> is here.", "Customer: <v>.", "An order of <v>.", "For <v>."],
    "weather": ["In <v>.", "<v>.", "Weather in <v>.", "Today in <v>."],
    "meeting": ["Meeting: <v>.", "We talk about <v>.", "Topic: <v>.", "The meeting is called <v>."],
}  # fmt: skip


def _schema_of(fields: list[tuple[str, str]], rng: Random) -> dict:
    properties: dict[str, dict] = {}
    for name, kind in fields:
        if kind in _ENUMS:
            properties[name] = {"type": "string", "enum": _ENUMS[kind]}
        elif _TYPES.get(kind) == "array":
            properties[name] = {"type": "array", "items": {"type": "string"}}
        else:
            properties[name] = {"type": _TYPES.get(kind, "string")}
    schema: dict = {"type": "object", "properties": properties}
    if rng.random() < 0.7:
        schema["required"] = list(properties)
    if rng.random() < 0.2:
        schema["additionalProperties"] = False
    return schema


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def sample(rng: Random) -> tuple[dict, dict, str]:
    """A schema, an object that fits it and a text that says what the object has."""
    about = pick(rng, list(_SUBJECTS))
    rows = _SUBJECTS[about]
    count = rng.randint(1, min(4, len(rows) - 1))
    chosen = [rows[0], *rng.sample(rows[1:], count)]
    values = [_MAKE[kind](rng) for _, kind, _ in chosen]
    subject = str(values[0]) if about == "person" or about == "order" else "it"
    sentences = [pick(rng, _INTROS[about]).replace("<v>", str(values[0]))]
    for (_, kind, says), value in zip(chosen[1:], values[1:]):
        options = says[value] if isinstance(says, dict) else says
        shown = _listed(value) if isinstance(value, list) else str(value)
        s = subject if rng.random() < 0.7 or subject == "it" else subject
        sentence = pick(rng, options).replace("<s>", s).replace("<v>", shown)
        sentences.append(sentence[0].upper() + sentence[1:])
    text = " ".join(s if s[-1] in ".!" else s + "." for s in sentences)
    used: set[str] = set()
    named = []
    for (options, kind, _), value in zip(chosen, values):
        name = pick(rng, options)
        if name in used:
            name = next((o for o in options if o not in used), name + "_2")
        used.add(name)
        named.append((name, kind, value))
    order = named[:]
    if rng.random() < 0.6:
        rng.shuffle(order)
    schema = _schema_of([(n, k) for n, k, _ in order], rng)
    return schema, {n: v for n, _, v in order}, text


_SYSTEM = split([
    "Answer with JSON by this schema: <x>", "Answer only with a JSON object that fits this schema: <x>", "You extract data. Answer in JSON by the schema <x>", "Reply with JSON only. Schema: <x>", "Output JSON that matches this JSON schema:\n<x>",
    "Give every answer as JSON of this form: <x>", "You are a parser. The JSON schema of your answers: <x>", "Respond only in JSON. The schema:\n<x>", "Turn what the user says into JSON by this schema: <x>", "JSON schema for your answer: <x>",
])  # fmt: skip
_USER = split([
    "<t>\n\nAnswer as JSON by this schema: <x>", "Turn this into JSON by the schema <x>: <t>", "Extract JSON from this text: <t>\nSchema: <x>", "Schema: <x>\nText: <t>", "Give me a JSON object by this schema: <x>\n\n<t>", "JSON please, by this schema: <x>. <t>",
    "Here is a JSON schema: <x>. Fill it from this: <t>", "<t> Write that as JSON. Schema: <x>", "Make JSON of this: <t>\nUse the schema <x>", "Fill in this JSON schema: <x>\n<t>", "Read the text and answer in JSON by the schema.\nText: <t>\nSchema: <x>",
])  # fmt: skip
_FIELDS_ONLY = split([
    "Turn this into JSON with the fields <f>: <t>", "<t> Give me that as JSON with the keys <f>.", "Make a JSON object with <f> from this: <t>", "JSON with <f>: <t>", "Extract <f> as JSON: <t>", "write <f> as JSON. <t>", "write JSON with <f>. <t>", "write as JSON <f>: <t>", "give me <f> as JSON. <t>", "find <f> and write JSON: <t>", "extract JSON with <f>: <t>", "extract the fields <f>: <t>", "get <f> as JSON from this: <t>", "put <f> into JSON. <t>", "as JSON, please: <f>. <t>", "return <f> as JSON: <t>", "<f> as JSON: <t>", "<f> as a JSON object. <t>", "<t>\nAnswer with a JSON object that has <f>.",
])  # fmt: skip
_ANY = split([
    "Give me an example object for this JSON schema: <x>", "Make up a JSON object that fits <x>", "An example for this schema, please: <x>", "Write JSON that fits this schema: <x>", "Generate an object by this JSON schema: <x>", "Produce any JSON for the schema <x>",
])  # fmt: skip


def _write(rng: Random, schema: dict) -> str:
    return json.dumps(schema, ensure_ascii=False, indent=2) if rng.random() < 0.12 else to_json(schema)


def _exchange(rng: Random, held: int, kept: bool) -> Exchange:
    schema, value, text = sample(rng)
    r = rng.random()
    answer = assistant(to_json(value))
    why = "frame" if held else "pair"
    if r < 0.4:
        asked = [system(fill(pick(rng, _SYSTEM[held] or _SYSTEM[0]), rng, x=_write(rng, schema))), user(text)]
    elif r < 0.75:
        asked = [user(fill(pick(rng, _USER[held] or _USER[0]), rng, x=_write(rng, schema), t=text))]
    else:
        asked = [user(noisy(rng, fill(pick(rng, _FIELDS_ONLY[held] or _FIELDS_ONLY[0]), rng, f="\x01", t="\x02")).replace("\x01", _listed(list(value))).replace("\x02", text))]
    return Exchange("json", [*asked, answer], data=value, held=why if kept else "")


def is_held(value: dict) -> bool:
    """Whether training never has this object: one of 25."""
    return share("json", to_json(value)) < 40


def extract(rng: Random) -> Exchange:
    """An object made of what a text says."""
    while True:
        e = _exchange(rng, 0, kept=False)
        if not is_held(e.data):  # type: ignore[arg-type]
            return e


def example(rng: Random) -> Exchange:
    """Any object that fits a schema."""
    schema, value, _ = sample(rng)
    question = fill(pick(rng, _ANY[0]), rng, x=_write(rng, schema))
    return Exchange("json", [user(question), assistant(to_json(value))])


def held(rng: Random, count: int) -> list[Exchange]:
    """Texts to turn into JSON for the trained model."""
    out: list[Exchange] = []
    while len(out) < count:
        e = _exchange(rng, 1 if rng.random() < 0.4 else 0, kept=True)
        if is_held(e.data):  # type: ignore[arg-type]
            out.append(e)
    return out
