package sample_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/realizar/realizar/internal/sample"
)

var (
	nan    = float32(math.NaN())
	inf    = float32(math.Inf(1))
	negInf = float32(math.Inf(-1))
)

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name  string
		p     *sample.Params
		names []string // fields in the error; none: valid
	}{
		{"nil", nil, nil},
		{"zero", &sample.Params{}, nil},
		{"all", &sample.Params{Temperature: 0.7, TopK: 40, TopP: 0.95, MinP: 0.05, Seed: math.MaxUint64, Choice: math.MaxUint32}, nil},
		{"upper ends", &sample.Params{Temperature: math.MaxFloat32, TopK: math.MaxInt, TopP: 1, MinP: 1}, nil},
		{"minus zero", &sample.Params{Temperature: float32(math.Copysign(0, -1))}, nil},
		{"temperature NaN", &sample.Params{Temperature: nan}, []string{"Temperature", "NaN"}},
		{"temperature Inf", &sample.Params{Temperature: inf}, []string{"Temperature", "+Inf"}},
		{"temperature negative", &sample.Params{Temperature: -0.5}, []string{"Temperature", "-0.5"}},
		{"penalties", &sample.Params{Repetition: 1.1, Frequency: 0.5, Presence: -0.5, Typical: 0.9}, nil},
		{"penalties at their ends", &sample.Params{Repetition: 100, Frequency: -100, Presence: 100, Typical: 1}, nil},
		{"least repetition", &sample.Params{Repetition: 0.01}, nil},
		{"repetition NaN", &sample.Params{Repetition: nan}, []string{"Repetition", "NaN", "0.01 to 100"}},
		{"repetition negative", &sample.Params{Repetition: -1}, []string{"Repetition", "-1", "0.01 to 100"}},
		{"repetition below", &sample.Params{Repetition: 0.009}, []string{"Repetition", "0.009", "0.01 to 100"}},
		{"repetition above", &sample.Params{Repetition: inf}, []string{"Repetition", "+Inf", "0.01 to 100"}},
		{"frequency NaN", &sample.Params{Frequency: nan}, []string{"Frequency", "NaN", "-100 to 100"}},
		{"frequency above", &sample.Params{Frequency: 100.5}, []string{"Frequency", "100.5", "-100 to 100"}},
		{"presence below", &sample.Params{Presence: negInf}, []string{"Presence", "-Inf", "-100 to 100"}},
		{"typical NaN", &sample.Params{Typical: nan}, []string{"Typical", "NaN", "0 to 1"}},
		{"typical negative", &sample.Params{Typical: -0.5}, []string{"Typical", "-0.5", "0 to 1"}},
		{"typical above", &sample.Params{Typical: 2}, []string{"Typical", "2", "0 to 1"}},
		{"top-k negative", &sample.Params{TopK: -3}, []string{"TopK", "-3"}},
		{"top-p NaN", &sample.Params{TopP: nan}, []string{"TopP", "NaN", "0 to 1"}},
		{"top-p negative", &sample.Params{TopP: -0.25}, []string{"TopP", "-0.25", "0 to 1"}},
		{"top-p above", &sample.Params{TopP: 1.5}, []string{"TopP", "1.5", "0 to 1"}},
		{"min-p NaN", &sample.Params{MinP: nan}, []string{"MinP", "NaN", "0 to 1"}},
		{"min-p negative", &sample.Params{MinP: -1}, []string{"MinP", "-1", "0 to 1"}},
		{"min-p above", &sample.Params{MinP: math.Nextafter32(1, 2)}, []string{"MinP", "1.0000001", "0 to 1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.p.Validate()
			if (err != nil) != (test.names != nil) || err != nil && !errors.Is(err, sample.ErrParams) {
				t.Fatalf("Validate = %v", err)
			}
			for _, name := range test.names {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%q does not name %q", err, name)
				}
			}
			if _, tokenErr := new(sample.Sampler).Token([]float32{1, 2}, test.p, nil, nil, -1, 0); fmt.Sprint(tokenErr) != fmt.Sprint(err) {
				t.Errorf("Token says %v, Validate %v", tokenErr, err)
			}
		})
	}
}

func TestTokenRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		logits []float32
		mask   []uint32
		want   error
		names  []string
	}{
		{"NaN", []float32{0, 1, nan, 2}, nil, sample.ErrNotFinite, []string{"token 2 of 4", "NaN"}},
		{"NaN first", []float32{nan, 1}, nil, sample.ErrNotFinite, []string{"token 0 of 2", "NaN"}},
		{"NaN last", []float32{1, nan}, nil, sample.ErrNotFinite, []string{"token 1 of 2", "NaN"}},
		{"NaN alone", []float32{nan}, nil, sample.ErrNotFinite, []string{"token 0 of 1", "NaN"}},
		{"NaN forbidden", []float32{0, nan}, []uint32{1}, sample.ErrNotFinite, []string{"token 1 of 2", "NaN"}},
		{"+Inf", []float32{0, 1, 2, inf}, nil, sample.ErrNotFinite, []string{"token 3 of 4", "+Inf"}},
		{"+Inf forbidden", []float32{inf, 1}, []uint32{2}, sample.ErrNotFinite, []string{"token 0 of 2", "+Inf"}},
		{"all -Inf", []float32{negInf, negInf, negInf}, nil, sample.ErrNotFinite, []string{"all 3 ", "-Inf"}},
		{"all allowed -Inf", []float32{negInf, 1, negInf}, []uint32{5}, sample.ErrNotFinite, []string{"all 2 ", "of 3", "-Inf"}},
		{"mask empty", []float32{1, 2, 3}, []uint32{0}, sample.ErrEmptyMask, []string{"3 tokens"}},
		{"mask only past the vocabulary", []float32{1, 2, 3}, []uint32{8, 1}, sample.ErrEmptyMask, []string{"3 tokens"}},
		{"mask short", make([]float32, 33), []uint32{1}, sample.ErrShape, []string{"1 words", "want 2", "33"}},
		{"mask of no words", make([]float32, 1), []uint32{}, sample.ErrShape, []string{"0 words", "want 1"}},
		{"no logits", nil, nil, sample.ErrShape, []string{"no logits"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, p := range []*sample.Params{{}, {Temperature: 1}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopP: 0.5, MinP: 0.5}} {
				_, err := new(sample.Sampler).Token(test.logits, p, test.mask, nil, -1, 0)
				if !errors.Is(err, test.want) {
					t.Fatalf("Token = %v, want %v", err, test.want)
				}
				for _, name := range test.names {
					if !strings.Contains(err.Error(), name) {
						t.Errorf("%q does not name %q", err, name)
					}
				}
			}
		})
	}
}

func TestTokenRefusesAdjustments(t *testing.T) {
	logits := []float32{1, 2, 3}
	for _, test := range []struct {
		name   string
		logits []float32
		mask   []uint32
		list   []sample.Adjustment
		last   int32
		want   error
		names  []string
	}{
		{"out of order", logits, nil, []sample.Adjustment{{Token: 2}, {Token: 1}}, -1, sample.ErrAdjustment, []string{"adjustment 1", "token 1", "after token 2"}},
		{"twice", logits, nil, []sample.Adjustment{{Token: 1}, {Token: 1}}, -1, sample.ErrAdjustment, []string{"adjustment 1", "token 1"}},
		{"negative", logits, nil, []sample.Adjustment{{Token: -1}}, -1, sample.ErrAdjustment, []string{"token -1"}},
		{"outside", logits, nil, []sample.Adjustment{{Token: 3}}, -1, sample.ErrAdjustment, []string{"token 3", "has 3"}},
		{"bias NaN", logits, nil, []sample.Adjustment{{Token: 1, Bias: nan}}, -1, sample.ErrAdjustment, []string{"token 1", "NaN"}},
		{"bias +Inf", logits, nil, []sample.Adjustment{{Token: 1, Bias: inf}}, -1, sample.ErrAdjustment, []string{"token 1", "+Inf"}},
		{"count", logits, nil, []sample.Adjustment{{Token: 1, Count: -2}}, -1, sample.ErrAdjustment, []string{"token 1", "-2 times"}},
		{"count beyond", logits, nil, []sample.Adjustment{{Token: 1, Count: math.MaxInt32}}, -1, sample.ErrAdjustment, []string{"token 1", "2147483646"}},
		{"last outside", logits, nil, nil, 3, sample.ErrAdjustment, []string{"last token is 3", "has 3"}},
		{"all forbidden", logits, nil, []sample.Adjustment{{Token: 0, Bias: negInf}, {Token: 1, Bias: negInf}, {Token: 2, Bias: negInf}}, -1, sample.ErrEmptyMask, []string{"3 tokens", "bias"}},
		{"all but the masked forbidden", logits, []uint32{3}, []sample.Adjustment{{Token: 0, Bias: negInf}, {Token: 1, Bias: negInf}}, -1, sample.ErrEmptyMask, []string{"3 tokens"}},
		{"all forbidden but -Inf", []float32{1, negInf, 3}, nil, []sample.Adjustment{{Token: 0, Bias: negInf}, {Token: 2, Bias: negInf}}, -1, sample.ErrNotFinite, []string{"all 1 ", "of 3"}},
		{"-Inf and a bias", []float32{negInf}, nil, []sample.Adjustment{{Token: 0, Bias: 5}}, -1, sample.ErrNotFinite, []string{"all 1 "}},
		{"NaN forbidden", []float32{1, nan}, nil, []sample.Adjustment{{Token: 1, Bias: negInf}}, -1, sample.ErrNotFinite, []string{"token 1", "NaN"}},
		{"NaN adjusted", []float32{1, nan}, nil, []sample.Adjustment{{Token: 1, Bias: 1}}, 1, sample.ErrNotFinite, []string{"token 1", "NaN"}},
		{"+Inf adjusted", []float32{1, inf}, nil, []sample.Adjustment{{Token: 1, Bias: -5}}, -1, sample.ErrNotFinite, []string{"token 1", "+Inf"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, p := range []*sample.Params{{}, {Temperature: 1, Repetition: 2, Frequency: 1}, {Temperature: 1, TopK: 1, Typical: 0.5}} {
				_, err := new(sample.Sampler).Token(test.logits, p, test.mask, test.list, test.last, 0)
				if !errors.Is(err, test.want) {
					t.Fatalf("Token = %v, want %v", err, test.want)
				}
				for _, name := range test.names {
					if !strings.Contains(err.Error(), name) {
						t.Errorf("%q does not name %q", err, name)
					}
				}
			}
		})
	}
}

// Greedy choices between two tokens show the first one's adjusted logit.
func TestTokenAdjusts(t *testing.T) {
	const most = math.MaxFloat32
	for _, test := range []struct {
		name         string
		logit, other float32 // logits of tokens 0 and 1
		p            sample.Params
		a            sample.Adjustment // for token 0
		last         int32
		want         float32 // adjusted logit of token 0
	}{
		{"bias", 1, 0, sample.Params{}, sample.Adjustment{Bias: 2.5}, -1, 3.5},
		{"counts alone", 1, 0, sample.Params{Repetition: 1}, sample.Adjustment{Count: 7, Prompt: true}, 0, 1},
		{"repetition divides", 3, 0, sample.Params{Repetition: 2}, sample.Adjustment{Count: 1}, -1, 1.5},
		{"repetition multiplies", -3, 0, sample.Params{Repetition: 2}, sample.Adjustment{Count: 1}, -1, -6},
		{"repetition of the prompt", 3, 0, sample.Params{Repetition: 2}, sample.Adjustment{Prompt: true}, -1, 1.5},
		{"repetition of what is new", 3, 0, sample.Params{Repetition: 2}, sample.Adjustment{}, -1, 3},
		{"repetition of the last", 3, 0, sample.Params{Repetition: 2}, sample.Adjustment{}, 0, 1.5},
		{"presence", 3, 0, sample.Params{Presence: 0.5}, sample.Adjustment{Count: 9}, -1, 2.5},
		{"presence of the prompt", 3, 0, sample.Params{Presence: 0.5}, sample.Adjustment{Prompt: true}, -1, 3},
		{"frequency", 3, 0, sample.Params{Frequency: 0.5}, sample.Adjustment{Count: 3}, -1, 1.5},
		{"frequency and the last", 3, 0, sample.Params{Frequency: 0.5}, sample.Adjustment{Count: 3}, 0, 1},
		{"frequency and another last", 3, 0, sample.Params{Frequency: 0.5}, sample.Adjustment{Count: 3}, 2, 1.5},
		{"all, in their order", 3, 0, sample.Params{Repetition: 2, Frequency: 0.25, Presence: 0.125}, sample.Adjustment{Bias: 1, Count: 2}, -1, 1.375},
		{"bias beyond the range", most, 0, sample.Params{Frequency: 1}, sample.Adjustment{Bias: most, Count: 1}, -1, most},
		{"repetition beyond the range", most, 0, sample.Params{Repetition: 0.01}, sample.Adjustment{Count: 1}, -1, most},
		{"repetition beyond the range, below", -most, 0, sample.Params{Repetition: 100}, sample.Adjustment{Count: 1}, -1, -most},
	} {
		t.Run(test.name, func(t *testing.T) {
			for other, want := range map[float32]int32{test.want: 0, math.Nextafter32(test.want, inf): 1} {
				if want == 1 && other == inf {
					continue
				}
				var s sample.Sampler
				got, err := s.Token([]float32{test.logit, other, negInf}, &test.p, nil, []sample.Adjustment{test.a}, test.last, 0)
				if err != nil || got != want {
					t.Errorf("beside a logit of %v: token %d, %v, want %d", other, got, err, want)
				}
			}
		})
	}
}

// choosable returns the tokens chosen in many draws.
func choosable(t *testing.T, logits []float32, p sample.Params, mask []uint32) []int32 {
	t.Helper()
	var s sample.Sampler
	seen := map[int32]bool{}
	for pos := range 2000 {
		id, err := s.Token(logits, &p, mask, nil, -1, pos)
		if err != nil {
			t.Fatal(err)
		}
		seen[id] = true
	}
	var ids []int32
	for id := range seen {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Logits of the tokens 0 to 4 with these probabilities at temperature 1.
var tenths = logOf(0.1, 0.4, 0.2, 0.2, 0.1)

func logOf(p ...float64) []float32 {
	logits := make([]float32, len(p))
	for i, x := range p {
		logits[i] = float32(math.Log(x))
	}
	return logits
}

func TestTokenKeeps(t *testing.T) {
	equal := make([]float32, 10)
	for _, test := range []struct {
		name   string
		logits []float32
		p      sample.Params
		mask   []uint32
		want   []int32
	}{
		{"greedy", tenths, sample.Params{}, nil, []int32{1}},
		{"greedy, lowest id among equals", []float32{1, 3, 2, 3}, sample.Params{}, nil, []int32{1}},
		{"greedy, 0 and -0 are equal", []float32{float32(math.Copysign(0, -1)), 0}, sample.Params{}, nil, []int32{0}},
		{"greedy ignores the rest", tenths, sample.Params{TopK: 3, TopP: 0.9, MinP: 0.1, Seed: 7}, nil, []int32{1}},
		{"greedy under a mask", tenths, sample.Params{}, []uint32{0b11001}, []int32{3}},
		{"greedy beside -Inf", []float32{negInf, -5, negInf}, sample.Params{}, nil, []int32{1}},
		{"greedy, smallest numbers", []float32{negInf, -math.MaxFloat32}, sample.Params{}, nil, []int32{1}},
		{"one token", []float32{-3}, sample.Params{Temperature: 2, TopK: 5, TopP: 0.1, MinP: 1}, nil, []int32{0}},
		{"everything", tenths, sample.Params{Temperature: 1}, nil, []int32{0, 1, 2, 3, 4}},
		{"-Inf is never chosen", []float32{0, negInf, 0}, sample.Params{Temperature: math.MaxFloat32}, nil, []int32{0, 2}},
		{"mask", tenths, sample.Params{Temperature: 1}, []uint32{0b10101}, []int32{0, 2, 4}},
		{"mask before top-k", tenths, sample.Params{Temperature: 1, TopK: 2}, []uint32{0b10101}, []int32{0, 2}},
		{"smallest temperature", tenths, sample.Params{Temperature: math.SmallestNonzeroFloat32}, nil, []int32{1}},
		{"smallest temperature among equals", []float32{5, 7, 7}, sample.Params{Temperature: math.SmallestNonzeroFloat32}, nil, []int32{1, 2}},
		{"smallest temperature, widest logits", []float32{-math.MaxFloat32, math.MaxFloat32}, sample.Params{Temperature: math.SmallestNonzeroFloat32}, nil, []int32{1}},
		{"largest temperature", []float32{-math.MaxFloat32, math.MaxFloat32}, sample.Params{Temperature: math.MaxFloat32}, nil, []int32{0, 1}},
		{"top-k 1", tenths, sample.Params{Temperature: 9, TopK: 1}, nil, []int32{1}},
		{"top-k cuts equals by id", tenths, sample.Params{Temperature: 1, TopK: 2}, nil, []int32{1, 2}},
		{"top-k of the vocabulary", tenths, sample.Params{Temperature: 1, TopK: 5}, nil, []int32{0, 1, 2, 3, 4}},
		{"top-k above the vocabulary", tenths, sample.Params{Temperature: 1, TopK: math.MaxInt}, nil, []int32{0, 1, 2, 3, 4}},
		{"top-k of equals", equal, sample.Params{Temperature: 1, TopK: 3}, nil, []int32{0, 1, 2}},
		{"top-p keeps the token that crosses", tenths, sample.Params{Temperature: 1, TopP: 0.5}, nil, []int32{1, 2}},
		{"top-p within the first", tenths, sample.Params{Temperature: 1, TopP: 0.3}, nil, []int32{1}},
		{"top-p smallest", tenths, sample.Params{Temperature: 1, TopP: math.SmallestNonzeroFloat32}, nil, []int32{1}},
		{"top-p nearly 1", tenths, sample.Params{Temperature: 1, TopP: 0.95}, nil, []int32{0, 1, 2, 3, 4}},
		{"top-p 1 is off", tenths, sample.Params{Temperature: 1, TopP: 1}, nil, []int32{0, 1, 2, 3, 4}},
		{"top-p reached exactly", equal[:4], sample.Params{Temperature: 1, TopP: 0.5}, nil, []int32{0, 1}},
		{"top-p just missed", equal[:4], sample.Params{Temperature: 1, TopP: math.Nextafter32(0.5, 1)}, nil, []int32{0, 1, 2}},
		// Of 0.4, 0.2 and 0.2 the first has half of the sum.
		{"top-p of what top-k left", tenths, sample.Params{Temperature: 1, TopK: 3, TopP: 0.45}, nil, []int32{1}},
		// At temperature 1/2 the probabilities are in the ratio 16:4:4:1:1.
		{"top-p after temperature", tenths, sample.Params{Temperature: 0.5, TopP: 0.6}, nil, []int32{1}},
		// Probabilities 0.1, 0.2 and 0.4 have the information 2.30, 1.61 and 0.92 nats, 1.47 on
		// average.
		{"typical", tenths, sample.Params{Temperature: 1, Typical: 0.39}, nil, []int32{2, 3}},
		{"typical, equals by id", tenths, sample.Params{Temperature: 1, Typical: 0.19}, nil, []int32{2}},
		{"typical, the likeliest comes second", tenths, sample.Params{Temperature: 1, Typical: 0.5}, nil, []int32{1, 2, 3}},
		{"typical smallest", tenths, sample.Params{Temperature: 1, Typical: math.SmallestNonzeroFloat32}, nil, []int32{2}},
		{"typical 1 is off", tenths, sample.Params{Temperature: 1, Typical: 1}, nil, []int32{0, 1, 2, 3, 4}},
		{"typical of equals", equal, sample.Params{Temperature: 1, Typical: 0.5}, nil, []int32{0, 1, 2, 3, 4}},
		{"typical of what a mask left", tenths, sample.Params{Temperature: 1, Typical: 0.5}, []uint32{0b10001}, []int32{0}},
		{"typical of what top-k left", tenths, sample.Params{Temperature: 1, TopK: 2, Typical: 0.4}, nil, []int32{1}},
		{"top-p of what typical left", tenths, sample.Params{Temperature: 1, Typical: 0.39, TopP: 0.49}, nil, []int32{2}},
		{"min-p of what typical left", tenths, sample.Params{Temperature: 1, Typical: 0.39, MinP: 1}, nil, []int32{2, 3}},
		{"min-p", tenths, sample.Params{Temperature: 1, MinP: 0.4}, nil, []int32{1, 2, 3}},
		{"min-p 1", tenths, sample.Params{Temperature: 1, MinP: 1}, nil, []int32{1}},
		{"min-p 1 among equals", equal[:3], sample.Params{Temperature: 1, MinP: 1}, nil, []int32{0, 1, 2}},
		{"min-p smallest", tenths, sample.Params{Temperature: 1, MinP: math.SmallestNonzeroFloat32}, nil, []int32{0, 1, 2, 3, 4}},
		{"min-p after temperature", tenths, sample.Params{Temperature: 0.5, MinP: 0.3}, nil, []int32{1}},
		{"min-p after top-p", tenths, sample.Params{Temperature: 1, TopP: 0.5, MinP: 0.4}, nil, []int32{1, 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, choosable(t, test.logits, test.p, test.mask)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Tokens are chosen as often as their probabilities say: Pearson's chi-square over fixed seeds,
// against the 99.9% quantile of its distribution.
func TestTokenFrequencies(t *testing.T) {
	for _, test := range []struct {
		name   string
		logits []float32
		p      sample.Params
		want   []float64 // probabilities
		bound  float64   // quantile for the degrees of freedom
	}{
		{"temperature 1", tenths, sample.Params{Temperature: 1}, []float64{0.1, 0.4, 0.2, 0.2, 0.1}, 18.467},
		{"temperature 1/2", tenths, sample.Params{Temperature: 0.5}, []float64{1. / 26, 16. / 26, 4. / 26, 4. / 26, 1. / 26}, 18.467},
		{"top-k", tenths, sample.Params{Temperature: 1, TopK: 3}, []float64{0, 0.5, 0.25, 0.25, 0}, 13.816},
		{"top-p", tenths, sample.Params{Temperature: 1, TopP: 0.7}, []float64{0, 0.5, 0.25, 0.25, 0}, 13.816},
		{"min-p", tenths, sample.Params{Temperature: 1, MinP: 0.4}, []float64{0, 0.5, 0.25, 0.25, 0}, 13.816},
		{"equal", make([]float32, 4), sample.Params{Temperature: 3}, []float64{0.25, 0.25, 0.25, 0.25}, 16.266},
	} {
		const draws = 100_000
		for _, along := range []string{"position", "choice", "seed"} {
			t.Run(test.name+" along "+along, func(t *testing.T) {
				var s sample.Sampler
				seen := make([]float64, len(test.logits))
				for i := range draws {
					p, pos := test.p, 17
					p.Seed, p.Choice = 1234, 5
					switch along {
					case "position":
						pos = i
					case "choice":
						p.Choice = uint32(i)
					case "seed":
						p.Seed = uint64(i)
					}
					id, err := s.Token(test.logits, &p, nil, nil, -1, pos)
					if err != nil {
						t.Fatal(err)
					}
					seen[id]++
				}
				var chi2 float64
				for id, q := range test.want {
					if q == 0 {
						if seen[id] != 0 {
							t.Errorf("token %d came up", id)
						}
						continue
					}
					d := seen[id] - draws*q
					chi2 += d * d / (draws * q)
				}
				if chi2 > test.bound {
					t.Errorf("chi-square %.2f above %.2f: %v of %d", chi2, test.bound, seen, draws)
				}
			})
		}
	}
}

// Consecutive tokens are independent: all 16 pairs of four equally likely tokens are equally
// frequent (15 degrees of freedom).
func TestTokenPairsAreIndependent(t *testing.T) {
	var s sample.Sampler
	var seen [16]float64
	const pairs = 50_000
	for i := range pairs {
		pair := 0
		for j := range 2 {
			id, err := s.Token(make([]float32, 4), &sample.Params{Temperature: 1, Seed: 99}, nil, nil, -1, 2*i+j)
			if err != nil {
				t.Fatal(err)
			}
			pair = 4*pair + int(id)
		}
		seen[pair]++
	}
	var chi2 float64
	for _, n := range seen {
		d := n - pairs/16.
		chi2 += d * d / (pairs / 16.)
	}
	if chi2 > 37.697 {
		t.Errorf("chi-square %.2f above 37.70: %v", chi2, seen)
	}
}

// vocabulary returns the logits of n tokens, normally distributed.
func vocabulary(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, n)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	return logits
}

// These tokens are guaranteed: the same on every machine and in every later version for the same
// request.
func TestTokenGolden(t *testing.T) {
	logits := make([]float32, 1000)
	for i := range logits {
		logits[i] = float32(i*7919%1000)/100 - 5
	}
	for _, test := range []struct {
		p    sample.Params
		want []int32
	}{
		{sample.Params{}, []int32{321, 321, 321, 321, 321, 321, 321, 321}},
		{sample.Params{Temperature: 1, Seed: 42}, []int32{544, 840, 668, 952, 743, 235, 656, 13}},
		{sample.Params{Temperature: 1, Seed: 42, Choice: 1}, []int32{494, 117, 494, 915, 927, 819, 902, 519}},
		{sample.Params{Temperature: 1, Typical: 0.5, Seed: 42}, []int32{38, 223, 421, 742, 409, 260, 273, 791}},
		{sample.Params{Temperature: 0.7, TopK: 40, TopP: 0.95, MinP: 0.05, Seed: 42}, []int32{136, 531, 383, 704, 951, 210, 667, 494}},
	} {
		var got []int32
		var s sample.Sampler
		for pos := range 8 {
			id, err := s.Token(logits, &test.p, nil, nil, -1, pos)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, id)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%+v: %s", test.p, diff)
		}
	}
}

// A token depends only on its own arguments, neither on earlier calls nor on the order in which a
// batch is sampled.
func TestTokenIgnoresNeighbours(t *testing.T) {
	logits := vocabulary(5000)
	params := []sample.Params{
		{Temperature: 1, Seed: 1}, {Temperature: 1.5, TopK: 50, Seed: 1}, {},
		{Temperature: 0.8, TopP: 0.9, Seed: 2}, {Temperature: 1, MinP: 0.01, Seed: 1, Choice: 1},
	}
	alone := map[[2]int]int32{}
	for i, p := range params {
		for pos := range 40 {
			var err error
			if alone[[2]int{i, pos}], err = new(sample.Sampler).Token(logits[pos:], &p, nil, nil, -1, pos); err != nil {
				t.Fatal(err)
			}
		}
	}
	var shared sample.Sampler
	for pos := 39; pos >= 0; pos-- {
		for i, p := range params {
			got, err := shared.Token(logits[pos:], &p, nil, nil, -1, pos)
			if err != nil {
				t.Fatal(err)
			}
			if want := alone[[2]int{i, pos}]; got != want {
				t.Errorf("%+v at %d: %d in a batch, %d alone", p, pos, got, want)
			}
		}
	}
}

func TestTokenDoesNotAllocate(t *testing.T) {
	logits := vocabulary(10_000)
	var s sample.Sampler
	list := []sample.Adjustment{{Token: 5, Bias: 1}, {Token: 70, Count: 2}, {Token: 9999, Prompt: true}}
	for _, p := range []sample.Params{
		{}, {Temperature: 1}, {Temperature: 1, TopK: 40}, {Temperature: 1, TopP: 0.95, MinP: 0.05},
		{Temperature: 1, Typical: 0.9}, {Repetition: 1.2, Frequency: 1, Presence: 1},
	} {
		pos := 0
		token := func() {
			pos++
			if _, err := s.Token(logits, &p, nil, list, 70, pos); err != nil {
				t.Fatal(err)
			}
		}
		token()
		if n := testing.AllocsPerRun(20, token); n != 0 {
			t.Errorf("%+v: %v allocations per token", p, n)
		}
	}
}

func FuzzToken(f *testing.F) {
	bytesOf := func(logits ...float32) (b []byte) {
		for _, v := range logits {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	}
	type terms struct{ temperature, typical, topP, minP, repetition, frequency, presence float32 }
	add := func(logits, mask, adjustments []byte, last int32, p terms, topK int, seed uint64, choice uint32, pos int) {
		f.Add(logits, mask, adjustments, last, p.temperature, topK, p.typical, p.topP, p.minP, p.repetition, p.frequency, p.presence, seed, choice, pos)
	}
	add(bytesOf(1, 2, 3), []byte{}, []byte{}, -1, terms{temperature: 1}, 0, 0, 0, 0)
	add(bytesOf(1, negInf, 3, -0.5), bytesOf(1e-40), bytesOf(1, 2, 1e-45), 2, terms{0.7, 0.8, 0.9, 0.1, 1.5, 0.5, -0.5}, 2, 3, 1, -1)
	add(bytesOf(nan, inf), []byte{0, 0, 0, 0}, bytesOf(0, nan, 0), 9, terms{inf, nan, nan, 2, nan, nan, inf}, -1, 3, 1, math.MaxInt)
	f.Fuzz(func(t *testing.T, logitBytes, maskBytes, adjustmentBytes []byte, last int32, temperature float32, topK int, typical, topP, minP, repetition, frequency, presence float32, seed uint64, choice uint32, pos int) {
		var logits []float32
		for b := range slices.Chunk(logitBytes[:len(logitBytes)/4*4], 4) {
			logits = append(logits, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		var mask []uint32
		for b := range slices.Chunk(maskBytes[:len(maskBytes)/4*4], 4) {
			mask = append(mask, binary.LittleEndian.Uint32(b))
		}
		var list []sample.Adjustment
		forbidden := map[int32]bool{}
		next := int32(0)
		for b := range slices.Chunk(adjustmentBytes[:len(adjustmentBytes)/12*12], 12) {
			a := sample.Adjustment{
				Token: next + int32(b[0]&3), Prompt: b[1]&1 != 0,
				Bias: math.Float32frombits(binary.LittleEndian.Uint32(b[4:])), Count: int32(binary.LittleEndian.Uint32(b[8:])),
			}
			next = a.Token + 1
			list = append(list, a)
			forbidden[a.Token] = a.Bias == negInf
		}
		p := sample.Params{
			Repetition: repetition, Frequency: frequency, Presence: presence,
			Temperature: temperature, TopK: topK, Typical: typical, TopP: topP, MinP: minP, Seed: seed, Choice: choice,
		}
		id, err := new(sample.Sampler).Token(logits, &p, mask, list, last, pos)
		if err != nil {
			for _, kind := range []error{sample.ErrParams, sample.ErrAdjustment, sample.ErrShape, sample.ErrNotFinite, sample.ErrEmptyMask} {
				if errors.Is(err, kind) {
					return
				}
			}
			t.Fatalf("an error of no kind: %v", err)
		}
		if id < 0 || int(id) >= len(logits) || logits[id] == negInf || forbidden[id] || mask != nil && mask[id/32]>>(id%32)&1 == 0 {
			t.Fatalf("token %d of %d is not allowed", id, len(logits))
		}
		plain := len(list) == 0 && last < 0 && (topK == 1 || temperature == 0)
		for i, v := range logits {
			if v != v || v == inf || v > logits[id] && plain && (mask == nil || mask[i/32]>>(i%32)&1 != 0) {
				t.Fatalf("token %d was chosen beside the logit %v of token %d", id, v, i)
			}
		}
	})
}

func BenchmarkToken(b *testing.B) {
	logits := vocabulary(151_936)
	text := slices.Repeat([]uint32{0xfeffffff, 0xffff7fff, 0xfffbffff}, (len(logits)/32+2)/3) // most tokens, as in a JSON string
	for _, bench := range []struct {
		name string
		p    sample.Params
		mask []uint32
	}{
		{"greedy", sample.Params{}, nil},
		{"greedy masked", sample.Params{}, text},
		{"temperature", sample.Params{Temperature: 0.8}, nil},
		{"top-k 40", sample.Params{Temperature: 0.8, TopK: 40}, nil},
		{"top-k 40 masked", sample.Params{Temperature: 0.8, TopK: 40}, text},
		{"top-p 0.95", sample.Params{Temperature: 0.8, TopP: 0.95}, nil},
		{"min-p 0.05", sample.Params{Temperature: 0.8, MinP: 0.05}, nil},
		{"typical 0.9", sample.Params{Temperature: 0.8, Typical: 0.9}, nil},
		{"top-k 40 top-p 0.95", sample.Params{Temperature: 0.8, TopK: 40, TopP: 0.95}, nil},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			var s sample.Sampler
			for pos := 0; b.Loop(); pos++ {
				if _, err := s.Token(logits, &bench.p, bench.mask, nil, -1, pos); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
