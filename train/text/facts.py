"""Facts: things to know, each with the ways to ask for it and to say it.

A fact may be asked in sentences of its own (asks), as something that one wants to do
(goals, put into frames such as "how do I ...?") or as a thing (topics, in frames such
as "what is ...?"). Frames and phrases are kept from training one by one, and so are
combinations of the two.
"""

from dataclasses import dataclass, field
from random import Random

from . import names
from .conversation import Exchange, assistant, right, user
from .frames import FRAMES
from .grammar import fill, held_pair, kept, pick, split, variants
from .noise import noisy
from .paraphrase import key_words, reword, swap
from .rephrasings import ASKS, GOALS


class FactError(ValueError):
    """A fact that contradicts itself."""


@dataclass
class Fact:
    """A thing to know. The texts are templates; says holds the ways to say it."""

    key: str
    says: list[str]
    must: list
    asks: list[str] = field(default_factory=list)
    goals: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    must_not: list = field(default_factory=list)
    goal_frames: str = "do"
    topic_frames: str = "what"
    weight: float = 1.0
    flag: str = ""  # that it is about, for what is asked next
    command: str = ""

    def __post_init__(self) -> None:
        for says in self.says:
            for text in variants(says, limit=16):
                names.check(text)
                if not right({"must": self.must, "must_not": self.must_not}, text):
                    raise FactError(f"{self.key}: not right by its own marks: {text!r} {self.must}")
        if not (self.asks or self.goals or self.topics):
            raise FactError(f"nobody can ask for {self.key}")
        self.asks, self.goals = self.asks + ASKS.get(self.key, []), self.goals + GOALS.get(self.key, [])
        self._asks = split(self.asks)
        self._goals = split(self.goals)
        # A thing has few names, and those are not kept from training.
        self._ways: list[tuple[float, str]] = []
        for name, items, weight in (("ask", self.asks, 1.0), ("goal", self.goals, 1.4), ("topic", self.topics, 1.2)):
            if items:
                self._ways.append((weight * min(4, len(items)) ** 0.5, name))
        self._total = sum(w for w, _ in self._ways)

    def _way(self, rng: Random) -> str:
        at = rng.random() * self._total
        for weight, name in self._ways:
            at -= weight
            if at < 0:
                return name
        return self._ways[-1][1]

    def question(self, rng: Random) -> str:
        """A question as training may have it."""
        way = self._way(rng)
        if way == "ask":
            return reword(rng, self._known(rng, self._asks[0]))
        phrases = self._goals[0] if way == "goal" else self.topics
        frames = FRAMES[self.goal_frames if way == "goal" else self.topic_frames][0]
        template = pick(rng, phrases)
        frame = pick(rng, frames)
        while held_pair(frame, template):
            frame = pick(rng, frames)
        if way == "topic":  # a name stays what it is
            phrase = fill(template, rng)
            if rng.random() < 0.2:
                new = swap(rng, frame, 0.5)
                frame = frame if kept(new) else new
            return fill(frame, rng, x=phrase)
        known = self._known(rng, [template])
        if rng.random() < 0.14:
            return self._bare(rng, known)
        new = swap(rng, frame, 0.3) if rng.random() < 0.2 else frame
        return fill(frame if kept(new) else new, rng, x=reword(rng, known))

    def _known(self, rng: Random, templates: list[str]) -> str:
        # Two templates may stand for the same text, of which one is kept from training.
        for _ in range(8):
            text = fill(pick(rng, templates), rng)
            if not kept(text):
                break
        return text

    def _bare(self, rng: Random, phrase: str) -> str:
        """Key words as into a search box."""
        words = key_words(rng, swap(rng, phrase, 0.3) if rng.random() < 0.5 else phrase)
        if kept(words):
            return phrase
        kind = {"do flag": ("flag", "option", "setting", "parameter"), "do command": ("command", "command", "subcommand")}.get(self.goal_frames, ("realizar", "how"))
        r = rng.random()
        return words if r < 0.5 else f"{words} {pick(rng, kind)}" if r < 0.8 else f"{pick(rng, kind)} {words}"

    def held_questions(self, rng: Random) -> list[tuple[str, str]]:
        """Questions that training never has, with what was kept from it."""
        out = [("wording", fill(ask, rng)) for ask in self._asks[1]]
        for phrases, frames_name in ((self._goals, self.goal_frames), ((self.topics, []), self.topic_frames)):
            train_frames, held_frames = FRAMES[frames_name]
            if phrases[0]:
                out.append(("frame", fill(pick(rng, held_frames), rng, x=fill(pick(rng, phrases[0]), rng))))
                pairs = [(f, p) for f in train_frames for p in phrases[0] if held_pair(f, p)]
                if pairs:
                    frame, phrase = pick(rng, pairs)
                    out.append(("pair", fill(frame, rng, x=fill(phrase, rng))))
            for phrase in phrases[1]:
                out.append(("wording", fill(pick(rng, train_frames), rng, x=fill(phrase, rng))))
        return out

    def answer(self, rng: Random) -> str:
        """One of the ways to say it."""
        return fill(pick(rng, self.says), rng).rstrip()

    def exchange(self, rng: Random, kind: str) -> Exchange:
        """A question and its answer for training."""
        asked = [user(noisy(rng, self.question(rng))), assistant(self.answer(rng))]
        return Exchange(kind, asked, flag=self.flag, command=self.command)


class Facts:
    """The facts of a subject."""

    def __init__(self, kind: str, facts: list[Fact]) -> None:
        self.kind = kind
        self.facts = facts
        self._bag = [f for f in facts for _ in range(max(1, round(4 * f.weight)))]
        seen = set()
        for f in facts:
            if f.key in seen:
                raise FactError(f"two facts are called {f.key}")
            seen.add(f.key)

    def pick(self, rng: Random) -> Fact:
        """One of the facts, by weight."""
        return pick(rng, self._bag)

    def __call__(self, rng: Random) -> Exchange:
        return self.pick(rng).exchange(rng, self.kind)

    def held(self, rng: Random) -> list[Exchange]:
        """What is asked of the trained model."""
        out = []
        for f in self.facts:
            for why, question in f.held_questions(rng):
                asked = [user(noisy(rng, question)), assistant(f.answer(rng))]
                out.append(Exchange(f"{self.kind}", asked, f.must, f.must_not, held=why))
        return out
