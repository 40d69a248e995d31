package realizar

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// The least recently used grammars are dropped if others need the memory, and are compiled again
// when they are used.
func TestGrammarMemory(t *testing.T) {
	kept := func() (bytes int64) {
		keptGrammars.mu.Lock()
		defer keptGrammars.mu.Unlock()
		for c := range keptGrammars.at {
			bytes += c.size()
		}
		return bytes
	}
	var all []*Grammar
	for n := range 30 {
		var texts []string
		for i := range 1500 {
			texts = append(texts, fmt.Sprintf("%d %s", n*10000+i, strings.Repeat(string(rune('a'+i%26)), 20)))
		}
		g, err := OneOf(texts...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	if got := kept(); got > maxGrammarMemory || got < maxGrammarMemory/2 {
		t.Errorf("%d bytes are kept, at most %d may be", got, maxGrammarMemory)
	}
	runtime.GC()
	if all[0].now.Value() != nil {
		t.Error("a grammar that was not used for long is kept")
	}
	if all[len(all)-1].now.Value() == nil {
		t.Error("the last grammar is not kept")
	}
	for n, g := range all {
		text := fmt.Sprintf("%d %s", n*10000+27, strings.Repeat("b", 20))
		if fit, err := g.Check([]byte(text)); err != nil || !fit.Whole {
			t.Errorf("grammar %d: %+v (%v)", n, fit, err)
		}
	}
	if got := kept(); got > maxGrammarMemory {
		t.Errorf("%d bytes are kept after texts, at most %d may be", got, maxGrammarMemory)
	}
}
