"""Short stories from a grammar: a hero, a wish or a trouble, a try, a turn, an end."""

from dataclasses import dataclass
from random import Random

from .conversation import Exchange, assistant, system, user
from .grammar import fill, pick, split
from .noise import noisy
from .pools import BOYS, GIRLS, JOBS, made_up


@dataclass(frozen=True)
class _Hero:
    """Who a story is about: kind, its name, its pronouns."""

    kind: str
    name: str
    he: str
    him: str
    his: str


_BEASTS = (
    "fox bear owl mouse rabbit cat dog wolf deer frog turtle snail bee whale dolphin crab seal penguin lion tiger elephant giraffe monkey goat donkey squirrel hedgehog badger otter beaver crow"
    " sparrow swan dragon robot goose duck hen horse cow pig ant spider snake eagle parrot bat lizard giant ghost wizard knight princess prince king queen pirate unicorn fairy troll"
).split()
_GIRL_KINDS, _BOY_KINDS = {"princess", "queen", "fairy"}, {"prince", "king", "knight", "wizard", "pirate"}
_PLACES = (
    "in a deep forest", "in a small village", "by the sea", "high in the mountains", "beside a wide river", "on a lonely island", "in a loud city", "in an old garden", "in a grey castle", "at the edge of the desert", "on a quiet farm", "at a still lake",
    "in a busy harbour", "in a tall tower", "in a green valley", "on the moon", "in a cave behind a waterfall", "on a wide meadow", "in a little school", "on a wooden ship", "in a mill at the brook", "in a dusty library", "at a railway station",
)  # fmt: skip
_THINGS = "lamp clock book bottle box key coin ring rope map mirror candle basket blanket hat coat umbrella ball drum flute bell kite boat wagon ladder hammer brush spoon bowl stone feather shell flower seed star lantern letter egg cake crown sword".split()

_OPENINGS = [
    "{Once upon a time|Long ago|Once|In the old days|Many years ago|One autumn|One winter|A long time ago} {there lived|there was} <a_kind> called <name> <place>.",
    "<name> was <a_adj> <kind> who lived <place>.", "<Place> lived <a_adj> <kind>. <His> name was <name>.", "<name> the <kind> lived <place>, and all who knew <him> said that <he> was <adj>.",
    "There was once <a_adj> <kind> <place>, and everybody called <him> <name>.", "{Do you know|Have you heard of} <name>, the <adj> <kind> <place>? {Listen.|This is what happened.|Here is the story.}",
    "This is the story of <name>, <a_kind> who lived <place>.", "Nobody <place> was as <adj> as <name> the <kind>.", "When the {days grew short|first snow fell|leaves fell|spring came|summer began}, <a_adj> <kind> named <name> came to live <place>.",
    "<name> was the {smallest|youngest|oldest|quietest|loudest} <kind> <place>.", "Every {morning|evening|night|day}, <name> the <kind> {looked out of the window|walked alone|sat and thought|sang a song} <place>.",
]  # fmt: skip
_WISHES = [
    "More than anything, <he> wanted {a|one|the most beautiful} <thing>.", "<He> had {lost|dropped|forgotten} <his> <thing>, and without it <he> could not sleep.", "<His> <thing> was broken, and <he> did not know how to mend it.",
    "All day <he> {dreamed of|thought of|talked about} a <thing> that {shone like the sun|could sing|nobody had ever seen|belonged to the king}.", "One {morning|night|day}, <he> found a {strange|golden|tiny|dusty|silver} <thing> {at the door|under a stone|in the grass|beside the path}.",
    "<He> was afraid of {the dark|deep water|thunder|high places|strangers}, and <he> told nobody.", "<He> had no friend at all, only an old <thing>.", "<He> wanted to see {the sea|the end of the world|the moon from near|snow|the big city} just once.",
    "Nobody believed that <he> could {swim|sing|fly|read|dance|find the way}.", "A {storm|flood|fire|long winter} had taken everything but <his> <thing>.", "One day a {letter|stranger|bird|cloud} came and said: \"{Bring me a|Find the|Look for the} <thing>, {before the sun sets|and you will be free|or nobody will sleep again}.\"",
    "<He> had promised <his> {mother|grandmother|brother|sister|old teacher} to bring home a <thing>.", "Every night somebody stole a <thing>, and nobody knew who.", "<He> had never told anyone that <he> was {lonely|afraid|homesick|tired of being small}.",
]  # fmt: skip
_TRIES = [
    "So <he> {set out|left home|went off|began to walk} {at dawn|at night|alone|with a piece of bread in <his> bag|without a word}.", "<He> asked {the river|the wind|an old tree|the moon|everybody}, but {nobody|it|no one} had an answer.",
    "<He> looked {under every stone|behind every door|in every corner|everywhere}, for {three days|a whole night|a week|many hours}.", "<He> climbed {the highest hill|a tall tree|over the wall|to the roof}, but all that <he> saw was {fog|more hills|the empty road|stars}.",
    "<He> tried once, and fell. <He> tried again, and fell again.", "<He> {hid behind a bush|held <his> breath|closed <his> eyes} and waited.", "<He> built {a raft|a ladder|a trap|a little bridge} out of {old wood|branches|boxes|stones}, and it {held|broke|floated} {for a while|at first|after all}.",
    "On the way <he> met <a_helper> {who was crying|who was lost|who was stuck in the mud|who laughed at <him>|who had lost the way}.", "The road was long, and {the rain|the snow|the heat|the dark} made it longer.", "<He> wrote {a list|a letter|a plan}, but the wind took it away.",
]  # fmt: skip
_TURNS = [
    "Then <a_helper> came {along the path|out of the dark|down from a tree} and said: \"{I can help you|Why are you so sad?|Come with me|You are looking in the wrong place}.\"", "Just then, <a_helper> called: \"{Wait!|Look behind you!|Not that way!|Listen!}\"",
    "At midnight <he> heard {a voice|a song|steps|a small cough}. It was <a_helper>.", "\"{You only have to ask|Try it slowly|Begin with the easy part|Two are stronger than one},\" said <a_helper>.", "<A_helper> shared {some bread|a blanket|the last apple|a warm fire} with <him>, and <he> told <his> whole story.",
    "And there, {in the moonlight|under the snow|behind an old door|between two stones}, lay the <thing>.", "<He> remembered what <his> {grandmother|father|teacher|mother} had said: \"{Look where nobody looks|Be kind first|The long way is often the short one|Count to ten}.\"",
    "<He> gave <his> {last coin|only apple|warm coat|place by the fire} to <a_helper>, and the {stranger|other} smiled: \"{Now I will show you|You have a good heart|Take this in return}.\"", "Together with <a_helper>, <he> {pulled and pulled|pushed with all might|sang until morning|carried stone after stone}.",
]  # fmt: skip
_ENDS = {
    "happy": [
        "From that day on, <name> was {never alone again|the happiest <kind> of all|brave}.", "<name> laughed, and {everybody laughed with <him>|the whole village danced|the stars seemed to laugh, too}.", "And so <name> came home, with {a friend at <his> side|the <thing> in <his> bag|a song on <his> lips}.",
        "That evening there was {cake|music|soup|dancing} for everybody, and <name> {slept well at last|told the story three times|smiled until bedtime}.", "<name> had found more than {a <thing>|<he> had looked for}: <he> had found {a friend|courage|a home}.", "And if you go there today, you can still {hear <him> sing|see the <thing> shine|find them both}.",
    ],
    "sad": [
        "But when <he> came back, {the house was empty|everybody had gone|the <thing> was gone}.", "<name> looked back once more, and went on alone.", "The <thing> never shone again, and <name> {kept it all the same|never spoke of it|cried a little every spring}.", "Since then, when it rains <place>, people say: that is <name>, who {still waits|has not forgotten}.",
        "<He> said goodbye in a low voice, and only the wind heard it.", "It was too late. But <name> planted a flower there, and it grows to this day.",
    ],
    "funny": [
        "Only then did <he> notice: the <thing> had been {on <his> head|in <his> pocket|under <his> hat} all the time.", "And <he> slipped, and flew, and landed in {the soup|a barrel of honey|the mayor's cake|a heap of hay}. Everybody laughed, <name> most of all.", "\"{Next time I will stay in bed|Never again before breakfast|I meant to do that},\" said <name>, and sneezed.",
        "The <thing> said: \"{Could you put me down now?|You might have asked me first.|I am not even a <thing>.}\" <name> fainted.", "Since that day nobody <place> asks <name> to {cook|help|sing|bring a <thing>} any more.", "It turned out that it had been the wrong {house|day|<thing>|<kind>} all along.",
    ],
    "scary": [
        "But when <he> turned around, {the door was gone|there were two shadows|something breathed behind <him>}.", "Since that night <name> never {sleeps without a light|goes there alone|opens that door}.", "And if you listen at midnight, you can still hear it: knock, knock, knock.", "The <thing> was warm, as if {somebody had just held it|it were alive}. <name> ran and did not stop before morning.",
        "In the morning only <his> <thing> was found.",
    ],
    "mysterious": [
        "Nobody ever learned who had put it there, and <name> only smiled.", "In the morning <he> found a second <thing> beside <his> bed, and a note: \"{Not yet|Thank you|Tomorrow}.\"", "The <thing> was gone, and where it had been, there was {a white feather|a drop of water|a small key}.", "<name> never told what <he> had seen. But <his> eyes were different from that day on.",
        "And the old clock, which had been silent for a hundred years, struck one.",
    ],
    "brave": [
        "<He> was still afraid, but <he> {went on|did it all the same|stepped forward}, and that is what being brave means.", "<name> stood in front of everybody and said it aloud. Nobody laughed any more.", "The {storm|giant|night|river} gave way at last, and <name> walked home with <his> head high.", "From then on they called <him> <name> the Brave.",
    ],
}  # fmt: skip
_MORALS = ("Whoever shares is never poor.", "A friend is the best thing to find.", "Small ones can do great things.", "Who asks finds the way.", "Patience opens many doors.", "What is lost is often near.", "To be afraid and go on all the same is courage.", "Kindness comes back.")

_ASKS = split([
    "tell me a story{ please|}", "tell me a {short |little |}story about <x>", "{can|could} you tell me a story{ about <x>|}?", "write a {short |}story about <x>", "a story about <x>{, please|}", "I want a story about <x>", "I would like {a story|to hear a story} about <x>", "story about <x>", "make up a story about <x>",
    "invent a story with <x>", "tell a story in which <x> appears", "do you know a story about <x>?", "a {short |}story with <x>", "please tell me a story{ about <x>|}", "let me hear a story about <x>", "my {daughter|son|child} wants a story about <x>", "a bedtime story about <x>", "bedtime story{ about <x>|}, please", "tell us about <x>, as a story",
    "write me a {little |short |}tale of <x>", "narrate a story about <x>", "once upon a time there was <x>. go on", "I need a story about <x> for {my kids|school|tonight}", "give me a {short |}story with <x> in it", "can I have a story about <x>?", "tell me something about <x>, a story", "a fairy tale about <x>", "tell me a tale",
])  # fmt: skip
_PLAIN_ASKS = split([
    "tell me a story", "tell me a story please", "a story, please", "can you tell me a story?", "do you know a story?", "write a story", "story", "I want to hear a story", "read me a story", "another story", "tell a story", "one more story", "make up a story", "a short story, please", "please write a short story", "bedtime story",
    "tell me a fairy tale", "something to read, a story", "would you tell me a story?",
])  # fmt: skip
_MOOD_WORDS = {
    "happy": ("happy", "cheerful", "nice"), "sad": ("sad", "melancholy"), "funny": ("funny", "silly", "comical"), "scary": ("scary", "spooky", "creepy"), "mysterious": ("mysterious", "strange", "secret"), "brave": ("brave", "heroic", "exciting"),
}  # fmt: skip


def _article(word: str) -> str:
    return ("an " if word[0] in "aeiou" else "a ") + word


def _hero(rng: Random) -> _Hero:
    r = rng.random()
    if r < 0.45:
        kind = pick(rng, _BEASTS)
        girl = kind in _GIRL_KINDS or (kind not in _BOY_KINDS and rng.random() < 0.5)
    elif r < 0.75:
        girl = rng.random() < 0.5
        kind = "girl" if girl else "boy"
    else:
        girl = rng.random() < 0.5
        kind = pick(rng, JOBS) if rng.random() < 0.8 else "old woman" if girl else "old man"
    name = pick(rng, GIRLS if girl else BOYS) if rng.random() < 0.75 else made_up(rng).capitalize()
    he = ("she", "her", "her") if girl else ("he", "him", "his")
    return _Hero(kind, name, *he)


_ADJ = "small clever shy kind brave curious quiet lazy cheerful proud gentle stubborn lonely forgetful careful merry old young".split()


_WITH_THING = [w for w in _WISHES if "<thing>" in w]
_WITH_HELPER = [t for t in _TURNS if "_helper>" in t]


def tell(rng: Random, hero: _Hero, place: str, thing: str, helper: str, mood: str, asked: str) -> str:
    """The story, with the thing and the helper in it where they were asked for."""
    adj = pick(rng, _ADJ if not hero.kind.startswith("old ") else _ADJ[:10])
    slots = {
        "kind": hero.kind, "a_kind": _article(hero.kind), "name": hero.name, "place": place, "Place": place[0].upper() + place[1:], "adj": adj, "a_adj": _article(adj), "he": hero.he, "him": hero.him, "his": hero.his,
        "He": hero.he.capitalize(), "His": hero.his.capitalize(), "thing": thing, "helper": helper, "a_helper": _article(helper), "A_helper": _article(helper).capitalize(), "a_thing": _article(thing),
    }  # fmt: skip
    sentences = [
        pick(rng, _OPENINGS), pick(rng, _WITH_THING if thing in asked else _WISHES), *rng.sample(_TRIES, rng.randint(1, 2)),
        pick(rng, _WITH_HELPER if helper in asked else _TURNS), pick(rng, _ENDS[mood]),
    ]  # fmt: skip
    text = " ".join(_fill(s, rng, slots) for s in sentences)
    if rng.random() < 0.15:
        text += " " + pick(rng, _MORALS)
    return text


def _fill(template: str, rng: Random, slots: dict[str, str]) -> str:
    # Slots begin with small letters in templates; these two are written large.
    for large in ("He", "His", "Place", "A_helper"):
        template = template.replace(f"<{large}>", f"<x_{large.lower()}>")
    more = {f"x_{k.lower()}": slots[k] for k in ("He", "His", "Place", "A_helper")}
    text = fill(template, rng, **slots, **more)
    for vowel in "aeiou":
        text = text.replace(f" a {vowel}", f" an {vowel}")
    text = text.replace('?."', '?"').replace('!."', '!"')
    return text.replace(" an unicorn", " a unicorn").replace(" an one", " a one").replace(" an used", " a used")


def story(rng: Random) -> Exchange:
    """A request for a story, and the story."""
    hero = _hero(rng)
    place = pick(rng, _PLACES)
    thing, helper = pick(rng, _THINGS), pick(rng, _BEASTS)
    while helper == hero.kind:
        helper = pick(rng, _BEASTS)
    mood = pick(rng, list(_ENDS)) if rng.random() < 0.6 else "happy"
    r = rng.random()
    if r < 0.2:
        question, mood = fill(pick(rng, _PLAIN_ASKS[0]), rng), "happy"
        asked = noisy(rng, question)
    else:
        about = []
        if rng.random() < 0.85:
            about.append(_article(hero.kind) + (f" {pick(rng, ('named', 'called'))} {hero.name}" if rng.random() < 0.35 else ""))
        elif rng.random() < 0.5:
            about.append(hero.name)
        if rng.random() < 0.35 or not about:
            about.append(_article(thing))
        if rng.random() < 0.2:
            about.append(_article(helper))
        text = about[0] if len(about) == 1 else ", ".join(about[:-1]) + " and " + about[-1]
        if rng.random() < 0.15:
            text += " " + place
        template = pick(rng, _ASKS[0])
        frame = fill(template, rng, x="\x01")
        asked_mood = rng.random() < 0.35
        if asked_mood:
            word = pick(rng, _MOOD_WORDS[mood])
            if " a story" in f" {frame}":
                frame = f" {frame}".replace(" a story", " " + _article(word) + " story", 1).strip()
            else:
                frame = f"{frame}. make it {word}"
        elif rng.random() < 0.7:
            mood = "happy"
        asked = noisy(rng, frame).replace("\x01", text)
    messages = [user(asked), assistant(tell(rng, hero, place, thing, helper, mood, asked))]
    if rng.random() < 0.05:
        messages.insert(0, system(pick(rng, ("You tell stories.", "You are a storyteller.", "Tell short stories for children.", "You write fairy tales."))))
    return Exchange("stories", messages)


_COUPLETS = [
    "The <x> sat down beside the sea / and sang a song for you and me.", "The <x> looked up into the sky / and saw the evening clouds go by.", "The <x> walked softly through the night / and carried home a little light.", "The <x> was waiting for the rain / and then the sun came out again.",
    "The <x> lay sleeping in the snow / and dreamed of summers long ago.", "The <x> was old, the <x> was wise, / the stars were resting in its eyes.", "A <x> once travelled very far / to bring me back a falling star.", "The <x> and I, we share the day, / and when it ends, the <x> will stay.", "O little <x>, o silver moon, / the morning comes, and comes too soon.",
    "The wind is cold, the road is long, / the <x> is humming its old song.", "I met a <x> one day in May, / it nodded once and went its way.", "The <x> is small, the world is wide, / but there is room for both inside.", "When all the house is fast asleep, / the <x> has promises to keep.", "The <x> says little, that is true, / but all it says it says to you.",
]  # fmt: skip
_POEM_ASKS = split([
    "write {me |}a poem{ about <x>|}", "a poem about <x>{, please|}", "can you write a poem about <x>?", "poem about <x>", "I want a poem about <x>", "write some verses about <x>", "make a rhyme about <x>", "write a short poem about <x>", "tell me a poem about <x>", "compose a poem about <x>", "a rhyme with <x>", "rhyme about <x>", "do you write poems? one about <x>",
])  # fmt: skip


def poem(rng: Random) -> Exchange:
    """A request for a poem, and two couplets."""
    word = pick(rng, _BEASTS + _THINGS)
    frame = fill(pick(rng, _POEM_ASKS[0]), rng, x="\x01")
    asked = noisy(rng, frame).replace("\x01", _article(word) if rng.random() < 0.6 else "the " + word)
    lines = []
    for couplet in rng.sample(_COUPLETS, 2):
        couplet = couplet.replace("A <x>", _article(word).capitalize()).replace("a <x>", _article(word))
        lines += couplet.replace("<x>", word).split(" / ")
    return Exchange("stories", [user(asked), assistant("\n".join(lines))])
