package tokenizer

import (
	"context"
	"math"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// A lookedAt is a context that counts calls of Err.
type lookedAt struct {
	context.Context
	looks int
}

func (l *lookedAt) Err() error {
	l.looks++
	return nil
}

func mustExpression(t *testing.T, text string) *expression {
	t.Helper()
	e, err := compileExpression(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestLooks checks that everything that reads a long text checks its context while it does.
func TestLooks(t *testing.T) {
	const size = 1 << 20
	texts := map[string]string{"letters": "a", "capitals": "A", "blanks": " ", "marks": "e\u0301\u0323", "no text": "\xff", "digits": "7", "signs": "!", "Chinese": "世", "words": "aB c"}
	normalizers := map[string]normalStep{
		"replace": replace{literal("a"), "bb"}, "replace run": replace{run(0, isSpace), "_"}, "lowercase": lowercase{},
		"characters": eachCharacter(cleanText), "NFC": unicodeForm(norm.NFC), "NFKD": unicodeForm(norm.NFKD),
		"SentencePiece": &spText{user: newTrie(nil), space: "_", merge: true}, "llama.cpp": &unigramText{user: newTrie(nil)},
	}
	always := map[string]bool{"replace run": true, "lowercase": true, "characters": true, "SentencePiece": true, "llama.cpp": true}
	splitters := map[string]splitStep{
		"llama3": split{pattern: llama3.matcher(classes), behavior: isolated}, "o200k": split{pattern: gpt4o.matcher(classes), behavior: isolated},
		"gpt2":        split{pattern: classes.matcher((*properties).matchGPT2), behavior: isolated},
		"deepseek":    split{pattern: classes.matcher((*properties).matchDeepSeek3), behavior: isolated},
		"words":       split{pattern: matcher(matchWordOrSymbols), behavior: removed},
		"fixed":       fixedLength(7),
		"characters":  spelled{},
		"scripts":     scriptSplit{},
		"groups":      digitGroups{},
		"threes":      threesFromRight{},
		"metaspace":   metaspace{replacement: "▁", split: true},
		"expression":  split{pattern: mustExpression(t, `[a-z ]*[^a-z ]+|(a|[b-z ])+`), behavior: isolated},
		"expression2": split{pattern: mustExpression(t, `\p{L}+|\s+`), behavior: isolated},
	}
	vocab := vocabulary{ids: map[string]int32{}}
	models := map[string]model{
		"BPE":     &bpe{vocab: &vocab, unknown: 0, mergers: new(mergers)},
		"SPM":     newSPM(&vocab, nil, 0),
		"unigram": func() *unigram { u := &unigram{vocab: &vocab}; u.init(nil); return u }(),
	}
	for i := range models["BPE"].(*bpe).bytes {
		models["BPE"].(*bpe).bytes[i] = -1
	}
	added := newAddedTokens([]addedToken{{pattern: "<tool>", special: true}, {pattern: "[x]"}})
	for name, part := range texts {
		text := strings.Repeat(part, size/len(part))
		check := func(what string, do func(w *work)) {
			t.Helper()
			ctx := &lookedAt{Context: t.Context()}
			do(&work{ctx: ctx})
			if want := size/stepsPerLook/4 - 1; ctx.looks < want {
				t.Errorf("%s of %s: %d looks at its context, want %d or more", what, name, ctx.looks, want)
			}
		}
		for what, step := range normalizers {
			if got, _ := step.apply(nil, text, nil); got == text && !always[what] {
				continue // it returns at once
			}
			check(what, func(w *work) { step.apply(w, text, nil) })
		}
		for what, step := range splitters {
			if what == "metaspace" && !strings.Contains(text, " ") {
				continue // likewise
			}
			check("splitting by "+what, func(w *work) { step.cut(w, text, true, func(string, bool) {}) })
		}
		for what, m := range models {
			check(what, func(w *work) { m.encode(w, nil, text) })
		}
		check("added tokens", func(w *work) { added.split(w, text, nil, func(int, int, int32) {}) })
	}
	words := wordPiece{maxChars: math.MaxInt64}
	words.init(&vocabulary{tokens: []token{{text: "a"}}, ids: map[string]int32{"a": 0}}, "")
	ctx := &lookedAt{Context: t.Context()}
	if words.encode(&work{ctx: ctx}, nil, strings.Repeat("a", size)); ctx.looks < size/stepsPerLook-1 {
		t.Errorf("WordPiece: %d looks at its context", ctx.looks)
	}
}
