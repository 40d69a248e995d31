package tokenizer

// ggufPre is what a name in tokenizer.ggml.pre stands for.
type ggufPre struct {
	patterns     []finder // each isolates its matches in the pieces that the one before left
	ignoreMerges bool
	addBOS       bool // unless the file says otherwise
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
