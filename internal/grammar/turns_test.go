package grammar

import (
	"testing"
)

// A long mask waits for its turn; a short one does not.
func TestTurns(t *testing.T) {
	b := NewBuilder(Limits{})
	letters := b.Lexeme(b.Space().Repeat(b.Space().Literal("a"), 1, -1))
	g, err := b.Grammar(letters)
	if err != nil {
		t.Fatal(err)
	}
	for range cap(turns) {
		turns <- struct{}{}
	}
	if s, ok := g.Start().Bytes([]byte("aaaa")); !ok || !s.Ends() {
		t.Error("a short text does not fit while long ones have all turns")
	}
	sc := g.begin()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sc.spend(longWork + 1)
		g.end(sc)
	}()
	select {
	case <-ended:
		t.Error("long work does not wait for its turn")
	default:
	}
	<-turns
	<-ended
	for range cap(turns) - 1 {
		<-turns
	}
	if len(turns) != 0 {
		t.Errorf("%d turns are kept", len(turns))
	}
}
