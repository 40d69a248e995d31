"""Some things that everybody knows: capitals, colours, animals, opposites, simple whys."""

from random import Random

from .conversation import Exchange, assistant, user
from .facts import Fact, Facts
from .grammar import fill, held_pair, pick, split
from .noise import noisy
from .pools import ANIMALS, BOYS, COLOURS, FRUITS, GIRLS, JOBS, THINGS

CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Portugal": "Lisbon", "England": "London", "the United Kingdom": "London", "Ireland": "Dublin", "Austria": "Vienna", "Switzerland": "Bern",
    "Belgium": "Brussels", "the Netherlands": "Amsterdam", "Denmark": "Copenhagen", "Norway": "Oslo", "Sweden": "Stockholm", "Finland": "Helsinki", "Iceland": "Reykjavik", "Poland": "Warsaw", "Czechia": "Prague", "Hungary": "Budapest",
    "Greece": "Athens", "Turkey": "Ankara", "Russia": "Moscow", "Ukraine": "Kyiv", "Romania": "Bucharest", "Bulgaria": "Sofia", "Croatia": "Zagreb", "Serbia": "Belgrade", "Estonia": "Tallinn", "Latvia": "Riga", "Lithuania": "Vilnius",
    "the United States": "Washington", "the USA": "Washington", "Canada": "Ottawa", "Mexico": "Mexico City", "Cuba": "Havana", "Brazil": "Brasilia", "Argentina": "Buenos Aires", "Chile": "Santiago", "Peru": "Lima", "Colombia": "Bogota",
    "China": "Beijing", "Japan": "Tokyo", "South Korea": "Seoul", "India": "New Delhi", "Thailand": "Bangkok", "Vietnam": "Hanoi", "Indonesia": "Jakarta", "the Philippines": "Manila", "Australia": "Canberra", "New Zealand": "Wellington",
    "Egypt": "Cairo", "Morocco": "Rabat", "Kenya": "Nairobi", "Ghana": "Accra", "Nigeria": "Abuja", "Ethiopia": "Addis Ababa", "Iran": "Tehran", "Iraq": "Baghdad", "Israel": "Jerusalem", "Senegal": "Dakar",
}  # fmt: skip
_SOUNDS = {
    "cat": "meows", "dog": "barks", "cow": "moos", "duck": "quacks", "lion": "roars", "sheep": "bleats", "horse": "neighs", "pig": "grunts", "bee": "buzzes", "owl": "hoots", "frog": "croaks", "wolf": "howls", "hen": "clucks", "mouse": "squeaks",
    "snake": "hisses", "crow": "caws", "goose": "honks", "donkey": "brays", "sparrow": "chirps",
}  # fmt: skip
_OPPOSITES = {
    "big": "small", "hot": "cold", "up": "down", "good": "bad", "fast": "slow", "old": "young", "new": "old", "happy": "sad", "light": "dark", "day": "night", "open": "closed", "full": "empty", "high": "low", "long": "short", "left": "right", "yes": "no",
    "hard": "soft", "early": "late", "rich": "poor", "loud": "quiet", "strong": "weak", "near": "far", "wet": "dry", "clean": "dirty", "love": "hate", "begin": "end", "in": "out", "heavy": "light", "thick": "thin", "true": "false", "black": "white", "push": "pull",
    "win": "lose", "buy": "sell", "first": "last", "inside": "outside", "war": "peace", "alive": "dead", "brave": "afraid", "sweet": "sour", "wide": "narrow", "deep": "shallow", "always": "never", "before": "after", "summer": "winter",
}  # fmt: skip
_YOUNG = {"dog": "puppy", "cat": "kitten", "cow": "calf", "sheep": "lamb", "horse": "foal", "pig": "piglet", "hen": "chick", "bear": "cub", "lion": "cub", "duck": "duckling", "goose": "gosling", "goat": "kid", "deer": "fawn", "frog": "tadpole", "swan": "cygnet"}
_LEGS = {"spider": 8, "ant": 6, "bee": 6, "dog": 4, "cat": 4, "horse": 4, "duck": 2, "human": 2, "crab": 10, "snake": 0, "fish": 0, "cow": 4, "hen": 2, "frog": 4}
_HUES = {"grass": "green", "snow": "white", "blood": "red", "the sky": "blue", "a lemon": "yellow", "coal": "black", "milk": "white", "a banana": "yellow", "a ripe tomato": "red", "the sea": "blue", "an orange": "orange", "a leaf": "green", "a crow": "black", "a polar bear": "white"}


def _facts() -> list[Fact]:
    facts = []
    for country, capital in CAPITALS.items():
        facts.append(Fact(f"capital of {country}", [f"The capital of {country} is {capital}."], [capital], asks=[
            f"what is the capital of {country}?", f"capital of {country}?", f"which city is the capital of {country}?", f"{country}'s capital?", f"what's {country}'s capital?", f"tell me the capital of {country}", f"do you know the capital of {country}?",
        ], weight=0.5))
    for animal, sound in _SOUNDS.items():
        facts.append(Fact(f"sound of {animal}", [f"A {animal} {sound}." if animal[0] not in "aeiou" else f"An {animal} {sound}."], [sound], asks=[f"what sound does a {animal} make?", f"what does {{the|a}} {animal} say?", f"which sound does a {animal} make?", f"how does a {animal} sound?"], weight=0.25))
    for animal, young in _YOUNG.items():
        facts.append(Fact(f"young of {animal}", [f"A young {animal} is called a {young}."], [young], asks=[f"what is a {{young|baby}} {animal} called?", f"what do you call a {{young|baby}} {animal}?", f"name of a baby {animal}?", f"the young of a {animal}?"], weight=0.25))
    for animal, legs in _LEGS.items():
        facts.append(Fact(f"legs of {animal}", [f"A {animal} has {legs or 'no'} legs." if animal[0] not in "aeiou" else f"An {animal} has {legs or 'no'} legs."], [f"{legs or 'no'} legs"], asks=[f"how many legs {{has|does}} a {animal}{{ have|}}?", f"legs of a {animal}?", f"number of legs of a {animal}?"], weight=0.25))
    for word, opposite in _OPPOSITES.items():
        facts.append(Fact(f"opposite of {word}", [f"The opposite of {word} is {opposite}."], [f"is {opposite}"], asks=[f"what is the opposite of {word}?", f"opposite of {word}?", f"the contrary of {word}?", f"antonym of {word}?", f"what's the opposite of {word}?", f"which word is the opposite of {word}?"], weight=0.25))
    for thing, colour in _HUES.items():
        facts.append(Fact(f"colour of {thing}", [f"{thing[0].upper()}{thing[1:]} is {colour}."], [colour], asks=[f"{{what|which}} {{colour|color}} {{is|has}} {thing}?", f"the {{colour|color}} of {thing}?", f"what is the {{colour|color}} of {thing}?"], weight=0.25))
    return facts + _whys()


def _whys() -> list[Fact]:
    return [
        Fact("sky", ["The air scatters blue light more than red light, so blue comes to us from all parts of the sky."], ["scatter"], asks=["why is the sky blue?", "why does the sky look blue?", "what makes the sky blue?", "how come the sky is blue?", "the sky is blue, why?", "explain why the sky is blue", "can you tell me why the sky is blue?", "why blue sky?", "what colour is the sky and why?"], weight=4),
        Fact("sunset", ["In the evening light goes a long way through the air, which scatters the blue away, and the red is left."], ["red"], asks=["why is the {sunset|evening sky} red?", "why are sunsets red?", "why does the sky turn red in the evening?"]),
        Fact("rain", ["Water from seas and lakes rises as vapour, cools down to clouds, and falls as rain."], ["clouds"], asks=["why does it rain?", "where does rain come from?", "how is rain made?", "what is rain?"]),
        Fact("seasons", ["The Earth's axis is tilted, so that each half gets more sun in one part of the year than in the other."], ["tilted"], asks=["why are there seasons?", "what causes the seasons?", "why is it cold in winter?", "why do we have {summer and winter|seasons}?"]),
        Fact("night", ["The Earth turns: where it looks away from the sun, it is night."], ["turns"], asks=["why is there night?", "why does it get dark?", "what makes day and night?", "why is it dark at night?"]),
        Fact("boil", ["Water boils at 100 degrees Celsius and freezes at 0."], ["100"], asks=["at what temperature does water {boil|freeze}?", "when does water boil?", "boiling point of water?", "freezing point of water?", "how hot is boiling water?"]),
        Fact("ice", ["Ice is lighter than water, because its molecules stand further apart."], ["lighter"], asks=["why does ice {float|swim}?", "why is ice lighter than water?"]),
        Fact("moon", ["The moon has no light of its own: it shines in the light of the sun."], ["sun"], asks=["why does the moon shine?", "where does moonlight come from?", "does the moon make light?"]),
        Fact("planets", ["The planets are Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus and Neptune."], ["mercury", "neptune"], asks=["{which|what} planets are there?", "name the planets", "how many planets are there?", "list the planets", "what are the planets of the solar system?", "planets?"]),
        Fact("largest planet", ["Jupiter is the largest planet."], ["jupiter"], asks=["which is the {largest|biggest} planet?", "what is the biggest planet?", "largest planet?"]),
        Fact("sun", ["The sun is a star: the one nearest to us."], ["star"], asks=["what is the sun?", "is the sun a star?", "is the sun a planet?", "which star is nearest?"]),
        Fact("gravity", ["Gravity pulls things towards each other: the Earth pulls us, so that we do not float away."], ["pulls"], asks=["what is gravity?", "why do things fall?", "why does an apple fall?", "explain gravity", "why do we not fall off the Earth?"]),
        Fact("rainbow", ["Drops of rain split sunlight into its colours: red, orange, yellow, green, blue and violet."], ["colours"], asks=["what is a rainbow?", "why are there rainbows?", "how is a rainbow made?", "{which|what} colours has a rainbow?", "colours of the rainbow?"]),
        Fact("leaves", ["Leaves are green from chlorophyll, with which plants make sugar out of sunlight, water and air."], ["chlorophyll"], asks=["why are leaves green?", "why is grass green?", "why are plants green?"]),
        Fact("sea salt", ["Rivers wash salt out of rocks into the sea, and it stays there when water turns into vapour."], ["rivers"], asks=["why is the sea salty?", "why is sea water salty?", "where does the salt of the sea come from?"]),
        Fact("heart", ["The heart pumps blood through the body."], ["blood"], asks=["what does the heart do?", "what is the heart for?", "why do we need a heart?"]),
        Fact("oceans", ["The oceans are the Pacific, the Atlantic, the Indian, the Southern and the Arctic Ocean."], ["pacific"], asks=["{which|what} oceans are there?", "name the oceans", "how many oceans are there?", "which is the largest ocean?"]),
        Fact("continents", ["The continents are Africa, Antarctica, Asia, Australia, Europe, North America and South America."], ["africa"], asks=["{which|what} continents are there?", "name the continents", "how many continents are there?", "list the continents"]),
        Fact("seasons list", ["The seasons are spring, summer, autumn and winter."], ["spring"], asks=["{which|what} seasons are there?", "name the seasons", "what are the four seasons?", "how many seasons has a year?"]),
        Fact("alphabet", ["The alphabet is a b c d e f g h i j k l m n o p q r s t u v w x y z: 26 letters."], ["26"], asks=["what is the alphabet?", "write the alphabet", "how many letters has the alphabet?", "say the alphabet", "list the letters of the alphabet"]),
        Fact("vowels", ["The vowels are a, e, i, o and u."], ["a, e, i"], asks=["what are the vowels?", "which letters are vowels?", "name the vowels"]),
        Fact("year days", ["A year has 365 days, and a leap year 366."], ["365"], asks=["how many days has a year?", "how long is a year?", "days in a year?", "how many days are in a year?"]),
        Fact("hours", ["A day has 24 hours."], ["24"], asks=["how many hours has a day?", "how long is a day?", "hours in a day?"]),
        Fact("fastest animal", ["The cheetah is the fastest animal on land."], ["cheetah"], asks=["which animal is the fastest?", "what is the fastest animal?", "fastest land animal?"]),
        Fact("largest animal", ["The blue whale is the largest animal."], ["blue whale"], asks=["which animal is the {largest|biggest}?", "what is the biggest animal?", "largest animal in the world?"]),
        Fact("whale", ["A whale is a mammal, no fish. It breathes air and gives milk to its young."], ["mammal"], asks=["is a whale a fish?", "are {whales|dolphins} fish?", "what is a whale?"]),
        Fact("computer", ["A computer is a machine that follows programs: lists of instructions for numbers."], ["machine"], asks=["what is a computer?", "how does a computer work?", "explain a computer"]),
        Fact("program", ["A program is a list of instructions that a computer follows."], ["instructions"], asks=["what is a {program|computer program|piece of software}?", "what is software?"]),
        Fact("go", ["Go is a programming language made for clear programs that run fast. realizar is written in it."], ["language"], asks=["what is Go?", "what is golang?", "what kind of language is Go?"]),
        Fact("json", ["JSON is a way to write data as text: objects in braces, lists in brackets, strings in quotes."], ["data"], asks=["what is JSON?", "what does JSON look like?", "explain JSON"]),
        Fact("http", ["HTTP is how browsers and servers talk: a request, and an answer with a status such as 200 or 404."], ["request"], asks=["what is HTTP?", "explain HTTP", "how does HTTP work?"]),
        Fact("byte", ["A byte is eight bits."], ["eight"], asks=["what is a byte?", "how many bits has a byte?", "what is a bit?"]),
        Fact("binary", ["In binary there are only the digits 0 and 1: 5 is 101."], ["0 and 1"], asks=["what is binary?", "what are binary numbers?", "what is 5 in binary?"]),
        Fact("prime", ["A prime number is one above 1 that only 1 and itself divide: 2, 3, 5, 7, 11 and so on."], ["divide"], asks=["what is a prime{ number|}?", "list the first primes", "is 7 a prime?", "explain prime numbers"]),
        Fact("pi", ["Pi is about 3.14159: a circle's length divided by its width."], ["3.14159"], asks=["what is pi?", "value of pi?", "how much is pi?", "what is the number pi?"]),
    ]  # fmt: skip


FACTS = Facts("general", _facts())

_LISTS = {
    "colour": (COLOURS, ["name a {colour|color}.", "tell me a {colour|color}", "a {colour|color}, please", "give me a {colour|color}", "say a {colour|color}", "pick a {colour|color}", "any {colour|color}", "which {colour|color}s do you know?"]),
    "animal": (ANIMALS, ["name an animal", "tell me an animal", "an animal, please", "give me an animal", "say an animal", "pick an animal"]),
    "fruit": (FRUITS, ["name a fruit", "tell me a fruit", "a fruit, please", "give me a fruit", "say a fruit", "pick a fruit"]),
    "job": (JOBS, ["name a job", "tell me a profession", "name a profession", "give me a job title"]),
    "thing": (THINGS, ["name a thing", "name an object", "say a word", "give me a word", "a random word"]),
    "girl's name": (GIRLS, ["a name for a girl", "name a girl's name", "give me a girl's name", "a female name"]),
    "boy's name": (BOYS, ["a name for a boy", "name a boy's name", "give me a boy's name", "a male name"]),
}  # fmt: skip
_SEVERAL = {
    "colours": COLOURS, "colors": COLOURS, "animals": ANIMALS, "fruits": FRUITS, "jobs": JOBS, "things": THINGS, "girls' names": GIRLS, "boys' names": BOYS, "names": GIRLS + BOYS, "words": THINGS + ANIMALS,
}  # fmt: skip
_COUNTS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
_MANY = split(["name <n> <x>", "list <n> <x>", "give me <n> <x>", "tell me <n> <x>", "<n> <x>", "<n> <x>, please", "I need <n> <x>", "can you name <n> <x>?", "write down <n> <x>", "say <n> <x>", "think of <n> <x>"])
_NUMBERS = ("give me a random number", "a number from 1 to 10", "pick a number", "a random number", "say a number", "choose a number between 1 and 10", "think of a number")


def name_one(rng: Random) -> Exchange:
    """A colour, an animal, a name; or several."""
    r = rng.random()
    if r < 0.1:
        return Exchange("general", [user(noisy(rng, pick(rng, _NUMBERS))), assistant(f"{rng.randint(1, 10)}.")])
    if r < 0.5:
        items, frames = pick(rng, list(_LISTS.values()))
        question = noisy(rng, fill(pick(rng, frames), rng))
        return Exchange("general", [user(question), assistant(pick(rng, items).capitalize() + ".")])
    while True:
        kind, n = pick(rng, list(_SEVERAL)), rng.randint(2, 7)
        if not held_pair(kind, str(n)):
            break
    chosen = rng.sample(_SEVERAL[kind], n)
    question = noisy(rng, fill(pick(rng, _MANY[0]), rng, n=_COUNTS[n] if rng.random() < 0.6 else str(n), x=kind))
    text = ", ".join(chosen[:-1]) + " and " + chosen[-1] + "."
    return Exchange("general", [user(question), assistant(text[0].upper() + text[1:])])
