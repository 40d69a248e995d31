"""The same question in other words: synonyms, key words alone, another order.

What a question is about has to be learnt from its key words and not from its
sentence. No phrase that is kept from training comes out of it: grammar.kept says which.
"""

import re
from random import Random

from .grammar import kept, pick

# Words that may stand for each other wherever they stand.
_GROUPS = (
    "limit/restrict/cap/bound; answer/reply/response; answers/replies/responses; show/print/display; change/adjust/alter/modify; set/choose/specify/define; use/employ/apply"
    "; begin/start/launch; check/verify; fast/quick; faster/quicker; slow/sluggish; big/large; bigger/larger; longer/lengthier; shorter/briefer; maximum/largest/highest"
    "; minimum/smallest/lowest; computer/machine/pc; laptop/notebook; several/multiple/many; users/people; requests/queries/calls; request/query/call; processor/cpu"
    "; gpu/graphics card/video card; avoid/prevent; stop/end/halt; stops/ends/halts; memory/ram; get/obtain/receive; see/look at/view; find out/learn; finish/complete"
    "; number/amount/count; same/identical; error/failure; allow/permit; allowed/permitted; forbid/ban; forbidden/banned; different/differing; help/assistance"
    "; folder/directory; documentation/docs/manual; supported/available; support/handle; need/require; needed/required/necessary; needs/requires; flag/option/switch"
    "; flags/options/switches; setting/parameter/option; settings/parameters/options; at once/at one time/at the same time/simultaneously/in parallel; https/tls/ssl"
    "; delete/remove/erase; explain/describe; creative/inventive/imaginative; random/arbitrary; measure/determine; compare/contrast; quantisation/quantization/quant"
    "; quantised/quantized; chat/conversation/dialogue; prompt/input; output/result; turn off/switch off/disable; turn on/switch on/enable; tokens/toks; certificate/cert"
    "; script/program; weird/odd/strange; broken/damaged/corrupt; shut down/stop; reachable/accessible; connect/link; write/produce/generate; writes/produces/generates"
    "; talk/speak; right/correct; wrong/incorrect; usual/normal/common; default/standard/preset; example/sample; always/every time; likely/probable"
    "; likeliest/most likely/most probable; build/compile; made/created/built; training/learning; clients/callers; several/more than one/a few"
    "; getting/becoming/growing; chatting/answering; topics/subjects/themes; encourage/favour; documented/described/explained; authors/makers/creators; author/maker/creator"
    "; publish/offer/host; loses/costs/hurts; interrupt/stop; dump/export/save; facts/details/information; talkative/verbose; alternative/different/other"
    "; an upper limit/a maximum; appeared/occurred/been used; appear/occur/come up; score/logit; gracefully/cleanly/softly; graceful/clean/soft"
    "; measurements/tests/benchmarks; testing/tests; encryption/https; accepted/known/recognised; standing/fixed/general; behaves/acts; speaks/talks; addresses/hosts"
    "; although/though/even if; worse/poorer; impressed/amazed; cool/great/nice; knowledge/wisdom; dimensions/sizes; remembered/kept; taught/trained; fun/amusement"
    "; amuse/entertain; based on/built on/made from; instruction/message; yet/so far; apis/interfaces; transformer/llama; growing/getting; wonder/ask myself"
    "; bounded/limited"
)  # fmt: skip


def _table() -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for group in _GROUPS.split(";"):
        items = group.strip().split("/")
        for item in items:
            table[item] = table.get(item, []) + [o for o in items if o != item]
    return table


SYNONYMS = _table()
_SEVERAL = re.compile("|".join(rf"\b{k}\b" for k in SYNONYMS if " " in k))
_WORD = re.compile(r"[A-Za-z]+|[^A-Za-z]+")
_NAME = re.compile(r"`|--|<|/|\.\w|_|\d")

# What a question in key words leaves out.
_STOP = frozenset(
    "a an the i me my we you it its is are was be do does did can could may might would should will shall must to of for in on at by with that this these there"
    " please how what which who where when why tell give show explain say want need like get make let have has some any and or so just realizar one your own our".split()
)  # fmt: skip


def swap(rng: Random, text: str, much: float) -> str:
    """Some words replaced by synonyms."""
    if rng.random() < 0.5:
        text = _SEVERAL.sub(lambda m: pick(rng, SYNONYMS[m.group()]), text)
    words = _WORD.findall(text)
    for i, w in enumerate(words):
        if w in SYNONYMS and rng.random() < much and not (i and words[i - 1][-1] in "-`_/."):
            words[i] = pick(rng, SYNONYMS[w])
    return "".join(words)


def key_words(rng: Random, text: str) -> str:
    """The words that matter alone, now and then in another order; the text where too few are left."""
    words = [w.strip("?.!,:;") for w in text.split()]
    left = [w for w in words if w and w.lower() not in _STOP]
    if len(left) < 2:
        return text
    if rng.random() < 0.35 and "not" not in left and len(left) < 6:
        rng.shuffle(left)
    return " ".join(left)


def drop(rng: Random, text: str) -> str:
    """A word or two that do not matter left out."""
    words = text.split(" ")
    places = [i for i, w in enumerate(words) if w.lower() in _STOP]
    for i in sorted(rng.sample(places, min(len(places), 1 + (rng.random() < 0.4))), reverse=True):
        del words[i]
    return " ".join(words) or text


_IN = re.compile(r"^(how (?:do I|can I|to) .*?) ((?:in|with|for|of|on) [a-z ]+)\?$")


def turn_round(text: str) -> str:
    """"in X, how do I Y?" for "how do I Y in X?"."""
    m = _IN.match(text)
    return f"{m.group(2)}, {m.group(1)}?" if m else text


def reword(rng: Random, text: str, bare: float = 0.12) -> str:
    """A phrase or a sentence in other words, or as it is. bare says how often it is key words alone."""
    if _NAME.search(text) and rng.random() < 0.7:
        return text
    r = rng.random()
    new = text
    if r < 0.38:
        new = swap(rng, text, 0.5)
    elif r < 0.38 + bare:
        new = key_words(rng, text if rng.random() < 0.5 else swap(rng, text, 0.4))
    elif r < 0.58 + bare:
        new = drop(rng, text)
    elif r < 0.62 + bare:
        new = turn_round(text)
    return text if new != text and kept(new) else new
