package measure

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/tensor"
)

// A clock is a Bench without a GPU: its choices are the kernels of a case in times, each with the
// times of its runs in turn.
type clock struct {
	times  func(p lower.Product, input int) []kernelTimes
	fails  string // what fails: "begin", "prepare", "time", "close" or "end"
	cancel context.CancelFunc

	of    lower.Product
	most  int
	open  int // runs that are not closed
	begun int // products that have not ended
	timed []string
}

type kernelTimes struct {
	name  string
	times []time.Duration
}

var errBench = errors.New("the bench is broken")

func (c *clock) fail(what string) error {
	if c.fails == what {
		return errBench
	}
	return nil
}

func (c *clock) Begin(_ context.Context, p lower.Product, most int) error {
	if err := c.fail("begin"); err != nil {
		return err
	}
	c.of, c.most = p, most
	c.begun++
	return nil
}

func (c *clock) Choices(input int) (all []lower.Choice) {
	for _, k := range c.times(c.of, input) {
		all = append(all, lower.Choice{Kernel: k.name})
	}
	return all
}

func (c *clock) Prepare(input int, choice lower.Choice) (Run, error) {
	all := c.times(c.of, input)
	i := slices.IndexFunc(all, func(k kernelTimes) bool { return k.name == choice.Kernel })
	if err := c.fail("prepare"); err != nil && i == 1 {
		return nil, err
	}
	c.open++
	return &ticking{c, all[i], 0}, nil
}

func (c *clock) End() error {
	c.begun--
	return c.fail("end")
}

type ticking struct {
	c    *clock
	of   kernelTimes
	next int
}

func (r *ticking) Time() (time.Duration, error) {
	r.c.timed = append(r.c.timed, r.of.name)
	if r.c.cancel != nil {
		r.c.cancel()
	}
	d := r.of.times[r.next%len(r.of.times)]
	r.next++
	return d, r.c.fail("time")
}

func (r *ticking) Close() error {
	r.c.open--
	return r.c.fail("close")
}

// some returns a kernel whose runs take these times in turn.
func some(name string, us ...float64) kernelTimes {
	k := kernelTimes{name: name}
	for _, t := range us {
		k.times = append(k.times, time.Duration(t*1e3))
	}
	return k
}

var tested = lower.Product{Format: tensor.Q4_K, Rows: 64, Cols: 256}

// The fastest kernel by its median is chosen, but the one without a table unless another is faster
// by more than 2%.
func TestTuneChooses(t *testing.T) {
	for _, test := range []struct {
		what    string
		kernels []kernelTimes
		want    lower.ChoiceTime
	}{
		{"one kernel", []kernelTimes{some("a", 10)}, lower.ChoiceTime{Choice: lower.Choice{Kernel: "a"}, Time: 10, Estimated: 10}},
		{"another is faster", []kernelTimes{some("a", 10), some("b", 9), some("c", 9.5)}, lower.ChoiceTime{Choice: lower.Choice{Kernel: "b"}, Time: 9, Estimated: 10}},
		{"hardly faster", []kernelTimes{some("a", 10), some("b", 9.85)}, lower.ChoiceTime{Choice: lower.Choice{Kernel: "a"}, Time: 10, Estimated: 10}},
		{"just faster", []kernelTimes{some("a", 10), some("b", 9.79)}, lower.ChoiceTime{Choice: lower.Choice{Kernel: "b"}, Time: 9.79, Estimated: 10}},
		{"hopeless without a table", []kernelTimes{some("a", 100), some("b", 10)}, lower.ChoiceTime{Choice: lower.Choice{Kernel: "b"}, Time: 10, Estimated: 100}},
		{"outliers", []kernelTimes{some("a", 10), some("b", 12, 1, 12, 12, 1, 12, 12, 1)}, lower.ChoiceTime{Choice: lower.Choice{Kernel: "a"}, Time: 10, Estimated: 10}},
		{"a slow first run of all", []kernelTimes{some("a", 14, 10, 10, 10, 10, 10, 10, 10), some("b", 14, 9, 9, 9, 9, 9, 9, 9)}, lower.ChoiceTime{Choice: lower.Choice{Kernel: "b"}, Time: 9, Estimated: 10}},
	} {
		c := &clock{times: func(lower.Product, int) []kernelTimes { return test.kernels }}
		all, err := Tune(t.Context(), c, map[lower.Product]int{tested: 1}, func(int, lower.ProductTimes) {})
		test.want.Input = 1
		want := []lower.ProductTimes{lower.NewProductTimes(tested, []lower.ChoiceTime{test.want})}
		if err != nil || !reflect.DeepEqual(all, want) {
			t.Errorf("%s: %+v, %v, want %+v", test.what, all, err, want)
		}
		if c.open != 0 || c.begun != 0 {
			t.Errorf("%s: %d runs and %d products are left", test.what, c.open, c.begun)
		}
	}
}

// Kernels are timed in turn, and those that are far slower only once.
func TestTuneRounds(t *testing.T) {
	c := &clock{times: func(lower.Product, int) []kernelTimes {
		return []kernelTimes{some("a", 10), some("slow", 15.1), some("b", 14.9)}
	}}
	if _, err := Tune(t.Context(), c, map[lower.Product]int{tested: 1}, func(int, lower.ProductTimes) {}); err != nil {
		t.Fatal(err)
	}
	want := append([]string{"a", "slow", "b"}, slices.Repeat([]string{"a", "b"}, rounds)...)
	if !slices.Equal(c.timed, want) {
		t.Errorf("timed are %v, want %v", c.timed, want)
	}
}

// Every product is measured up to the power of two that holds its rows, and reported.
func TestTuneProducts(t *testing.T) {
	head := lower.Product{Format: tensor.Q6_K, Rows: 1000, Cols: 256}
	gated := lower.Product{Format: tensor.Q4_K, Gated: true, Rows: 64, Cols: 256}
	c := &clock{times: func(p lower.Product, input int) []kernelTimes {
		return []kernelTimes{some("a", float64(input)), some(fmt.Sprint(p, " from ", input), float64(input)/2)}
	}}
	var reported []string
	all, err := Tune(t.Context(), c, map[lower.Product]int{head: 3, tested: 5000, gated: 1}, func(done int, p lower.ProductTimes) {
		reported = append(reported, fmt.Sprintf("%d %s %dx%d", done, p.Format, p.Rows, p.Cols))
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1 Q4_K 64x256", "2 Q4_K 64x256", "3 Q6_K 1000x256"}; !slices.Equal(reported, want) {
		t.Errorf("reported are %v, want %v", reported, want)
	}
	table := (&lower.TableFile{Products: all}).Table()
	if len(all) != 3 || len(table) != 12+1+3 {
		t.Errorf("%d products, %d cases", len(all), len(table))
	}
	for of, choice := range table {
		if want := fmt.Sprint(of.Product, " from ", of.Input); choice.Kernel != want {
			t.Errorf("%v is chosen for %v", choice, of)
		}
	}
}

// An error of the bench or an interrupt ends the measurement, names the product, and leaves nothing.
func TestTuneEnds(t *testing.T) {
	kernels := func(lower.Product, int) []kernelTimes { return []kernelTimes{some("a", 10), some("b", 10)} }
	for _, what := range []string{"begin", "prepare", "time", "close", "end", "interrupt"} {
		ctx, cancel := context.WithCancel(t.Context())
		c, want := &clock{times: kernels, fails: what}, errBench
		if what == "interrupt" {
			c.cancel, want = cancel, context.Canceled
		}
		all, err := Tune(ctx, c, map[lower.Product]int{tested: 4}, func(int, lower.ProductTimes) {})
		if all != nil || !errors.Is(err, want) || !strings.Contains(err.Error(), tested.String()) {
			t.Errorf("%s: %v, %v", what, all, err)
		}
		if c.open != 0 || c.begun != 0 {
			t.Errorf("%s: %d runs and %d products are left", what, c.open, c.begun)
		}
		if what == "interrupt" && len(c.timed) != 1 {
			t.Errorf("after an interrupt %d runs were timed", len(c.timed)-1)
		}
		cancel()
	}
}
