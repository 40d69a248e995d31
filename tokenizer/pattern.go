package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// finder finds the matches of a pattern.
type finder interface {
	// each calls match for every match in text, in order, until match returns false. Only an
	// expression has empty matches. Finding all matches takes time proportional to the text. each
	// counts its steps in w.
	each(w *work, text string, match func(start, end int) (more bool))
}

// matcher is a finder that tests one position at a time: it returns the end of the match that
// begins at i in text, or i if there is none. It may take time proportional to the match, or to a
// run that it consumes with a constant number of further matches, so that finding all matches takes
// linear time.
type matcher func(w *work, text string, i int) (end int)

func (m matcher) each(w *work, text string, match func(start, end int) (more bool)) {
	for i := 0; i < len(text); {
		if end := m(w, text, i); end > i {
			if !match(i, end) {
				return
			}
			i = end
			continue
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		i += n
		w.step(n)
	}
}

// literal finds a string that is not empty.
type literal string

func (l literal) each(w *work, text string, match func(start, end int) (more bool)) {
	for at := 0; ; {
		i := strings.Index(text[at:], string(l))
		if i < 0 || !match(at+i, at+i+len(l)) {
			return
		}
		at += i + len(l)
		w.step(i + len(l))
	}
}

// blankEnd finds white space at the end of the text: \s+$ in pieces in which a line feed is the
// only character.
type blankEnd struct{}

func (blankEnd) each(w *work, text string, match func(start, end int) (more bool)) {
	if start := len(strings.TrimRightFunc(text, isSpace)); start < len(text) {
		match(start, len(text))
	}
}

// run returns a matcher for one to limit characters (0: any number) for which in returns true.
func run(limit int, in func(r rune) bool) matcher {
	return func(w *work, text string, i int) int {
		for n := 0; i < len(text) && (limit == 0 || n < limit); n++ {
			r, size := utf8.DecodeRuneInString(text[i:])
			if !in(r) {
				break
			}
			i += size
			w.step(size)
		}
		return i
	}
}

// either returns a matcher that tries matchers in order.
func either(matchers ...matcher) matcher {
	return func(w *work, text string, i int) int {
		for _, m := range matchers {
			if end := m(w, text, i); end > i {
				return end
			}
		}
		return i
	}
}

// spaced returns a matcher for an optional white space character followed by a match of m: \s?
// before a run.
func spaced(m matcher) matcher {
	return func(w *work, text string, i int) int {
		if r, n := utf8.DecodeRuneInString(text[i:]); isSpace(r) && i+n < len(text) {
			if end := m(w, text, i+n); end > i+n {
				return end
			}
		}
		return m(w, text, i)
	}
}

// ofClass returns a test for characters of any class in c.
func ofClass(c class) func(r rune) bool { return classes.of(c) }

// inSet returns a test for the characters of set, which has ranges such as a-z, as between the
// brackets of an expression. Ranges may only overlap at their ends.
func inSet(set string) func(r rune) bool {
	var ranges [][2]rune
	for s := []rune(set); len(s) > 0; {
		first, last, n := s[0], s[0], 1
		if len(s) > 2 && s[1] == '-' {
			last, n = s[2], 3
		}
		ranges = append(ranges, [2]rune{first, last})
		s = s[n:]
	}
	slices.SortFunc(ranges, func(a, b [2]rune) int { return cmp.Compare(a[0], b[0]) })
	return func(r rune) bool {
		i, found := slices.BinarySearchFunc(ranges, r, func(a [2]rune, r rune) int { return cmp.Compare(a[0], r) })
		return found || i > 0 && r <= ranges[i-1][1]
	}
}

// named is a finder with the name of its family of models.
type named struct {
	name string
	finder
}

// patterns are the regular expressions of published tokenizers. Expressions share a finder if they
// differ only in how they backtrack, or in a part that another alternative matches first.
var patterns = map[string]named{
	// GPT-2 and most tokenizers until 2023.
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`: {"gpt-2", classes.matcher((*properties).matchGPT2)},

	// cl100k of OpenAI, Llama 3 and many since.
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:  {"llama-bpe", llama3.matcher(classes)},
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`: {"llama-bpe", llama3.matcher(classes)},
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: {"llama-bpe", llama3.matcher(classes)},
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`:        {"llama-bpe", llama3.matcher(classes)},
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:       {"llama-bpe", llama3.matcher(classes)},

	// Qwen 2 and 3, and others with one token per digit.
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: {"qwen2", qwen2.matcher(classes)},
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`:       {"bailingmoe", qwen2.matcher(classes)},

	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: {"qwen35", qwen35.matcher(classes)},

	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`: {"seed-coder", seedCoder.matcher(classes)},
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`:    {"seed-coder", seedCoder.matcher(classes)},

	// o200k of OpenAI: gpt-4o, gpt-oss, Llama 4.
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`: {"gpt-4o", gpt4o.matcher(classes)},

	// Tekken of Mistral.
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`: {"tekken", tekken.matcher(classes)},

	// DeepSeek, which applies several expressions in turn.
	deepSeek3Words: {"deepseek-v3", classes.matcher((*properties).matchDeepSeek3)},
	strings.Replace(deepSeek3Words, `"`, `\"`, 1): {"deepseek-v3", classes.matcher((*properties).matchDeepSeek3)},
	`[` + deepSeek3EastAsian + `]+`:               {"", run(0, inSet(deepSeek3EastAsian))},
	`[` + deepSeekEastAsian + `]+`:                {"", run(0, inSet(deepSeekEastAsian))},
	`\s?[` + deepSeekLetters + `]+`:               {"deepseek-llm", spaced(run(0, isDeepSeekLetter))},
	`\s?[` + deepSeekPunctuation + `]+`:           {"", spaced(run(0, inSet(deepSeekPunctuation)))},
	`\s?\p{L}+`:                                   {"deepseek-coder", spaced(run(0, ofClass(anyLetter)))},
	`\s?\p{P}+`:                                   {"", spaced(run(0, ofClass(punct)))},
	`\s+$`:                                        {"", blankEnd{}},

	// Kimi K2.
	`[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: {"kimi-k2", matcher(matchKimi)},

	// Jais 2.
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`: {"jais-2", shortSpaces(llama3.matcher(classes))},

	// Parts of sequences.
	`[\r\n]`:     {"", run(1, inSet("\r\n"))},
	`\p{N}`:      {"", run(1, ofClass(number))},
	`\p{N}{1,3}`: {"", run(3, ofClass(number))},
}
