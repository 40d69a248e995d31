package rx_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/rx"
)

// run is the lexemes that are text, and whether any has text as its beginning.
func run(t interface{ Fatal(...any) }, st *rx.State, text string) (ends []int32, alive bool) {
	for i := range len(text) {
		if st == nil {
			return nil, false
		}
		var err error
		if st, err = st.Next(text[i]); err != nil {
			t.Fatal(err)
		}
	}
	if st == nil {
		return nil, false
	}
	if a := st.Accept(); a != nil {
		ends = a.IDs
	}
	return ends, true
}

func TestAutomatonAgreesWithDerivatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rx.NewSpace(1_000_000)
		var lexemes []rx.Lexeme
		for i, tr := range rapid.SliceOfN(anyTree(2), 1, 4).Draw(t, "trees") {
			lexemes = append(lexemes, rx.Lexeme{ID: int32(i * 3), Set: tr.build(s)})
		}
		// One with little room begins anew all the time.
		for _, limit := range []int{1_000_000, rapid.IntRange(300, 2000).Draw(t, "limit")} {
			a := rx.NewAutomaton(s, limit)
			start, err := a.Start(lexemes)
			if err != nil && limit < 1_000_000 {
				continue
			}
			for range 10 {
				text := texts.Draw(t, "text")
				var ends []int32
				alive := false
				for _, l := range lexemes {
					e := l.Set
					for i := range len(text) {
						e = s.Derive(e, text[i])
					}
					if s.Nullable(e) {
						ends = append(ends, l.ID)
					}
					alive = alive || !s.IsEmpty(e)
				}
				got, ok := run(&tolerant{T: t, limit: limit}, start, text)
				if !slices.Equal(got, ends) || ok != alive {
					t.Fatalf("%q ends %v, alive %v; want %v, %v", text, got, ok, ends, alive)
				}
			}
		}
	})
}

// tolerant skips a case whose automaton was drawn too small.
type tolerant struct {
	*rapid.T
	limit int
}

func (t *tolerant) Fatal(args ...any) {
	if err, ok := args[0].(error); ok && errors.Is(err, rx.ErrTooLarge) && t.limit < 1_000_000 {
		t.Skip("too small")
	}
	t.T.Fatal(args...)
}

func TestAutomatonBeginsAnew(t *testing.T) {
	s := rx.NewSpace(10_000)
	a := rx.NewAutomaton(s, 3000)
	st, err := a.Start([]rx.Lexeme{{ID: 1, Set: s.Repeat(s.Literal("ab"), 1_000_000, 1_000_000)}, {ID: 2, Set: s.Concat(rx.Anything, s.Literal("ba"))}})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("ab", 50_000)
	if ends, alive := run(t, st, text); len(ends) != 0 || !alive {
		t.Error(ends, alive)
	}
	if ends, alive := run(t, st, text+"a"); !slices.Equal(ends, []int32{2}) || !alive {
		t.Error(ends, alive)
	}
}

func TestAutomatonOfManyGoroutines(t *testing.T) {
	s := rx.NewSpace(10_000)
	a := rx.NewAutomaton(s, 2000)
	st, err := a.Start([]rx.Lexeme{{ID: 1, Set: s.Repeat(s.Or(s.Literal("a"), s.Literal("bc")), 5, 500)}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			text := strings.Repeat("abc", i) + strings.Repeat("a", 300-i)
			if ends, alive := run(t, st, text); len(ends) != 1 || !alive {
				t.Error(ends, alive)
			}
		})
	}
	wg.Wait()
}

func TestAutomatonTooSmall(t *testing.T) {
	s := rx.NewSpace(10_000)
	any := s.Bytes(rx.AllBytes)
	a := rx.NewAutomaton(s, 200)
	e := rx.Anything
	for _, b := range []byte("abcdefghij") {
		e = s.And(e, s.Concat(rx.Anything, s.Bytes(rx.BytesOf(b)), s.Repeat(any, 1000, 1000)))
	}
	_, err := a.Start([]rx.Lexeme{{ID: 1, Set: e}})
	if !errors.Is(err, rx.ErrTooLarge) {
		t.Error(err)
	}
}
