package memory

import (
	"fmt"
	"strings"

	"github.com/realizar/realizar/internal/bytesize"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/tensor"
)

// tooLittle returns an error that says what one sequence takes and which options would make it fit.
func (p *Planner) tooLittle(c engine.Config, one engine.Memory) error {
	free := p.Free()
	have := "are free"
	if limit := p.Options.Limit - p.Options.Reserved; limit > 0 && free == limit {
		have = "may be taken"
	}
	streaming := ""
	if c.Weights > 0 {
		streaming = " even with streaming"
	}
	where, ways := p.place(), p.ways(c, one)
	if n := p.Options.Reserved; n > 0 {
		where += fmt.Sprintf(" beside %s of the draft model", bytesize.Text(n))
	}
	way := "use a smaller quantization of the model"
	if len(ways) > 0 {
		way = "it would fit with " + strings.Join(ways, ", or with ")
	}
	if p.Options.Named && !p.Device.Kind.Host {
		way += ", or on the CPU"
	}
	if free <= int64(one.Weights) && free > 0 {
		return fmt.Errorf("%w: the weights take %s%s, %s %s%s; %s", ErrTooLittle, bytesize.Text(int64(one.Weights)), streaming, bytesize.Text(free), have, where, way)
	}
	return fmt.Errorf("%w: one answer of %d tokens takes %s of cache and %s of scratch beside %s of weights%s, %s %s%s; %s",
		ErrTooLittle, c.Context, bytesize.Text(int64(one.States)), bytesize.Text(int64(one.Scratch)), bytesize.Text(int64(one.Weights)), streaming, bytesize.Text(free), have, where, way)
}

// smallerCaches are the formats with a smaller cache, by the names of the option.
var smallerCaches = []struct {
	name  string
	dtype tensor.DType
}{{"f16", tensor.F16}, {"q8", tensor.Q8_0}, {"f8", tensor.F8_E4M3}}

// ways returns the options with which c would fit, each alone.
func (p *Planner) ways(c engine.Config, one engine.Memory) (ways []string) {
	fits := func(c engine.Config, change func(*Options)) bool {
		other := *p
		change(&other.Options)
		_, _, ok, err := other.search(c)
		return ok && err == nil
	}
	asked := func(*Options) {}
	n := c.Context
	if p.Options.Context > 0 {
		n = powerBelow(n)
	}
	for ; n > 1; n = powerBelow(n) {
		smaller := c
		if smaller.Context = n; fits(smaller, func(o *Options) { o.Context = n }) {
			ways = append(ways, fmt.Sprintf("a context of %d", n))
			break
		}
	}
	for _, cache := range smallerCaches {
		other := c
		other.Cache = cache.dtype
		if p.Program.MisfitHead(cache.dtype) == 0 && p.Program.RowBytes(cache.dtype) < p.Program.RowBytes(c.Cache) && fits(other, asked) {
			ways = append(ways, "a cache of "+cache.name)
			break
		}
	}
	few := c
	if few.Parallel = 1; c.Parallel > 1 && fits(few, asked) {
		ways = append(ways, "one answer at one time")
	}
	if !p.Device.Kind.Host && p.Options.StreamNone && fits(c, func(o *Options) { o.StreamNone = false }) {
		ways = append(ways, "weights that stream")
	}
	if p.Options.Limit == 0 {
		return ways
	}
	const mib = 1 << 20
	need := (p.Options.Reserved + int64(one.Weights) + int64(one.States) + int64(one.Scratch) + mib - 1) / mib
	if fits(c, func(o *Options) { o.Limit = need * mib }) {
		memory := "a device memory"
		if p.Device.Kind.Host {
			memory = "a memory"
		}
		ways = append(ways, fmt.Sprintf("%s of %d MiB", memory, need))
	}
	return ways
}

// place returns the device for the end of a sentence: " on NVIDIA H200", or nothing for host
// memory.
func (p *Planner) place() string {
	if p.Device.Kind.Host {
		return ""
	}
	return " on " + p.Device.Description()
}
