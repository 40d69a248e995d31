package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/random"
	"github.com/realizar/realizar/tensor"
)

// A bench is the [Bench] of a GPU. It runs a product of random values in a graph of several
// launches, which read copies of the weights in turn, so that the second-level cache has none of
// them.
type bench struct {
	g        *device.GPU
	of       lower.Product
	table    lower.Table // the choice to launch
	compiler *lower.Compiler
	launches [][]lower.Launch // by copy of the weights
	bytes    int              // of a copy that a launch reads

	stream           *driver.Stream
	from, to         *driver.Event
	weights, scratch driver.DevicePtr
	counts           driver.DevicePtr // of the step's sizes
}

// NewBench returns the bench of a GPU. Its methods must not be called on the main thread.
func NewBench(g *device.GPU) Bench { return &bench{g: g} }

// The table of embeddings from which the input is, and how many launches are in a graph: as many as
// take about runTime if the device reads readRate bytes and multiplies productRate pairs a second.
const (
	vocab       = 64
	mostCopies  = 128
	runTime     = 300e-6
	readRate    = 4e12
	productRate = 4e14
)

func (b *bench) Begin(ctx context.Context, p lower.Product, most int) (err error) {
	*b = bench{g: b.g, of: p, table: lower.Table{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.End())
		}
	}()
	program, w, err := programOf(p)
	if err != nil {
		return err
	}
	lim := &plan.Limits{Tokens: most, Seqs: 1, Rows: 1, PageTokens: 1, Cache: tensor.F16, Activations: tensor.F16}
	layout, placed := lower.NewLayout(program, lim, false), weights.NewPlan(program, lim, weights.StreamSlots)
	room := lower.NewRoom(program, lim, layout.Bytes)
	for _, m := range w {
		t := placed.Matrices[m]
		b.bytes += t.Size()
	}
	apart := weights.Align(placed.Bytes)
	copies := min(max(1, (2*b.g.Info.L2+b.bytes-1)/b.bytes), mostCopies)
	if err := b.g.Main.Do(func() error { return b.allocate(copies*apart, room.Bytes) }); err != nil {
		return err
	}
	if err := placed.Load(ctx, b.g, b.weights, nil, b.stream, nil, nil); err != nil {
		return err
	}
	return b.g.Main.Do(func() error {
		c := b.g.Main
		for i := range copies - 1 {
			if err := b.stream.CopyOnDevice(b.weights+driver.DevicePtr((i+1)*apart), b.weights, placed.Bytes); err != nil {
				return err
			}
		}
		if err := c.Memset8(b.scratch, 0, room.Bytes); err != nil {
			return err
		}
		b.counts = b.scratch + driver.DevicePtr(room.Counts)
		if err := c.Memset32(b.counts, uint32(most), 3); err != nil {
			return err
		}
		tokens := make([]byte, 4*most)
		for i := range most {
			tokens[4*i] = byte(i % vocab)
		}
		err := errors.Join(c.CopyToDevice(b.scratch+driver.DevicePtr(room.Tokens), tokens), c.Memset32(b.scratch+driver.DevicePtr(room.From), ^uint32(0), most))
		if err != nil {
			return err
		}
		for i := range copies {
			of := lower.Compiler{
				Layout: layout, Weights: placed, Room: room, Kernel: b.g.Function, Table: b.table, Hopper: b.g.Hopper(), Early: b.g.Early(), Carves: b.g.Carves(),
				WeightsAt: b.weights + driver.DevicePtr(i*apart), ScratchAt: b.scratch, Step: room.Addresses(b.scratch, nil),
				Multiprocessors: b.g.Info.Multiprocessors, Clusters: b.g.Clusters, SharedPerBlock: b.g.Info.SharedPerBlock, Shared: b.g.Shared,
			}
			b.compiler = &of
			_, stages, err := of.Compile()
			if err != nil {
				return err
			}
			at := slices.IndexFunc(layout.Stages, func(s fuse.Stage) bool { return s.Node().Weight == w[0] })
			if i == 0 { // the input
				sh := lower.Shape{Tokens: most, Rows: 1}
				for _, s := range stages[:at] {
					if err := lower.Give(b.stream, &sh, s); err != nil {
						return err
					}
				}
			}
			b.launches = append(b.launches, stages[at])
		}
		return b.stream.Synchronize()
	})
}

// allocate makes room for weights and scratch of the given sizes in bytes.
func (b *bench) allocate(weights, scratch int) (err error) {
	c := b.g.Main
	free, _, err := c.MemInfo()
	if err != nil {
		return err
	}
	if weights+scratch > free {
		return fmt.Errorf("a measurement takes %d bytes of the GPU's memory, of which %d are free; end other programs on it", weights+scratch, free)
	}
	if b.stream, err = c.NewStream(); err != nil {
		return err
	}
	if b.from, err = c.NewTimer(); err != nil {
		return err
	}
	if b.to, err = c.NewTimer(); err != nil {
		return err
	}
	if b.weights, err = c.Alloc(weights); err != nil {
		return err
	}
	b.scratch, err = c.Alloc(scratch)
	return err
}

func (b *bench) End() error {
	return b.g.Main.Do(func() error {
		c := b.g.Main
		var all []error
		if b.stream != nil {
			all = append(all, b.stream.Synchronize(), b.stream.Destroy())
		}
		all = append(all, device.DestroyEvent(b.from), device.DestroyEvent(b.to), c.Free(b.weights), c.Free(b.scratch))
		*b = bench{g: b.g}
		return errors.Join(all...)
	})
}

func (b *bench) Choices(input int) []lower.Choice {
	of := lower.Case{Product: b.of, Input: input}
	first := b.compiler.Estimate(of)
	others := slices.DeleteFunc(lower.Candidates(b.g.Hopper(), of), func(c lower.Choice) bool { return c == first })
	return append([]lower.Choice{first}, others...)
}

// launchesFor returns the number of launches in a graph.
func (b *bench) launchesFor(input int) int {
	products := float64(b.of.Rows) * float64(b.of.Cols) * float64(input)
	if b.of.Gated {
		products *= 2
	}
	took := max(float64(b.bytes)/readRate, products/productRate)
	return max(len(b.launches), int(runTime/took))
}

func (b *bench) Prepare(input int, c lower.Choice) (Run, error) {
	r := &run{b: b, launches: min(b.launchesFor(input), mostCopies)}
	b.table[lower.Case{Product: b.of, Input: input}] = c
	sh := lower.Shape{Tokens: input, Rows: 1}
	err := b.g.Main.Do(func() error {
		if err := b.g.Main.Memset32(b.counts, uint32(input), 3); err != nil {
			return err
		}
		g, err := b.stream.Capture(func() error {
			for i := range r.launches {
				if err := lower.Give(b.stream, &sh, b.launches[i%len(b.launches)]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		r.graph, err = g.Instantiate()
		return errors.Join(err, g.Destroy())
	})
	return r, err
}

// A run is a graph of launches.
type run struct {
	b        *bench
	launches int
	graph    *driver.GraphExec
}

// Time runs the graph twice. While the first one runs, the second is queued, so that it is not timed
// how the host queues it.
func (r *run) Time() (took time.Duration, err error) {
	b := r.b
	err = b.g.Main.Do(func() error {
		defer b.g.Main.Doing(b.g.Main.Doing("measuring products"))
		for _, do := range []func() error{
			func() error { return r.graph.Launch(b.stream) },
			func() error { return b.from.Record(b.stream) },
			func() error { return r.graph.Launch(b.stream) },
			func() error { return b.to.Record(b.stream) },
			b.to.Synchronize,
		} {
			if err := do(); err != nil {
				return err
			}
		}
		ms, err := b.to.Since(b.from)
		took = time.Duration(float64(ms) * float64(time.Millisecond) / float64(r.launches))
		return err
	})
	return took, err
}

func (r *run) Close() error {
	if r.graph == nil {
		return nil
	}
	return r.b.g.Main.Do(r.graph.Destroy)
}

// programOf returns a program with a product of random weights, and these weights. What follows a
// gated product reads it in 16 bits, as a down product does.
func programOf(p lower.Product) (*plan.Program, []*tensor.Tensor, error) {
	var failed error
	weight := func(name string, d tensor.DType, std float64, rows, cols int) *tensor.Tensor {
		rowsOf, err := newRows(name, d, std, cols)
		failed = errors.Join(failed, err)
		return &tensor.Tensor{Name: name, DType: d, Shape: []int{rows, cols}, Source: rowsOf}
	}
	const std = 0.03
	w := []*tensor.Tensor{weight("w", p.Format, std, p.Rows, p.Cols)}
	program, err := plan.Build(func(b *plan.Builder) {
		x := b.Embed(weight("table", tensor.F32, 1, vocab, p.Cols))
		y := b.Linear(x, w[0], nil)
		if p.Gated {
			w = append(w, weight("up", p.Format, std, p.Rows, p.Cols))
			y = b.GLU(y, b.Linear(x, w[1], nil), plan.GLUAttr{Act: plan.SiLU})
			next := tensor.F16
			if p.Format == tensor.BF16 {
				next = tensor.BF16
			}
			y = b.Linear(y, weight("next", next, std, weights.TileRows, p.Rows), nil)
		}
		y = b.Pick(y)
		b.Output(y, y)
	})
	return program, w, errors.Join(failed, err)
}

// repeatedRows are a few random rows that repeat.
type repeatedRows struct {
	data     []byte
	rowBytes int
}

// repeatedBytes is the approximate size of the rows that repeat.
const repeatedBytes = 1 << 20

func newRows(name string, d tensor.DType, std float64, cols int) (*repeatedRows, error) {
	size, err := d.Size(cols)
	if err != nil {
		return nil, err
	}
	f, err := random.NewFiller(random.Seed(1, name), d, 0, std)
	if err != nil {
		return nil, err
	}
	r := &repeatedRows{data: make([]byte, max(1, repeatedBytes/size)*size), rowBytes: size}
	f.Fill(r.data, 0)
	return r, nil
}

// ReadRows implements [tensor.Source].
func (r *repeatedRows) ReadRows(dst []byte, lo, _ int) error {
	for at := lo * r.rowBytes % len(r.data); len(dst) > 0; at = 0 {
		dst = dst[copy(dst, r.data[at:]):]
	}
	return nil
}

// Parts implements [tensor.Source].
func (*repeatedRows) Parts() []*tensor.Tensor { return nil }
