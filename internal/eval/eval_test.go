package eval_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/eval"
)

func TestWindows(t *testing.T) {
	for _, test := range []struct {
		n, size, stride int
		want            []eval.Window
	}{
		{0, 4, 2, nil},
		{1, 4, 2, nil},
		{2, 4, 2, []eval.Window{{0, 1, 2}}},
		{4, 4, 2, []eval.Window{{0, 1, 4}}},
		{5, 4, 2, []eval.Window{{0, 1, 4}, {2, 4, 5}}},
		{9, 4, 2, []eval.Window{{0, 1, 4}, {2, 4, 6}, {4, 6, 8}, {6, 8, 9}}},
		{9, 4, 3, []eval.Window{{0, 1, 4}, {3, 4, 7}, {6, 7, 9}}},
		{5, 2, 1, []eval.Window{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 5}}},
	} {
		got := slices.Collect(eval.Windows(test.n, test.size, test.stride))
		if !cmp.Equal(got, test.want) {
			t.Errorf("Windows(%d, %d, %d) = %v, want %v", test.n, test.size, test.stride, got, test.want)
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestScore(t *testing.T) {
	var s eval.Score
	even := make([]float32, 8)
	for range 5 {
		s.Add(even, 3)
	}
	near(t, "the perplexity of a guess among 8", s.Perplexity(), 8)
	near(t, "its error", s.PerplexityError(), 0)
	near(t, "bits of 15 in 3 bytes", s.BitsPerByte(3), 5)

	// Surprises of 1 and 3 times ln 2: the mean is 2 ln 2, the variance 2 ln² 2.
	s = eval.Score{}
	s.Add([]float32{0, 0}, 1)
	s.Add(even, 0)
	near(t, "the mean", s.Mean(), 2*math.Ln2)
	near(t, "the perplexity", s.Perplexity(), 4)
	near(t, "its error", s.PerplexityError(), 4*math.Sqrt(2*math.Ln2*math.Ln2/2))
	if s.Tokens != 2 {
		t.Errorf("%d tokens, want 2", s.Tokens)
	}
}

func TestDivergence(t *testing.T) {
	var d eval.Divergence
	half, skewed := []float32{1, 1}, []float32{5, 5 - 2*math.Ln2} // 0.8 and 0.2
	add := func(reference, model []float32) {
		t.Helper()
		if err := d.Add(reference, model); err != nil {
			t.Fatal(err)
		}
	}
	add(half, half)
	add(half, skewed)
	add(skewed, half)
	add([]float32{0, 3}, skewed)
	if d.Places() != 4 {
		t.Errorf("%d places, want 4", d.Places())
	}
	near(t, "the agreement", d.Agreement(), 0.75)
	near(t, "the least", d.Quantile(0), 0)
	forth := 0.5*math.Log(0.5/0.8) + 0.5*math.Log(0.5/0.2)
	back := 0.8*math.Log(0.8/0.5) + 0.2*math.Log(0.2/0.5)
	q := 1 / (1 + math.Exp(3))
	other := q*math.Log(q/0.8) + (1-q)*math.Log((1-q)/0.2)
	want := []float64{0, back, forth, other}
	slices.Sort(want)
	for i, kl := range want {
		if got := d.Quantile(float64(i+1) / 4); math.Abs(got-kl) > 1e-6 {
			t.Errorf("divergence %d is %v, want %v", i, got, kl)
		}
	}
	if got, mean := d.Mean(), (forth+back+other)/4; math.Abs(got-mean) > 1e-6 {
		t.Errorf("the mean is %v, want %v", got, mean)
	}
	if err := d.Add(half, make([]float32, 3)); err == nil {
		t.Error("no error for vocabularies of different sizes")
	}
	d = eval.Divergence{}
	negInf := float32(math.Inf(-1))
	add([]float32{0, negInf}, []float32{0, 0})
	near(t, "a token of probability 0", d.Mean(), math.Ln2)
}
