package tokenizer

import "slices"

// ggufPre is what a name in tokenizer.ggml.pre stands for.
type ggufPre struct {
	patterns     []finder // each isolates its matches in the pieces that the one before left
	expressions  []string // the same, for package regexp, before patterns
	first, last  splitter // before and after both
	ignoreMerges bool
	addBOS       bool // unless the file says otherwise
	characters   bool // merges characters and not bytes
	escapes      bool // writes ▁ for a space
	lines        bool // line feeds in a row may be a token, and BOS is always added
}

// splitter returns the steps of p.
func (p *ggufPre) splitter() (splitter, error) {
	steps := slices.Clone(p.first)
	for _, expression := range p.expressions {
		f, err := patternFor(expression)
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

// ggufPreTokenizers are the pre-tokenizers by their name in llama.cpp.
var ggufPreTokenizers = func() map[string]ggufPre {
	var (
		gpt2      = []finder{matcher(matchGPT2)}
		digit     = run(1, ofClass(number))
		starcoder = []finder{digit, matcher(matchGPT2)}
		threes    = matcher(matchThreeDigits)
	)
	table := map[string]ggufPre{
		"default": {patterns: []finder{
			run(0, isDefaultPunctuation), matcher(matchGPT2), run(0, ofClass(number)), threes,
		}},
		"falcon": {patterns: []finder{run(0, isFalconPunctuation), matcher(matchGPT2), threes}},
		"tekken": {patterns: []finder{tekken.matcher()}, ignoreMerges: true, addBOS: true},
		"qwen35": {patterns: []finder{qwen35.matcher()}},
		"deepseek-llm": {patterns: []finder{
			run(1, inSet("\r\n")), spaced(run(0, isDeepSeekLetter)), spaced(run(0, inSet(deepSeekPunctuation))),
			blankEnd{}, run(0, inSet(deepSeekEastAsian)), run(0, ofClass(number)),
		}},
		"deepseek-coder": {patterns: []finder{
			run(1, inSet("\r\n")), spaced(run(0, ofClass(anyLetter))), spaced(run(0, ofClass(punct))),
			run(0, inSet(deepSeekEastAsian)), digit,
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
	add(ggufPre{patterns: []finder{llama3.matcher()}, ignoreMerges: true, addBOS: true},
		"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano")
	add(ggufPre{patterns: []finder{llama3.matcher()}},
		"dbrx", "smaug-bpe", "glm4", "chatglm-bpe")
	add(ggufPre{patterns: []finder{qwen2.matcher()}},
		"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2",
		"bailingmoe", "bailingmoe2", "llada-moe")
	add(ggufPre{patterns: []finder{gpt4o.matcher()}},
		"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2")
	add(ggufPre{patterns: []finder{
		run(3, ofClass(number)), run(0, inSet(deepSeek3EastAsian)), matcher(matchDeepSeek3),
	}},
		"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4")
	add(ggufPre{patterns: []finder{seedCoder.matcher()}}, "seed-coder")
	add(ggufPre{patterns: []finder{words{digits: 1, tail: "\r\n"}.matcher()}}, "ufakzeka")
	add(ggufPre{patterns: []finder{matcher(matchLines), qwen2.matcher()}}, "laguna")
	add(ggufPre{patterns: []finder{run(3, ofClass(number)), words{contractions: true, tail: "\r\n"}.matcher()}, ignoreMerges: true},
		"minicpm5")
	add(ggufPre{patterns: []finder{gpt4o.matcher()}, ignoreMerges: true}, "granite-embed-multi-97m")
	add(ggufPre{first: splitter{shortSpaces(llama3.matcher())}}, "jais-2")
	add(ggufPre{first: splitter{digitGroups{wordEnd: true}}, patterns: []finder{gpt4o.matcher()}}, "tiny_aya", "cohere2moe")
	add(ggufPre{patterns: []finder{run(0, ofClass(number))}, last: splitter{digitGroups{}}}, "superbpe")
	add(ggufPre{first: splitter{digitGroups{}}, patterns: []finder{run(0, inSet(afmoeEastAsian)), matcher(matchDeepSeek3)}}, "afmoe")
	add(ggufPre{patterns: []finder{matcher(matchKimi)}}, "kimi-k2")
	add(ggufPre{expressions: []string{notPunctuation}}, "poro-chat", "bloom", "gpt3-finnish")
	add(ggufPre{expressions: []string{notPunctuation}, patterns: []finder{digit}}, "viking")
	add(ggufPre{
		expressions: []string{`<sentinel:[0-9]+>`, `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`, `([\t\n]|    |  )`},
		patterns:    []finder{digit, run(1, isBertPunctuation), matcher(matchGPT2)},
		addBOS:      true,
	}, "chameleon")
	add(ggufPre{
		patterns:     []finder{matcher(matchYoutuEastAsian), words{cased: true, suffixes: true, digits: 1, tail: "\r\n/"}.matcher()},
		ignoreMerges: true,
	}, "youtu")
	add(ggufPre{expressions: []string{
		`\p{N}{1,3}`, `[` + deepSeek3EastAsian + `]+`,
		"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\\r\\n]" + trailingSpace,
	}, patterns: []finder{digit}}, "spark2_5")
	add(ggufPre{expressions: []string{
		`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]` + trailingSpace,
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
	return classes()[r]&punct != 0
}

// isFalconPunctuation reports whether r is in [\p{P}\$\+<=>\^~\|`].
func isFalconPunctuation(r rune) bool { return r == '`' || isDefaultPunctuation(r) }

// matchThreeDigits matches [0-9][0-9][0-9].
func matchThreeDigits(text string, i int) int {
	for n := range 3 {
		if i+n >= len(text) || text[i+n] < '0' || text[i+n] > '9' {
			return i
		}
	}
	return i + 3
}
