package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Metadata is the metadata of a GGUF file. Every method returns false if the file lacks the key or
// the value has another type.
type Metadata interface {
	String(key string) (string, bool)
	Int(key string) (int64, bool)
	Bool(key string) (bool, bool)
	Strings(key string) ([]string, bool)
	Ints(key string) ([]int64, bool)
	Floats(key string) ([]float64, bool)
}

// Keys of GGUF's metadata for tokenizers (the GGUF specification, "Tokenizer").
const (
	keyModel        = "tokenizer.ggml.model"
	keyPre          = "tokenizer.ggml.pre"
	keyTokens       = "tokenizer.ggml.tokens"
	keyTypes        = "tokenizer.ggml.token_type"
	keyScores       = "tokenizer.ggml.scores"
	keyMerges       = "tokenizer.ggml.merges"
	keyBOS          = "tokenizer.ggml.bos_token_id"
	keyEOS          = "tokenizer.ggml.eos_token_id"
	keyEOT          = "tokenizer.ggml.eot_token_id"
	keyEOM          = "tokenizer.ggml.eom_token_id"
	keyUnknown      = "tokenizer.ggml.unknown_token_id"
	keyPadding      = "tokenizer.ggml.padding_token_id"
	keySeparator    = "tokenizer.ggml.seperator_token_id" // the format spells it so
	keyClass        = "tokenizer.ggml.cls_token_id"
	keyMask         = "tokenizer.ggml.mask_token_id"
	keyAddBOS       = "tokenizer.ggml.add_bos_token"
	keyAddSeparator = "tokenizer.ggml.add_sep_token"
	keyAddEOS       = "tokenizer.ggml.add_eos_token"
	keySpacePrefix  = "tokenizer.ggml.add_space_prefix"
	keyName         = "general.name"

	keyArchitecture = "general.architecture"

	// Tokens between files end an answer too.
	keyFIMPad        = "tokenizer.ggml.fim_pad_token_id"
	keyFIMRepository = "tokenizer.ggml.fim_rep_token_id"
	keyFIMSeparator  = "tokenizer.ggml.fim_sep_token_id"
)

// Types of tokens in tokenizer.ggml.token_type.
const (
	typeNormal      = 1
	typeUnknown     = 2
	typeControl     = 3
	typeUserDefined = 4
	typeUnused      = 5
	typeByte        = 6
)

// metaspaceChar is what SentencePiece writes for a space.
const metaspaceChar = "▁"

// FromGGUF returns the tokenizer that the metadata of a GGUF file describes, as llama.cpp reads it:
// GGUF names no normalizer, so text is not normalized. The special tokens are the control and
// unknown tokens. User-defined tokens match in any text. The longest of all these tokens is matched
// first, anywhere in the text, then the next longest in the rest.
//
// The error wraps [ErrUnsupported] and names the model or pre-tokenizer if this package does not
// have it. It wraps [ErrInvalid] if the metadata is wrong.
func FromGGUF(m Metadata) (*Tokenizer, error) {
	t, err := fromGGUF(m)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: GGUF metadata: %w", err)
	}
	t.bound = newBound(t)
	return t, nil
}

func fromGGUF(m Metadata) (*Tokenizer, error) {
	kind, ok := m.String(keyModel)
	if !ok {
		return nil, fmt.Errorf("%w: no %s", ErrInvalid, keyModel)
	}
	defaults, ok := ggufDefaults[kind]
	if !ok {
		return nil, fmt.Errorf("%w: %s is %s; there are %s here", ErrUnsupported, keyModel, quoted(kind),
			strings.Join(slices.Sorted(maps.Keys(ggufDefaults)), ", "))
	}
	texts, ok := m.Strings(keyTokens)
	if !ok {
		return nil, fmt.Errorf("%w: no %s", ErrInvalid, keyTokens)
	}
	t := &Tokenizer{names: map[string]string{}, folded: newAddedTokens(nil)}
	types := ggufTypes(texts, m)
	t.vocab = ggufVocabulary(texts, types)
	t.added = newLongestFirst(ggufAdded(&t.vocab, types, m))
	id := func(key string) int32 {
		id, ok := m.Int(key)
		if !ok || id < 0 || id >= int64(len(texts)) {
			if id, ok = defaults.ids[key]; !ok || id >= int64(len(texts)) {
				return -1
			}
		}
		return int32(id)
	}
	t.bos, t.eos = id(keyBOS), id(keyEOS)
	var err error
	switch kind {
	case "llama":
		t.ggufSPM(m, id(keyUnknown))
	case "bert":
		t.ggufWordPiece(m, id(keyUnknown))
	case "t5":
		err = t.ggufUnigram(m, types, id(keyUnknown))
	default:
		defaults, err = t.ggufBPE(m, kind)
	}
	if err != nil {
		return nil, err
	}
	around, err := ggufAround(m, t, kind, defaults, id(keySeparator))
	if err != nil {
		return nil, err
	}
	t.post = around.post()
	t.post.pair = around.pair(ggufBetween(m, kind, around, id(keySeparator)))
	for i, id := range []int32{
		t.bos, t.eos, id(keyUnknown), id(keyPadding), id(keySeparator), id(keyClass), id(keyMask),
	} {
		if t.vocab.has(id) {
			t.names[specialNames[i]] = t.vocab.tokens[id].text
		}
	}
	t.ends = ggufEnds(texts, t.eos, id(keyEOT), id(keyEOM), id(keyFIMPad), id(keyFIMRepository), id(keyFIMSeparator))
	t.infill = t.ggufInfill(id)
	return t, nil
}

// ggufDefault holds the defaults of a kind of model.
type ggufDefault struct {
	ids            map[string]int64
	addBOS, addEOS bool
	alwaysBOS      bool // even if the file says otherwise
}

var ggufDefaults = map[string]ggufDefault{
	"gpt2":   {},
	"gemma4": {},
	"llama":  {ids: map[string]int64{keyBOS: 1, keyEOS: 2}, addBOS: true}, // older files hold Llama's vocabulary
	"bert":   {ids: map[string]int64{keyBOS: 101, keyUnknown: 100, keySeparator: 102, keyPadding: 0, keyMask: 103}},
	"t5":     {ids: map[string]int64{keyEOS: 1, keyUnknown: 2, keyPadding: 0}, addEOS: true},
}

// ggufAround returns the tokens before and after a text.
func ggufAround(m Metadata, t *Tokenizer, kind string, d ggufDefault, separator int32) (around template, err error) {
	if kind == "bert" { // whatever the file says
		if t.bos < 0 || separator < 0 {
			return around, fmt.Errorf("%w: no token %s or no token %s", ErrInvalid, keyBOS, keySeparator)
		}
		return template{before: []int32{t.bos}, after: []int32{separator}}, nil
	}
	if add, ok := m.Bool(keyAddBOS); ok && add || (!ok && d.addBOS || d.alwaysBOS) && t.bos >= 0 {
		if t.bos < 0 {
			return around, fmt.Errorf("%w: %s is true but %s names no token", ErrInvalid, keyAddBOS, keyBOS)
		}
		around.before = []int32{t.bos}
	}
	if add, ok := m.Bool(keyAddEOS); ok && add || !ok && d.addEOS && t.eos >= 0 {
		if t.eos < 0 {
			return around, fmt.Errorf("%w: %s is true but %s names no token", ErrInvalid, keyAddEOS, keyEOS)
		}
		around.after = []int32{t.eos}
	}
	return around, nil
}

// ggufBetween returns the tokens before the second text of a pair, after those that end the first:
// models like RoBERTa add a second separator.
func ggufBetween(m Metadata, kind string, around template, separator int32) []int32 {
	architecture, _ := m.String(keyArchitecture)
	add, ok := m.Bool(keyAddSeparator)
	if kind == "bert" || architecture == "modern-bert" || ok && !add || separator < 0 || len(around.after) == 0 {
		return nil
	}
	return []int32{separator}
}

// ggufVocabulary returns the vocabulary of texts with their types. Missing types are normal. A text
// that occurs twice has the first id.
func ggufVocabulary(texts []string, types []int64) vocabulary {
	v := vocabulary{tokens: make([]token, len(texts)), ids: make(map[string]int32, len(texts))}
	for i, text := range texts {
		t := token{text: text, decoded: strings.ToValidUTF8(text, replacementChar), present: true}
		if i < len(types) {
			switch types[i] {
			case typeUnknown, typeControl:
				t.special, t.hidden, t.literal = true, true, true
			case typeUserDefined:
				t.literal = true
			case typeByte:
				t.hidden = true
			}
		}
		v.tokens[i] = t
		if _, ok := v.ids[text]; !ok {
			v.ids[text] = int32(i)
		}
	}
	return v
}

// ggufAdded returns the tokens to match in text before the model encodes it, in the order of their
// ids.
func ggufAdded(v *vocabulary, types []int64, m Metadata) []addedToken {
	lstrip, rstrip := ggufStrips(m)
	var added []addedToken
	for i := range min(len(v.tokens), len(types)) {
		t := &v.tokens[i]
		if !t.special && types[i] != typeUserDefined {
			continue
		}
		added = append(added, addedToken{
			id: int32(i), pattern: t.text, special: t.special, lstrip: lstrip(t.text), rstrip: rstrip(t.text),
		})
	}
	return added
}

// ggufStrips returns which added tokens take the white space before and after them. GGUF has no key
// for this; like llama.cpp, it tests the names of the models.
func ggufStrips(m Metadata) (lstrip, rstrip func(text string) bool) {
	none := func(string) bool { return false }
	contains := func(s string, parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
	}
	name, _ := m.String(keyName)
	name = strings.ToLower(name)
	pre, _ := m.String(keyPre)
	architecture, _ := m.String(keyArchitecture)
	switch {
	case contains(pre, "jina-v2-de", "jina-v2-es", "jina-v2-code"), contains(architecture, "nomic-bert-moe", "jina-bert-v3"):
		return func(text string) bool { return text == "<mask>" }, none
	case contains(name, "phi-3", "phi3"):
		return none, func(text string) bool { return text != "<unk>" && text != "<s>" && text != "<|endoftext|>" }
	case contains(name, "modern-bert"):
		return func(text string) bool { return text == "[MASK]" }, none
	}
	return none, none
}

// ggufSPM makes t a SentencePiece-type tokenizer.
func (t *Tokenizer) ggufSPM(m Metadata, unknown int32) {
	t.kind = "SentencePiece BPE"
	scores, _ := m.Floats(keyScores)
	t.model = newSPM(&t.vocab, scores, unknown)
	t.decoder = []decodeStep{decodeReplace(replace{literal(metaspaceChar), " "}), decodeByteFallback}
	if prefix, ok := m.Bool(keySpacePrefix); !ok || prefix {
		t.normalizer = append(t.normalizer, prepend(metaspaceChar))
		t.decoder = append(t.decoder, decodeStripStart(' ', 1))
	}
	t.normalizer = append(t.normalizer, replace{literal(" "), metaspaceChar})
}

// ggufBPE makes t a tokenizer that merges bytes or characters. It returns the defaults of its
// pre-tokenizer. Bytes that the vocabulary lacks are dropped.
func (t *Tokenizer) ggufBPE(m Metadata, kind string) (d ggufDefault, err error) {
	pre, ok := m.String(keyPre)
	switch {
	case kind == "gemma4":
		pre = kind
	case !ok || pre == "":
		pre, t.guessed = "default", true
	}
	p, ok := ggufPreTokenizers[pre]
	if !ok {
		return d, fmt.Errorf("%s: %w", keyPre, unknownPreTokenizer(pre))
	}
	d = ggufDefault{addBOS: p.addBOS, alwaysBOS: p.lines}
	t.name = pre
	if t.splitter, err = p.splitter(); err != nil {
		return d, fmt.Errorf("%s: %w", pre, err)
	}
	merges, ok := m.Strings(keyMerges)
	if !ok && pre != "kimi-k2" { // which may have no merges
		return d, fmt.Errorf("%w: no %s", ErrInvalid, keyMerges)
	}
	b := &bpe{
		vocab: &t.vocab, rules: make(map[[2]int32]mergeRule, len(merges)),
		byteLevel: !p.characters, unknown: -1,
	}
	b.absent = &absentTokens{first: int32(len(t.vocab.tokens)), ids: map[string]int32{}}
	var joined []byte
	for i, merge := range merges {
		// A token may begin with a space; the first space after the first byte separates the parts.
		if merge == "" {
			continue
		}
		first, second, ok := strings.Cut(merge[1:], " ")
		if !ok {
			continue
		}
		first = merge[:1+len(first)]
		joined = append(append(joined[:0], first...), second...)
		left, okLeft := b.mergedID(first)
		right, okRight := b.mergedID(second)
		id, ok := b.mergedID(string(joined))
		if !okLeft || !okRight || !ok {
			continue
		}
		pair := [2]int32{left, right}
		if _, ok := b.rules[pair]; !ok {
			b.rules[pair] = mergeRule{id: id, rank: int32(i)}
		}
	}
	b.init(p.ignoreMerges)
	t.model = b
	if !p.characters {
		t.kind = "byte-level BPE"
		t.decoder = []decodeStep{decodeByteLevel}
		return d, nil
	}
	t.kind = "BPE with byte fallback"
	b.fallback = newByteFallback(&t.vocab)
	if p.lines {
		b.wholeLines()
	}
	if p.escapes {
		t.normalizer = normalizer{replace{literal(" "), metaspaceChar}}
		t.decoder = append(t.decoder, decodeReplace(replace{literal(metaspaceChar), " "}))
	}
	t.decoder = append(t.decoder, decodeByteFallback)
	return d, nil
}
