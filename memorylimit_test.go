package realizar_test

import (
	"errors"
	"math"
	"testing"

	"github.com/realizar/realizar"
)

func TestMemoryLimit(t *testing.T) {
	type limit = realizar.MemoryLimit
	for text, want := range map[string]limit{
		"8GiB": {Bytes: 8 << 30}, "4096": {Bytes: 4096}, "1.5G": {Bytes: 3 << 29}, "2": {Bytes: 2}, "1b": {Bytes: 1}, " 3 MB ": {Bytes: 3e6},
		"0.5": {Fraction: 0.5}, "50%": {Fraction: 0.5}, "1": {Fraction: 1}, "100 %": {Fraction: 1}, "12.5%": {Fraction: 0.125}, "0": {}, "0%": {},
	} {
		got, err := realizar.ParseMemoryLimit(text)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := realizar.ParseMemoryLimit(got.String()); err != nil || again != got {
			t.Errorf("%q is written %q, which is %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "%", "-1", "-0.5", "101%", "-5%", "nan", "nan%", "inf", "8X", "8GiB%", "0.5GiB%", "0.5b", "1e30"} {
		if got, err := realizar.ParseMemoryLimit(text); !errors.Is(err, realizar.ErrOptions) || got != (limit{}) {
			t.Errorf("%q is %+v, %v, want an error", text, got, err)
		}
	}
	for l, want := range map[limit]int64{{}: 0, {Bytes: 7}: 7, {Fraction: 0.25}: 250, {Fraction: 1}: 1000, {Fraction: 1e-9}: 1} {
		if got := l.Of(1000); got != want {
			t.Errorf("%v of 1000 is %d, want %d", l, got, want)
		}
	}
	for _, l := range []limit{{Bytes: -1}, {Fraction: -0.1}, {Fraction: 1.1}, {Fraction: math.NaN()}, {Bytes: 1, Fraction: 0.5}} {
		if _, err := realizar.Open(t.Context(), "none", realizar.Options{DeviceMemory: l}); !errors.Is(err, realizar.ErrOptions) {
			t.Errorf("%+v: %v, want an error of the options", l, err)
		}
	}
}

func TestStreamWeights(t *testing.T) {
	for _, s := range []realizar.StreamWeights{realizar.StreamAuto, realizar.StreamAlways, realizar.StreamNever} {
		if got, err := realizar.ParseStreamWeights(s.String()); err != nil || got != s {
			t.Errorf("%v is %v, %v", s, got, err)
		}
	}
	for _, text := range []string{"Auto", "yes", "StreamWeights(3)"} {
		if got, err := realizar.ParseStreamWeights(text); !errors.Is(err, realizar.ErrOptions) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	if got, err := realizar.ParseStreamWeights(""); err != nil || got != realizar.StreamAuto {
		t.Errorf("the empty text is %v, %v", got, err)
	}
	if _, err := realizar.Open(t.Context(), "none", realizar.Options{StreamWeights: 3}); !errors.Is(err, realizar.ErrOptions) {
		t.Errorf("a way to stream that does not exist: %v", err)
	}
}
