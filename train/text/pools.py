"""Words to fill in: names, things, places, and words made up from syllables."""

from random import Random

from .grammar import pick

GIRLS = (
    "Anna Mia Emma Lena Sofia Nora Ida Clara Ella Lily Maya Zoe Ruth Eva Julia Alice Rosa Hana Yuki Amina Leila Olga Ines Freya Tara Nina Greta Martha"
    " Lucy Grace Ivy Daisy Hazel Iris Luna Stella Vera Wanda Ada Beth Carol Diana Fatima Gina Helen Jane Kate Laura Maria Petra Sara Tina"
).split()
BOYS = (
    "Tom Ben Leo Max Paul Felix Jonas Otto Emil Noah Liam Hugo Oscar Finn Karl Ivan Omar Ali Kenji Ravi Samir Pedro Luca Marco Nils Erik Sven Theo Jack"
    " Sam Peter Henry George Arthur Bruno Carlos David Frank Gustav Igor Jakob Kurt Martin Oliver Philip Robert Simon Tim Victor Walter Adam"
).split()
PEOPLE = GIRLS + BOYS
CITIES = (
    "Oslo Paris Rome Berlin London Madrid Lisbon Vienna Prague Dublin Athens Cairo Tokyo Delhi Lima Quito Boston Chicago Denver Toronto Sydney Seoul"
    " Bergen Hamburg Munich Milan Naples Porto Geneva Zurich Riga Vilnius Warsaw Krakow Budapest Sofia Istanbul Ankara Nairobi Accra Lagos Dakar Rabat"
    " Mumbai Chennai Bangkok Hanoi Manila Jakarta Perth Auckland Havana Bogota Santiago Houston Dallas Seattle Austin Montreal Utrecht Ghent"
).split()
ANIMALS = (
    "cat dog fox bear owl mouse rabbit horse cow pig duck goose hen wolf deer frog turtle snail bee ant spider whale dolphin shark crab seal penguin"
    " lion tiger elephant giraffe monkey zebra camel goat sheep donkey squirrel hedgehog badger otter beaver eagle crow sparrow swan parrot lizard snake bat"
).split()
FRUITS = "apple pear plum cherry peach grape lemon orange banana mango melon kiwi fig date lime apricot papaya coconut".split()
FOODS = "bread cheese butter rice soup pasta salad cake honey milk tea coffee salt sugar flour egg onion carrot potato tomato pepper garlic bean corn".split()
COLOURS = "red blue green yellow orange purple pink brown black white grey gold silver violet turquoise".split()
THINGS = (
    "lamp chair table door window clock book pen cup bottle box bag key coin ring rope map mirror candle basket blanket hat coat shoe glove umbrella ball"
    " drum flute bell kite boat wagon wheel ladder hammer nail saw brush spoon fork knife plate bowl pot pan stone leaf feather shell flower seed"
).split()
NATURE = "river mountain forest lake sea island valley hill meadow field desert cave cloud rain snow wind storm star moon sun beach garden path bridge".split()
VERBS = "run walk jump swim fly sing dance read write draw paint cook eat drink sleep dream talk listen laugh cry play work learn teach build plant open close".split()
ADJECTIVES = (
    "big small old young new tall short long happy sad kind brave quiet loud bright dark warm cold soft hard fast slow strong weak clean round sweet sharp"
    " clever gentle proud shy lazy busy hungry tired curious lonely"
).split()
JOBS = "baker farmer teacher doctor sailor painter singer writer miller smith tailor fisher gardener nurse pilot driver carpenter shepherd clerk cook".split()
HOME = "house kitchen room school market shop office library station street village town city farm mill castle tower harbour church park".split()

WORDS = sorted(set(ANIMALS + FRUITS + FOODS + COLOURS + THINGS + NATURE + VERBS + ADJECTIVES + JOBS + HOME))

_ONSETS = "b c d f g h j k l m n p r s t v w z br cl dr fl gr kr pl pr sh sl st th tr".split()
_VOWELS = "a e i o u a e i o ai ea io ou".split()
_CODAS = ("", "", "", "", "n", "l", "r", "s", "m", "t", "x", "nd", "rk", "ng")


def made_up(rng: Random) -> str:
    """A word of two or three syllables that means nothing, in small letters."""
    count = 2 if rng.random() < 0.7 else 3
    syllables = (pick(rng, _ONSETS) + pick(rng, _VOWELS) for _ in range(count))
    return "".join(syllables) + pick(rng, _CODAS)


def person(rng: Random) -> str:
    """A first name, now and then one that nobody has."""
    return pick(rng, PEOPLE) if rng.random() < 0.7 else made_up(rng).capitalize()


def city(rng: Random) -> str:
    """A town, now and then one that there is not."""
    return pick(rng, CITIES) if rng.random() < 0.7 else made_up(rng).capitalize()
