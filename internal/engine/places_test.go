package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/engine"
)

func byClient(client string) func(*engine.Request) {
	return func(r *engine.Request) { r.Client = client }
}

// A client that arrives while another has all places gets its fair share once the other's answers
// have run for a page. A preempted answer continues later and is the same.
func TestPlacesAreShared(t *testing.T) {
	scripting(t, engine.Config{Context: 300, Parallel: 4}, &hashModel{windows: []int{0}}, func(s *script) {
		var greedy []*caller
		for i := range 6 {
			greedy = append(greedy, s.ask(1+i, 200, byClient("greedy"), nil))
		}
		s.steps(5)
		honest := s.ask(40, 5, byClient("honest"), nil)
		s.steps(20)
		if honest.chosen > 0 {
			t.Fatal("an answer gave up its place that had just got it")
		}
		s.until(honest, 20)
		s.done(honest, 5)
		if m := s.e.Metrics(); m.Preemptions != 1 {
			t.Errorf("%d answers were put out for one", m.Preemptions)
		}
		many := []*caller{s.ask(50, 100, byClient("other"), nil), s.ask(51, 100, byClient("other"), nil), s.ask(52, 100, byClient("other"), nil)}
		s.steps(45)
		has := func(all []*caller) (n int) {
			for _, c := range all {
				if !c.over && c.chosen > 0 {
					n++
				}
			}
			return n
		}
		if n := has(many); n != 2 {
			t.Errorf("the other has %d of 4 places", n)
		}
		before := s.e.Metrics().Preemptions
		s.steps(40)
		if got := s.e.Metrics().Preemptions; got != before {
			t.Errorf("places go back and forth: %d preemptions after %d", got, before)
		}
		for _, c := range slices.Concat(greedy, many) {
			s.until(c, 1000)
		}
		for i, c := range greedy {
			if s.done(c, 200); i == 0 && c.stats.Preemptions > 0 {
				t.Error("the first was put out")
			}
		}
		for _, c := range many {
			s.done(c, 100)
		}
	})
}

// If all waiting sequences are of one client, or each client has one place, none loses its place.
func TestPlacesAreKept(t *testing.T) {
	for what, client := range map[string]func(i int) string{
		"one client": func(int) string { return "one" }, "one answer each": func(i int) string { return fmt.Sprint(i) },
	} {
		t.Run(what, func(t *testing.T) {
			scripting(t, engine.Config{Context: 300, Parallel: 3}, &hashModel{windows: []int{0}}, func(s *script) {
				var all []*caller
				for i := range 9 {
					all = append(all, s.ask(1+i, 100, byClient(client(i)), nil))
				}
				for _, c := range all {
					s.until(c, 1000)
					s.done(c, 100)
				}
				if n := s.e.Metrics().Preemptions; n > 0 {
					t.Errorf("%d were put out", n)
				}
			})
		})
	}
}

// A client with short requests, one after another, preempts a long answer of another client no more
// often than once for each page of it, and for each eighth of what it may have to run again.
func TestPlacesDoNotThrash(t *testing.T) {
	const length = 600
	scripting(t, engine.Config{Context: 1000, Parallel: 2}, &hashModel{windows: []int{0}}, func(s *script) {
		greedy := []*caller{s.ask(1, length, byClient("greedy"), nil), s.ask(2, length, byClient("greedy"), nil)}
		for i := 0; !greedy[1].over; i++ {
			if i > 1000 {
				t.Fatal("it never ends")
			}
			c := s.ask(3+i%60, 2, byClient("honest"), nil)
			s.until(c, length)
			s.done(c, 2)
		}
		s.done(greedy[0], length)
		s.done(greedy[1], length)
		if n := greedy[1].stats.Preemptions; n == 0 || n > length/32 {
			t.Errorf("it was put out %d times", n)
		}
	})
}
