package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestParseLengths(t *testing.T) {
	for _, s := range []string{"0", "-1", "x", "", "16777217", "uniform:1", "uniform:5:4", "uniform:0:4", "uniform:1:2:3", "normal:1:2", "lognormal:5", "lognormal:5:-1", "lognormal:5:nan", "lognormal:5:x", "lognormal:5:1:4", "1:2"} {
		if _, err := ParseLengths(s); err == nil || !strings.Contains(err.Error(), "want a number, uniform") {
			t.Errorf("%q: %v", s, err)
		}
	}
	var l Lengths
	if err := l.UnmarshalText([]byte("uniform:3:5")); err != nil {
		t.Fatal(err)
	}
	if text, _ := l.MarshalText(); string(text) != "uniform:3:5" {
		t.Errorf("written as %q", text)
	}
}

func TestLengths(t *testing.T) {
	draw := func(s string) []int {
		random := rand.New(rand.NewPCG(1, 2))
		l := lengths(s)
		drawn := make([]int, 20000)
		for i := range drawn {
			drawn[i] = l.draw(random)
		}
		slices.Sort(drawn)
		return drawn
	}
	if d := draw("7"); d[0] != 7 || d[len(d)-1] != 7 {
		t.Errorf("7: %d to %d", d[0], d[len(d)-1])
	}
	d := draw("uniform:3:5")
	for _, n := range []int{3, 4, 5} {
		low, _ := slices.BinarySearch(d, n)
		high, _ := slices.BinarySearch(d, n+1)
		if share := float64(high-low) / float64(len(d)); math.Abs(share-1.0/3) > 0.02 {
			t.Errorf("uniform:3:5 draws %d in %.3f of all, want a third", n, share)
		}
	}
	d = draw("lognormal:200:0.5")
	at := func(share float64) float64 { return float64(d[int(share*float64(len(d)))]) }
	// One standard deviation is at 15.87 % and 84.13 %.
	for share, want := range map[float64]float64{0.1587: 200 * math.Exp(-0.5), 0.5: 200, 0.8413: 200 * math.Exp(0.5)} {
		if got := at(share); math.Abs(got/want-1) > 0.03 {
			t.Errorf("lognormal:200:0.5: %v at %v, want %.0f", got, share, want)
		}
	}
	d = draw("lognormal:200:1:250")
	if last := d[len(d)-1]; last > 250 || d[len(d)-100] == 250 {
		t.Errorf("lognormal:200:1:250 draws %d, or 250 too often", last)
	}
}
