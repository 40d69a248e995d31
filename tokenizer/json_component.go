package tokenizer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of components, far above those of published files: a short file must not expand a text too
// much.
const (
	maxSteps  = 64  // of a normalizer, pre-tokenizer, decoder or post-processor
	maxGrowth = 64  // by which replacements in turn may multiply a text
	maxAround = 256 // ids or bytes added around a text
)

// jsonPattern is the pattern of a component.
type jsonPattern struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

// finder returns the finder of the pattern and the length in bytes of its shortest match.
func (p *jsonPattern) finder() (f named, shortest int, err error) {
	switch {
	case p == nil || p.String == nil && p.Regex == nil:
		return f, 0, fmt.Errorf("%w: a pattern that is neither String nor Regex", ErrInvalid)
	case p.String != nil && *p.String != "":
		return named{finder: literal(*p.String)}, len(*p.String), nil
	case p.String != nil:
		f, err = expressionFor("")
	case *p.Regex != "" && regexp.QuoteMeta(*p.Regex) == *p.Regex:
		return named{finder: literal(*p.Regex)}, len(*p.Regex), nil // an expression without metacharacters
	default:
		f, err = expressionFor(*p.Regex)
	}
	if e, ok := f.finder.(*expression); ok && e.empty {
		return f, 0, err
	}
	return f, 1, err
}

// replacement returns the step of a Replace.
func (p *jsonPattern) replacement(content string, times *growth) (replace, error) {
	f, shortest, err := p.finder()
	if err == nil && shortest == 0 {
		err = fmt.Errorf("%w: a pattern that matches nothing at all", ErrUnsupported)
	}
	if err == nil {
		err = times.multiply(len(content), shortest)
	}
	return replace{f.finder, content}, err
}

// tooLong returns an error if a component has more than maxSteps steps.
func tooLong(steps int) error {
	if steps > maxSteps {
		return fmt.Errorf("%w: more than %d steps", ErrUnsupported, maxSteps)
	}
	return nil
}

// growth is the largest factor by which replacements multiply the length of a text.
type growth int

// multiply accounts for replacing from bytes, at least 1, by to bytes.
func (g *growth) multiply(to, from int) error {
	if *g == 0 {
		*g = 1
	}
	*g *= growth((min(to, maxGrowth*from+1) + from - 1) / from)
	*g = max(*g, 1)
	if *g > maxGrowth {
		return fmt.Errorf("%w: replacing %d bytes by %d: more than %d times the text", ErrUnsupported,
			from, to, maxGrowth)
	}
	return nil
}

// jsonNormalizer is a normalizer of any type.
type jsonNormalizer struct {
	Type        string           `json:"type"`
	Normalizers []jsonNormalizer `json:"normalizers"`
	Prepend     string           `json:"prepend"`
	Pattern     *jsonPattern     `json:"pattern"`
	Content     string           `json:"content"`
	StripLeft   bool             `json:"strip_left"`
	StripRight  bool             `json:"strip_right"`
	Charsmap    []byte           `json:"precompiled_charsmap"`

	// Options of BERT's normalizer.
	CleanText          *bool `json:"clean_text"`
	HandleChineseChars *bool `json:"handle_chinese_chars"`
	StripAccents       *bool `json:"strip_accents"`
	Lowercase          *bool `json:"lowercase"`
}

func (j *jsonNormalizer) build() (normalizer, error) {
	var steps normalizer
	if j == nil {
		return steps, nil
	}
	var times growth
	err := j.appendTo(&steps, &times)
	return steps, err
}

func (j *jsonNormalizer) appendTo(steps *normalizer, times *growth) error {
	var step normalStep
	switch j.Type {
	case "Sequence":
		for i := range j.Normalizers {
			if err := j.Normalizers[i].appendTo(steps, times); err != nil {
				return err
			}
		}
		return nil
	case "NFC":
		step = unicodeForm(norm.NFC)
	case "NFD":
		step = unicodeForm(norm.NFD)
	case "NFKC":
		step = unicodeForm(norm.NFKC)
	case "NFKD":
		step = unicodeForm(norm.NFKD)
	case "Lowercase":
		step = lowercase{}
	case "StripAccents":
		step = drop(isMark)
	case "Nmt":
		step = eachCharacter(nmt)
	case "ByteLevel":
		if err := times.multiply(2, 1); err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		step = eachCharacter(spellBytes)
	case "Precompiled":
		c, err := newCharsmap(j.Charsmap, times)
		if err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		step = c
	case "BertNormalizer":
		if j.CleanText == nil || j.HandleChineseChars == nil || j.Lowercase == nil {
			return fmt.Errorf("%s: %w: it lacks clean_text, handle_chinese_chars or lowercase", j.Type, ErrInvalid)
		}
		if *j.HandleChineseChars {
			if err := times.multiply(5, 3); err != nil {
				return fmt.Errorf("%s: %w", j.Type, err)
			}
		}
		var accents func(r rune) bool
		if j.StripAccents == nil && *j.Lowercase || j.StripAccents != nil && *j.StripAccents {
			accents = isAccent
		}
		*steps = append(*steps, bertNormalizer(*j.CleanText, *j.HandleChineseChars, *j.Lowercase, accents)...)
		return tooLong(len(*steps))
	case "Strip":
		step = strip{j.StripLeft, j.StripRight}
	case "Prepend":
		if len(j.Prepend) > maxAround {
			return fmt.Errorf("%w: Prepend of %d bytes", ErrUnsupported, len(j.Prepend))
		}
		step = prepend(j.Prepend)
	case "Replace":
		r, err := j.Pattern.replacement(j.Content, times)
		if err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		step = r
	default:
		return fmt.Errorf("%w: %s", ErrUnsupported, quoted(j.Type))
	}
	*steps = append(*steps, step)
	return tooLong(len(*steps))
}

// jsonSplitter is a pre-tokenizer of any type.
type jsonSplitter struct {
	Type             string         `json:"type"`
	Pretokenizers    []jsonSplitter `json:"pretokenizers"`
	Pattern          *jsonPattern   `json:"pattern"`
	Behavior         behavior       `json:"behavior"`
	Invert           bool           `json:"invert"`
	AddPrefixSpace   *bool          `json:"add_prefix_space"`
	UseRegex         *bool          `json:"use_regex"`
	IndividualDigits bool           `json:"individual_digits"`
	Replacement      string         `json:"replacement"`
	PrependScheme    *prependScheme `json:"prepend_scheme"`
	Split            *bool          `json:"split"`
	Delimiter        string         `json:"delimiter"`
	Length           *int64         `json:"length"`
	TrimOffsets      any            `json:"trim_offsets"` // only offsets use it
	StrRep           any            `json:"str_rep"`      // old files repeat replacement here
}

// builtSplitter is a pre-tokenizer and its effects on the model.
type builtSplitter struct {
	steps     splitter
	name      string
	byteLevel bool // the model encodes bytes
	digits    bool // numbers are split before GPT-2's pattern applies
}

// spell adds a step that spells pieces as bytes, for the steps after it.
func (b *builtSplitter) spell() {
	if b.byteLevel {
		b.steps = append(b.steps, spelled{})
		b.byteLevel = false
	}
}

func (j *jsonSplitter) build() (builtSplitter, error) {
	var b builtSplitter
	if j == nil {
		return b, nil
	}
	err := j.appendTo(&b)
	return b, err
}

func (j *jsonSplitter) appendTo(b *builtSplitter) error {
	if b.byteLevel && j.Type != "Sequence" {
		b.spell()
	}
	switch j.Type {
	case "Sequence":
		for i := range j.Pretokenizers {
			if err := j.Pretokenizers[i].appendTo(b); err != nil {
				return err
			}
		}
	case "Split":
		f, _, err := j.Pattern.finder()
		if err == nil {
			err = j.Behavior.check()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		if f.name != "" {
			b.name = f.name
		}
		b.steps = append(b.steps, split{f.finder, j.Behavior, j.Invert})
	case "Digits":
		s := split{run(1, isNumeric), contiguous, false}
		if j.IndividualDigits {
			s.behavior = isolated
			b.digits = true
		}
		b.steps = append(b.steps, s)
	case "ByteLevel":
		if j.AddPrefixSpace == nil || *j.AddPrefixSpace {
			b.steps = append(b.steps, spaceBefore{})
		}
		if j.UseRegex == nil || *j.UseRegex {
			b.steps = append(b.steps, split{pattern: classes.matcher((*properties).matchGPT2), behavior: isolated})
			b.name = "gpt-2"
			if b.digits {
				b.name = "starcoder"
			}
		}
		b.byteLevel = true
	case "Metaspace":
		m, err := j.metaspace()
		if err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		b.steps = append(b.steps, m)
	case "BertPreTokenizer":
		b.steps = append(b.steps, split{whitespace, removed, false},
			split{run(1, isBertPunctuation), isolated, false})
	case "Whitespace":
		b.steps = append(b.steps, split{matcher(matchWordOrSymbols), removed, true})
	case "WhitespaceSplit":
		b.steps = append(b.steps, split{whitespace, removed, false})
	case "CharDelimiterSplit":
		if utf8.RuneCountInString(j.Delimiter) != 1 {
			return fmt.Errorf("%s: %w: delimiter %s is not one character", j.Type, ErrInvalid, quoted(j.Delimiter))
		}
		b.steps = append(b.steps, split{literal(j.Delimiter), removed, false})
	case "Punctuation":
		s := split{run(1, isBertPunctuation), isolated, false}
		if j.Behavior != "" {
			s.behavior = j.Behavior
		}
		if err := s.behavior.check(); err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		b.steps = append(b.steps, s)
	case "UnicodeScripts":
		b.steps = append(b.steps, scriptSplit{})
	case "FixedLength":
		length := int64(5)
		if j.Length != nil {
			length = *j.Length
		}
		if length < 1 {
			return fmt.Errorf("%s: %w: length %d is not positive", j.Type, ErrInvalid, length)
		}
		b.steps = append(b.steps, fixedLength(length))
	default:
		return fmt.Errorf("%w: %s", ErrUnsupported, quoted(j.Type))
	}
	return tooLong(len(b.steps))
}

func (j *jsonSplitter) metaspace() (metaspace, error) {
	m := metaspace{replacement: j.Replacement, prepend: prependAlways, split: j.Split == nil || *j.Split}
	if j.PrependScheme != nil {
		m.prepend = *j.PrependScheme
	}
	switch {
	case utf8.RuneCountInString(m.replacement) != 1:
		return m, fmt.Errorf("%w: replacement %s is not one character", ErrInvalid, quoted(m.replacement))
	case m.prepend != prependAlways && m.prepend != prependFirst && m.prepend != prependNever:
		return m, fmt.Errorf("%w: prepend_scheme %s", ErrUnsupported, quoted(string(m.prepend)))
	}
	// Files older than prepend_scheme only say whether to prepend.
	if j.AddPrefixSpace != nil && !*j.AddPrefixSpace {
		if j.PrependScheme != nil && m.prepend != prependNever {
			return m, fmt.Errorf("%w: add_prefix_space is false but prepend_scheme is %s", ErrInvalid, m.prepend)
		}
		m.prepend = prependNever
	}
	return m, nil
}

// jsonPost is a post-processor of any type.
type jsonPost struct {
	Type          string                     `json:"type"`
	Processors    []jsonPost                 `json:"processors"`
	Single        []jsonPiece                `json:"single"`
	Pair          []jsonPiece                `json:"pair"` // of two sequences
	SpecialTokens map[string]jsonPieceTokens `json:"special_tokens"`
	Sep           jsonTokenID                `json:"sep"`
	Cls           jsonTokenID                `json:"cls"`

	AddPrefixSpace any `json:"add_prefix_space"`
	TrimOffsets    any `json:"trim_offsets"`
	UseRegex       any `json:"use_regex"`
}

// jsonPiece is a piece of a template. One field is set.
type jsonPiece struct {
	SpecialToken *jsonPieceID `json:"SpecialToken"`
	Sequence     *jsonPieceID `json:"Sequence"`
}

// jsonPieceID is the token or sequence of a template piece.
type jsonPieceID struct {
	ID     string `json:"id"`
	TypeID any    `json:"type_id"`
}

// kind returns the type id of the piece's tokens.
func (j *jsonPieceID) kind() int32 {
	if n, ok := j.TypeID.(float64); ok && n >= 0 && n < 1<<31 {
		return int32(n)
	}
	return 0
}

// jsonPieceTokens holds the ids of a special token in a template.
type jsonPieceTokens struct {
	ID     any     `json:"id"`
	IDs    []int64 `json:"ids"`
	Tokens any     `json:"tokens"`
}

// jsonTokenID is the id of a token that the file writes as an array of the token and its id.
type jsonTokenID int64

// UnmarshalJSON implements [json.Unmarshaler].
func (t *jsonTokenID) UnmarshalJSON(data []byte) error {
	var text string
	return json.Unmarshal(data, &[]any{&text, (*int64)(t)})
}

// postBuild is the result of the post-processors read so far, with and without special tokens:
// parts, each of which is one sequence to the next post-processor. special and plain are nil if
// nothing changes a sequence. pair is nil if nothing changes a pair, unless only pairs have an
// error.
type postBuild struct {
	special, plain [][]slot
	pair           [][]slot
	pairErr        error
	limit          int64 // of ids
}

func (j *jsonPost) build(limit int64) (postProcessor, error) {
	if j == nil {
		return postProcessor{}, nil
	}
	b := postBuild{limit: limit}
	if err := j.appendTo(&b); err != nil {
		return postProcessor{}, err
	}
	p := postProcessor{special: idsOf(b.special), plain: idsOf(b.plain), pair: slices.Concat(b.pair...), pairErr: b.pairErr}
	if b.special != nil && !slices.Contains(p.special, sequence) {
		return postProcessor{}, fmt.Errorf("%w: %s: a template without its sequence", ErrUnsupported, j.Type)
	}
	pair := idsOf(b.pair)
	if b.pair != nil && p.pairErr == nil && (!slices.Contains(pair, sequence) || !slices.Contains(pair, second)) {
		p.pairErr = fmt.Errorf("%w: %s: a template of pairs without both sequences", ErrUnsupported, j.Type)
	}
	return p, nil
}

// idsOf returns the ids of all parts, concatenated.
func idsOf(parts [][]slot) (ids []int32) {
	for _, all := range parts {
		for _, p := range all {
			ids = append(ids, p.id)
		}
	}
	return ids
}

func (j *jsonPost) appendTo(b *postBuild) error {
	switch j.Type {
	case "Sequence":
		for i := range j.Processors {
			if err := j.Processors[i].appendTo(b); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel": // it concerns only offsets
		return nil
	case "BertProcessing", "RobertaProcessing", "TemplateProcessing":
	default:
		return fmt.Errorf("%w: %s", ErrUnsupported, quoted(j.Type))
	}
	if b.special == nil {
		b.special, b.plain = [][]slot{{{id: sequence}}}, [][]slot{{{id: sequence}}}
		b.pair = [][]slot{{{id: sequence}}, {{id: second, kind: 1}}}
	}
	var err error
	if j.Type == "TemplateProcessing" {
		if b.special, err = j.template(b.special, b.limit, true); err == nil {
			b.plain, err = j.template(b.plain, b.limit, false)
		}
	} else {
		b.special, err = j.surround(b.special, b.limit)
	}
	if err = cmp.Or(err, checkSize(b.special)); err != nil {
		return fmt.Errorf("%s: %w", j.Type, err)
	}
	if b.pairErr == nil {
		b.pairErr = j.appendToPair(b)
	}
	return nil
}

// appendToPair is appendTo for pairs alone.
func (j *jsonPost) appendToPair(b *postBuild) (err error) {
	if j.Type == "TemplateProcessing" {
		b.pair, err = j.template(b.pair, b.limit, true)
	} else {
		b.pair, err = j.surround(b.pair, b.limit)
	}
	if err = cmp.Or(err, checkSize(b.pair)); err != nil {
		return fmt.Errorf("%s: pairs: %w", j.Type, err)
	}
	return nil
}

// checkSize returns an error if parts are too long.
func checkSize(parts [][]slot) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if size > maxAround {
		return fmt.Errorf("%w: more than %d tokens", ErrUnsupported, maxAround)
	}
	return nil
}

// checkID returns an error for an id outside 0 to limit.
func checkID(id, limit int64) error {
	if id < 0 || id > limit {
		return fmt.Errorf("%w: id %d is not from 0 to %d", ErrInvalid, id, limit)
	}
	return nil
}

// surround puts BERT's or RoBERTa's tokens around each part.
func (j *jsonPost) surround(parts [][]slot, limit int64) ([][]slot, error) {
	if err := cmp.Or(checkID(int64(j.Cls), limit), checkID(int64(j.Sep), limit)); err != nil {
		return nil, err
	}
	out := make([][]slot, len(parts))
	for i, all := range parts {
		kind := int32(min(i, 1))
		if j.Type == "RobertaProcessing" { // which has no types
			kind, all = 0, typed(all, 0)
		}
		switch {
		case i == 0:
			out[i] = append(out[i], slot{int32(j.Cls), kind})
		case j.Type == "RobertaProcessing":
			out[i] = append(out[i], slot{int32(j.Sep), kind})
		}
		out[i] = append(append(out[i], all...), slot{int32(j.Sep), kind})
	}
	return out, nil
}

// typed returns a copy of all with type kind.
func typed(all []slot, kind int32) []slot {
	all = slices.Clone(all)
	for i := range all {
		all[i].kind = kind
	}
	return all
}

// template applies a template to one or two sequences.
func (j *jsonPost) template(parts [][]slot, limit int64, special bool) ([][]slot, error) {
	pieces := j.Single
	switch len(parts) {
	case 1:
	case 2:
		pieces = j.Pair
	default:
		return nil, fmt.Errorf("%w: it gets %d sequences from what is before it", ErrUnsupported, len(parts))
	}
	out := make([][]slot, 0, len(pieces))
	for _, piece := range pieces {
		switch {
		case piece.Sequence != nil && piece.Sequence.ID == "A":
			out = append(out, typed(parts[0], piece.Sequence.kind()))
		case piece.Sequence != nil && piece.Sequence.ID == "B" && len(parts) == 2:
			out = append(out, typed(parts[1], piece.Sequence.kind()))
		case piece.SpecialToken != nil:
			tokens, ok := j.SpecialTokens[piece.SpecialToken.ID]
			if !ok {
				return nil, fmt.Errorf("%w: %s is not among its special_tokens", ErrInvalid, quoted(piece.SpecialToken.ID))
			}
			var ids []slot
			for _, id := range tokens.IDs {
				if err := checkID(id, limit); err != nil {
					return nil, err
				}
				ids = append(ids, slot{int32(id), piece.SpecialToken.kind()})
			}
			if special {
				out = append(out, ids)
			}
		default:
			return nil, fmt.Errorf("%w: a piece of a template is neither a special token nor a sequence", ErrInvalid)
		}
	}
	return out, nil
}

// jsonDecoder is a decoder of any type.
type jsonDecoder struct {
	Type           string         `json:"type"`
	Decoders       []jsonDecoder  `json:"decoders"`
	Pattern        *jsonPattern   `json:"pattern"`
	Content        string         `json:"content"`
	Start          int            `json:"start"`
	Stop           int            `json:"stop"`
	Replacement    string         `json:"replacement"`
	PrependScheme  *prependScheme `json:"prepend_scheme"`
	AddPrefixSpace *bool          `json:"add_prefix_space"`
	Split          *bool          `json:"split"`
	Prefix         *string        `json:"prefix"`
	Cleanup        *bool          `json:"cleanup"`
	Suffix         *string        `json:"suffix"`
	PadToken       *string        `json:"pad_token"`
	WordDelimiter  *string        `json:"word_delimiter_token"`
	TrimOffsets    any            `json:"trim_offsets"`
	UseRegex       any            `json:"use_regex"`
	StrRep         any            `json:"str_rep"`
}

// decoderBuild is the state of building a decoder.
type decoderBuild struct {
	steps []decodeStep
	fused bool // tokens are fused to one
	times growth
}

func (j *jsonDecoder) build() ([]decodeStep, error) {
	if j == nil {
		return []decodeStep{decodeJoinSpace}, nil
	}
	var b decoderBuild
	err := j.appendTo(&b)
	return b.steps, err
}

func (j *jsonDecoder) appendTo(b *decoderBuild) error {
	whole := func(step decodeStep) {
		if b.fused {
			b.steps = append(b.steps, decodeGather)
			b.fused = false
		}
		b.steps = append(b.steps, step)
	}
	switch j.Type {
	case "Sequence":
		for i := range j.Decoders {
			if err := j.Decoders[i].appendTo(b); err != nil {
				return err
			}
		}
	case "ByteLevel":
		whole(decodeByteLevel)
		b.fused = true
	case "ByteFallback":
		whole(decodeByteFallback)
	case "Fuse":
		b.fused = true
	case "Replace":
		r, err := j.Pattern.replacement(j.Content, &b.times)
		if err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		whole(decodeReplace(r))
	case "Strip":
		char, n := utf8.DecodeRuneInString(j.Content)
		switch {
		case n == 0 || n != len(j.Content):
			return fmt.Errorf("%s: %w: content %s is not one character", j.Type, ErrInvalid, quoted(j.Content))
		case j.Start < 0 || j.Stop < 0:
			return fmt.Errorf("%s: %w: start %d and stop %d", j.Type, ErrInvalid, j.Start, j.Stop)
		case b.fused && j.Stop == 0:
			b.steps = append(b.steps, decodeStripStart(char, j.Start))
		default:
			whole(decodeStrip(char, j.Start, j.Stop))
		}
	case "Metaspace":
		m, err := (&jsonSplitter{
			Replacement: j.Replacement, PrependScheme: j.PrependScheme,
			AddPrefixSpace: j.AddPrefixSpace, Split: j.Split,
		}).metaspace()
		if err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		whole(decodeMetaspace(m.replacement, m.prepend != prependNever))
	case "WordPiece":
		if j.Prefix == nil || j.Cleanup == nil {
			return fmt.Errorf("%s: %w: it lacks prefix or cleanup", j.Type, ErrInvalid)
		}
		whole(decodeWordPiece(*j.Prefix, *j.Cleanup))
	case "BPEDecoder":
		switch {
		case j.Suffix == nil:
			return fmt.Errorf("%s: %w: it lacks suffix", j.Type, ErrInvalid)
		case *j.Suffix == "":
			return fmt.Errorf("%s: %w: an empty suffix", j.Type, ErrUnsupported)
		}
		whole(decodeSuffix(*j.Suffix))
	case "CTC":
		switch {
		case j.PadToken == nil || j.WordDelimiter == nil || j.Cleanup == nil:
			return fmt.Errorf("%s: %w: it lacks pad_token, word_delimiter_token or cleanup", j.Type, ErrInvalid)
		case *j.WordDelimiter == "":
			return fmt.Errorf("%s: %w: an empty word_delimiter_token", j.Type, ErrUnsupported)
		}
		whole(decodeCTC(*j.PadToken, *j.WordDelimiter, *j.Cleanup))
	default:
		return fmt.Errorf("%w: %s", ErrUnsupported, quoted(j.Type))
	}
	return tooLong(len(b.steps))
}
