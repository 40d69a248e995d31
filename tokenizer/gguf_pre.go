package tokenizer

import (
	"slices"
	"unicode/utf8"
)

// ggufPre describes a pre-tokenizer that tokenizer.ggml.pre names.
type ggufPre struct {
	patterns     []finder // each isolates its matches in the pieces of the one before
	expressions  []string // likewise, applied before patterns
	first, last  splitter // applied before and after both
	ignoreMerges bool
	addBOS       bool // unless the file says otherwise
	characters   bool // merges characters instead of bytes
	escapes      bool // writes ▁ for a space
	lines        bool // line feeds in a row may be one token, and BOS is always added
}

// splitter returns the steps of p.
func (p *ggufPre) splitter() (splitter, error) {
	steps := slices.Clone(p.first)
	for _, expression := range p.expressions {
		f, err := expressionFor(expression)
		if err != nil {
			return nil, err
		}
		steps = append(steps, split{pattern: f.finder, behavior: isolated})
	}
	for _, f := range p.patterns {
		steps = append(steps, split{pattern: f, behavior: isolated})
	}
	return append(steps, p.last...), nil
}

// trailingSpace ends most expressions: white space, whose last character is left to the text that
// follows.
const trailingSpace = `|\s+(?!\S)|\s+`

// ggufPreTokenizers are the pre-tokenizers by their name in llama.cpp.
var ggufPreTokenizers = func() map[string]ggufPre {
	var (
		match     = llamaClasses.matcher
		numbers   = func(limit int) matcher { return run(limit, llamaClasses.of(number)) }
		words3    = words{contractions: true, digits: 3, tail: "\r\n"}.matcher(llamaClasses)
		words1    = words{contractions: true, digits: 1, tail: "\r\n"}.matcher(llamaClasses)
		gpt2      = []finder{match((*properties).matchGPT2)}
		starcoder = []finder{numbers(1), gpt2[0]}
		threes    = matcher(matchThreeDigits)
		cased     = words{cased: true, suffixes: true, digits: 3, tail: "\r\n/"}
		deepSeek3 = llamaTilde.matcher((*properties).matchDeepSeek3)
		marked    = words{suffixes: true, letters: anyLetter | mark, digits: 3, tail: "\r\n/"}
		marked1   = words{suffixes: true, letters: anyLetter | mark, digits: 1, tail: "\r\n/"}
		eastAsian = run(0, ggufSet(deepSeekEastAsian))
	)
	table := map[string]ggufPre{
		"default": {patterns: []finder{
			run(0, isDefaultPunctuation), gpt2[0], numbers(0), threes,
		}},
		"falcon": {patterns: []finder{run(0, isFalconPunctuation), gpt2[0], threes}},
		"tekken": {patterns: []finder{tekken.matcher(llamaUnmarked)}, ignoreMerges: true, addBOS: true},
		"qwen35": {patterns: []finder{words{
			contractions: true, letters: anyLetter | mark, noSymbols: anyLetter | mark, digits: 1, tail: "\r\n",
		}.matcher(llamaClasses)}},
		"deepseek-llm": {patterns: []finder{
			run(1, inSet("\r\n")), spaced(run(0, isDeepSeekLetter)), spaced(run(0, ggufSet(deepSeekPunctuation))),
			blankEnd{}, eastAsian, numbers(0),
		}},
		"deepseek-coder": {patterns: []finder{
			run(1, inSet("\r\n")), spaced(run(0, llamaClasses.of(anyLetter))), spaced(run(0, llamaClasses.of(punct))),
			eastAsian, numbers(1),
		}},
	}
	add := func(p ggufPre, names ...string) {
		for _, name := range names {
			table[name] = p
		}
	}
	add(ggufPre{patterns: gpt2},
		"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code",
		"gigachat", "a.x-4.0", "mellum", "modern-bert", "roberta-bpe", "mpt", "olmo", "jais", "trillion",
		"granite-docling", "exaone4")
	add(ggufPre{patterns: starcoder},
		"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2")
	add(ggufPre{patterns: []finder{words3}, ignoreMerges: true, addBOS: true},
		"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano")
	add(ggufPre{patterns: []finder{words3}},
		"dbrx", "smaug-bpe", "glm4", "chatglm-bpe")
	add(ggufPre{patterns: []finder{words1}},
		"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2",
		"bailingmoe", "bailingmoe2", "llada-moe")
	add(ggufPre{patterns: []finder{cased.matcher(llamaUnmarked)}},
		"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2")
	add(ggufPre{patterns: []finder{numbers(3), run(0, inSet(deepSeek3EastAsian)), deepSeek3}},
		"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4")
	add(ggufPre{patterns: []finder{words{contractions: true, digits: 1}.matcher(llamaClasses)}}, "seed-coder")
	add(ggufPre{patterns: []finder{words{digits: 1, tail: "\r\n"}.matcher(llamaClasses)}}, "ufakzeka")
	add(ggufPre{patterns: []finder{matcher(matchLines), words1}}, "laguna")
	add(ggufPre{patterns: []finder{numbers(3), words{contractions: true, tail: "\r\n"}.matcher(llamaClasses)}, ignoreMerges: true},
		"minicpm5")
	add(ggufPre{patterns: []finder{cased.matcher(llamaCaseless)}, ignoreMerges: true}, "granite-embed-multi-97m")
	add(ggufPre{patterns: []finder{shortSpaces(words3)}}, "jais-2")
	add(ggufPre{first: splitter{digitGroups{}}, patterns: []finder{marked.matcher(llamaClasses)}}, "tiny_aya", "cohere2moe")
	add(ggufPre{patterns: []finder{numbers(0)}, last: splitter{threesFromRight{}}}, "superbpe")
	add(ggufPre{first: splitter{digitGroups{}}, patterns: []finder{run(0, ggufSet(afmoeEastAsian)), deepSeek3}}, "afmoe")
	add(ggufPre{patterns: []finder{either(
		run(0, isHanBlock), words{suffixes: true, letters: letter, digits: 3, tail: "\r\n"}.matcher(llamaHan),
	)}}, "kimi-k2")
	add(ggufPre{expressions: []string{notPunctuation}}, "poro-chat", "bloom", "gpt3-finnish")
	add(ggufPre{expressions: []string{notPunctuation}, patterns: []finder{numbers(1)}}, "viking")
	add(ggufPre{
		expressions: []string{`<sentinel:[0-9]+>`, `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`, `([\t\n]|    |  )`},
		patterns:    []finder{numbers(1), run(1, isLlamaPunctuation), gpt2[0]},
		addBOS:      true,
	}, "chameleon")
	add(ggufPre{
		patterns:     []finder{youtuEastAsian, marked1.matcher(llamaClasses)},
		ignoreMerges: true,
	}, "youtu")
	add(ggufPre{expressions: []string{
		`\p{N}{1,3}`, `[` + deepSeek3EastAsian + `]+`,
		"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\\r\\n]" + trailingSpace,
	}, patterns: []finder{numbers(1)}}, "spark2_5")
	add(ggufPre{expressions: []string{
		`'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]` + trailingSpace,
	}}, "exaone-moe")
	add(ggufPre{patterns: []finder{matcher(matchLines)}, characters: true, escapes: true, lines: true},
		"gemma4", "granite-embed-multi-311m")
	add(ggufPre{patterns: []finder{matcher(matchLines)}, characters: true, escapes: true}, "sarvam-moe")
	add(ggufPre{patterns: []finder{run(0, func(r rune) bool { return !isSpace(r) })}, characters: true}, "whitespace")
	return table
}()

// isDefaultPunctuation reports whether r is in [\p{P}\$\+<=>\^~\|].
func isDefaultPunctuation(r rune) bool {
	switch r {
	case '$', '+', '<', '=', '>', '^', '~', '|':
		return true
	}
	return llamaClasses()[r]&punct != 0
}

// isFalconPunctuation reports whether r is in [\p{P}\$\+<=>\^~\|`].
func isFalconPunctuation(r rune) bool { return r == '`' || isDefaultPunctuation(r) }

// isLlamaPunctuation reports whether r is in [\p{P}!-/:-@\[-`{-~].
func isLlamaPunctuation(r rune) bool {
	return r < utf8.RuneSelf && isASCIIPunctuation(byte(r)) || llamaClasses()[r]&punct != 0
}

// matchThreeDigits matches [0-9][0-9][0-9].
func matchThreeDigits(_ *work, text string, i int) int {
	for n := range 3 {
		if i+n >= len(text) || text[i+n] < '0' || text[i+n] > '9' {
			return i
		}
	}
	return i + 3
}
