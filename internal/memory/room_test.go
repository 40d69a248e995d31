package memory

import (
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

func TestRoom(t *testing.T) {
	const gib = 1 << 30
	for _, test := range []struct {
		free, total, limit, want int64
	}{
		{0, 0, 0, 0}, {0, 0, 5, 5}, {64, 0, 0, 63}, {64, 0, 63, 63}, {64, 0, 62, 62}, {64, 0, 64, 63}, {0, 128, 0, 63},
		{80 * gib, 90 * gib, 0, 80*gib - 256<<20}, {80 * gib, 90 * gib, 90 * gib, 80*gib - 256<<20}, {80 * gib, 90 * gib, gib, gib},
	} {
		if got := room(plan.MemoryInfo{Free: test.free, Total: test.total}, test.limit); got != test.want {
			t.Errorf("of %+v %d may be taken, want %d", test, got, test.want)
		}
	}
}

func TestPinned(t *testing.T) {
	for _, test := range []struct {
		free, total, limit, cache int64
		want                      int
	}{
		{400, 1000, 0, 0, 300}, {400, 1000, 0, 100, 200}, {400, 1000, 0, 301, 0}, {400, 1000, 350, 50, 300}, {400, 1000, 900, 50, 350}, {400, 1000, 40, 50, 0},
		{0, 800, 0, 0, 300}, {0, 0, 0, 0, 3 << 30}, {0, 0, 1 << 20, 0, 1 << 20},
	} {
		if got := pinned(plan.MemoryInfo{Free: test.free, Total: test.total}, test.limit, test.cache); got != test.want {
			t.Errorf("%+v: %d bytes may be pinned, want %d", test, got, test.want)
		}
	}
}

// A steps backend stores weights in multiples of ten bytes, at least least. Its scratch memory
// grows by a byte per hundred bytes of weights.
type steps struct {
	plan.Backend
	least int
}

func (s *steps) Weights(_ *plan.Program, l plan.Limits) int { return max(s.least, l.Weights/10*10) }
func (s *steps) Scratch(p *plan.Program, l plan.Limits) int { return 100 + s.Weights(p, l)/100 }

func TestBeside(t *testing.T) {
	p := &plan.Program{}
	limits := plan.Limits{Tokens: 1, Seqs: 1, Rows: 1, PageTokens: 32, Cache: tensor.F16, Pages: []int{}}
	b := &steps{least: 50}
	for _, most := range []int64{-1, 0, 100, 149, 150, 151, 200, 300, 1000, 12345} {
		l, err := Beside(b, p, limits, most)
		if err != nil {
			t.Fatal(err)
		}
		total := int64(b.Weights(p, l) + b.Scratch(p, l))
		if l.Weights < 1 || total > most && b.Weights(p, l) > b.least || most >= 150 && (total > most || most-total > 30) {
			t.Errorf("of %d bytes %d are taken, %d of them by weights", most, total, b.Weights(p, l))
		}
	}
}
