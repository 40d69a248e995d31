package tokenizer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of components, far above what published files use: a short file must not make much of a text.
const (
	maxSteps  = 64  // of a normalizer, pre-tokenizer, decoder or post-processor
	maxGrowth = 64  // by which replacements in turn may multiply a text
	maxAround = 256 // ids or bytes put beside a text
)

// jsonPattern is what a component looks for.
type jsonPattern struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

// literal returns the one string that the pattern matches.
func (p *jsonPattern) literal() (string, error) {
	switch {
	case p == nil || p.String == nil && p.Regex == nil:
		return "", fmt.Errorf("%w: a pattern that is neither String nor Regex", ErrInvalid)
	case p.String != nil && *p.String != "":
		return *p.String, nil
	case p.String != nil:
		return "", fmt.Errorf("%w: an empty pattern", ErrUnsupported)
	}
	if *p.Regex == "" || regexp.QuoteMeta(*p.Regex) != *p.Regex {
		return "", fmt.Errorf("%w: no matcher for the regular expression %s", ErrUnsupported, quoted(*p.Regex))
	}
	return *p.Regex, nil // an expression that is but a string
}

// finder returns what finds the pattern.
func (p *jsonPattern) finder() (named, error) {
	if p != nil && p.Regex != nil {
		if f, err := patternFor(*p.Regex); err == nil {
			return f, nil
		}
	}
	text, err := p.literal()
	return named{finder: literal(text)}, err
}

// tooLong returns an error when a component has more steps than there may be.
func tooLong(steps int) error {
	if steps > maxSteps {
		return fmt.Errorf("%w: more than %d steps", ErrUnsupported, maxSteps)
	}
	return nil
}

// growth is by how much replacements multiply a text at most.
type growth int

func (g *growth) replace(from, to string) error {
	if *g == 0 {
		*g = 1
	}
	*g *= growth((min(len(to), maxGrowth*len(from)+1) + len(from) - 1) / len(from))
	*g = max(*g, 1)
	if *g > maxGrowth {
		return fmt.Errorf("%w: replacing %s by %s: more than %d times the text", ErrUnsupported,
			quoted(from), quoted(to), maxGrowth)
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
	case "Strip":
		step = strip{j.StripLeft, j.StripRight}
	case "Prepend":
		if len(j.Prepend) > maxAround {
			return fmt.Errorf("%w: Prepend of %d bytes", ErrUnsupported, len(j.Prepend))
		}
		step = prepend(j.Prepend)
	case "Replace":
		from, err := j.Pattern.literal()
		if err == nil {
			err = times.replace(from, j.Content)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		step = replace{from, j.Content}
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
}

// builtSplitter is a pre-tokenizer and what it says about the model.
type builtSplitter struct {
	steps     splitter
	name      string
	byteLevel bool // the model sees bytes
	digits    bool // numbers are cut before the pattern of GPT-2
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
	if b.byteLevel {
		return fmt.Errorf("%w: %s after ByteLevel", ErrUnsupported, quoted(j.Type))
	}
	switch j.Type {
	case "Sequence":
		for i := range j.Pretokenizers {
			if err := j.Pretokenizers[i].appendTo(b); err != nil {
				return err
			}
		}
	case "Split":
		f, err := j.Pattern.finder()
		if err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		switch j.Behavior {
		case removed, isolated, contiguous, mergedWithPrevious, mergedWithNext:
		default:
			return fmt.Errorf("%s: %w: behavior %s", j.Type, ErrUnsupported, quoted(string(j.Behavior)))
		}
		if f.name != "" {
			b.name = f.name
		}
		b.steps = append(b.steps, split{f.finder, j.Behavior, j.Invert})
	case "Digits":
		s := split{run(1, ofClass(number)), contiguous, false}
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
			b.steps = append(b.steps, split{pattern: matcher(matchGPT2), behavior: isolated})
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
	// Files from before prepend_scheme say whether to prepend at all.
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
	SpecialTokens map[string]jsonPieceTokens `json:"special_tokens"`
	Sep           jsonTokenID                `json:"sep"`
	Cls           jsonTokenID                `json:"cls"`
}

// jsonPiece is a piece of a template: one of its fields.
type jsonPiece struct {
	SpecialToken *struct {
		ID string `json:"id"`
	} `json:"SpecialToken"`
	Sequence *struct {
		ID string `json:"id"`
	} `json:"Sequence"`
}

// jsonPieceTokens is what a special token of a template becomes.
type jsonPieceTokens struct {
	IDs []int64 `json:"ids"`
}

// jsonTokenID is the id of a token that is written as an array of the token and its id.
type jsonTokenID int64

// UnmarshalJSON implements [json.Unmarshaler].
func (t *jsonTokenID) UnmarshalJSON(data []byte) error {
	var text string
	return json.Unmarshal(data, &[]any{&text, (*int64)(t)})
}

func (j *jsonPost) build(limit int64) (postProcessor, error) {
	var p postProcessor
	if j == nil {
		return p, nil
	}
	err := j.appendTo(&p, limit)
	return p, err
}

func (j *jsonPost) appendTo(p *postProcessor, limit int64) error {
	var t template
	add := func(ids *[]int32, more ...int64) error {
		for _, id := range more {
			if id < 0 || id > limit {
				return fmt.Errorf("%s: %w: id %d is not from 0 to %d", j.Type, ErrInvalid, id, limit)
			}
			*ids = append(*ids, int32(id))
		}
		if len(*ids) > maxAround {
			return fmt.Errorf("%s: %w: more than %d tokens", j.Type, ErrUnsupported, maxAround)
		}
		return nil
	}
	switch j.Type {
	case "Sequence":
		for i := range j.Processors {
			if err := j.Processors[i].appendTo(p, limit); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel": // it concerns offsets
		return nil
	case "BertProcessing", "RobertaProcessing":
		if err := add(&t.before, int64(j.Cls)); err != nil {
			return err
		}
		if err := add(&t.after, int64(j.Sep)); err != nil {
			return err
		}
	case "TemplateProcessing":
		side, sequences := &t.before, 0
		for _, piece := range j.Single {
			switch {
			case piece.Sequence != nil && piece.Sequence.ID == "A":
				side = &t.after
				sequences++
			case piece.SpecialToken != nil:
				tokens, ok := j.SpecialTokens[piece.SpecialToken.ID]
				if !ok {
					return fmt.Errorf("%s: %w: %s is not among its special_tokens", j.Type,
						ErrInvalid, quoted(piece.SpecialToken.ID))
				}
				if err := add(side, tokens.IDs...); err != nil {
					return err
				}
			default:
				return fmt.Errorf("%s: %w: a piece of single is neither a special token nor sequence A",
					j.Type, ErrInvalid)
			}
		}
		if sequences != 1 {
			return fmt.Errorf("%s: %w: single has sequence A %d times", j.Type, ErrUnsupported, sequences)
		}
	default:
		return fmt.Errorf("%w: %s", ErrUnsupported, quoted(j.Type))
	}
	*p = append(*p, t)
	return tooLong(len(*p))
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
}

// decoderBuild is a decoder while it is built.
type decoderBuild struct {
	steps []decodeStep
	fused bool // tokens are parts of one
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
		from, err := j.Pattern.literal()
		if err == nil {
			err = b.times.replace(from, j.Content)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", j.Type, err)
		}
		whole(decodeReplace(from, j.Content))
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
	default:
		return fmt.Errorf("%w: %s", ErrUnsupported, quoted(j.Type))
	}
	return tooLong(len(b.steps))
}
