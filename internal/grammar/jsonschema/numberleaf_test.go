package jsonschema

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/rx"
)

// A machine agrees with exact arithmetic on texts of every form.
func TestNumberMachine(t *testing.T) {
	bound := rapid.Custom(func(t *rapid.T) *decimal {
		text := rapid.SampledFrom([]string{"", "0", "1", "-1", "10", "0.5", "-0.25", "99.95", "100", "1e-7", "-1e3", "12345.678", "5"}).Draw(t, "bound")
		if text == "" {
			return nil
		}
		d, err := parseDecimal(text)
		if err != nil {
			t.Fatal(err)
		}
		return &d
	})
	rapid.Check(t, func(t *rapid.T) {
		rule := numberRule{
			min: bound.Draw(t, "min"), max: bound.Draw(t, "max"),
			exclusiveMin: rapid.Bool().Draw(t, "exclusiveMin"), exclusiveMax: rapid.Bool().Draw(t, "exclusiveMax"),
			integer: rapid.Bool().Draw(t, "integer"),
		}
		if m := rapid.SampledFrom([]string{"", "", "1", "3", "0.01", "2.5", "1000", "0.125"}).Draw(t, "multiple"); m != "" {
			d, _ := parseDecimal(m)
			rule.multipleOf = &d
		}
		m, err := newNumberMachine(rule, true)
		if err != nil {
			t.Fatal(err)
		}
		space := rx.NewSpace(1 << 20)
		e := m.expr(space)
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "text")
		d, err := parseDecimal(text)
		if err != nil {
			t.Skip()
		}
		got := matches(space, e, text)
		if want := rule.contains(d); got && !want || !got && want && !hasExponent(text) {
			t.Fatalf("%s within %s: %v", text, rule.key(), got)
		}
		// Every accepted prefix can be completed.
		walk(t, space, e)
	})
}

func hasExponent(text string) bool {
	for _, c := range text {
		if c == 'e' || c == 'E' {
			return true
		}
	}
	return false
}

func matches(space *rx.Space, e rx.Expr, text string) bool {
	for _, b := range []byte(text) {
		e = space.Derive(e, b)
	}
	return space.Nullable(e)
}

// walk reads random bytes that e accepts until e ends.
func walk(t interface{ Fatalf(string, ...any) }, space *rx.Space, e rx.Expr) {
	if e == rx.Nothing {
		return
	}
	r := rand.New(rand.NewPCG(1, uint64(e)))
	for n := 0; ; n++ {
		var next []rx.Expr
		for _, b := range []byte("0123456789.-eE+") {
			if d := space.Derive(e, b); !space.IsEmpty(d) {
				next = append(next, d)
			}
		}
		if len(next) == 0 {
			if !space.Nullable(e) {
				t.Fatalf("a dead end after %d bytes", n)
			}
			return
		}
		e = next[r.IntN(len(next))]
	}
}

func TestDecimal(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{"1", "1"}, {"1.0", "1"}, {"-0", "0"}, {"0.50", "0.5"}, {"12e2", "1200"}, {"1.25e1", "12.5"}, {"5e-3", "0.005"}, {"-100e-2", "-1"}, {"0e9", "0"},
	} {
		d, err := parseDecimal(c.in)
		if err != nil || d.String() != c.out {
			t.Errorf("parseDecimal(%s) = %s, %v, want %s", c.in, d, err, c.out)
		}
	}
	for _, in := range []string{"1e401", "1e-401", "1e99999999999999999999"} {
		if d, err := parseDecimal(in); err == nil {
			t.Errorf("parseDecimal(%s) = %s, want an error", in, d)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.StringMatching(`-?[0-9]{1,6}(\.[0-9]{1,4})?`).Draw(t, "a")
		b := rapid.StringMatching(`-?[0-9]{1,6}(\.[0-9]{1,4})?`).Draw(t, "b")
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		d, _ := parseDecimal(a)
		e, _ := parseDecimal(b)
		if got := d.compare(e); got != x.Cmp(y) {
			t.Fatalf("%s beside %s: %d", a, b, got)
		}
		if (d == e) != (x.Cmp(y) == 0) {
			t.Fatal(fmt.Sprint(d, e))
		}
		if e.digits != "" && d.multipleOf(e) != new(big.Rat).Quo(x, y).IsInt() {
			t.Fatalf("%s multiple of %s", a, b)
		}
	})
}
