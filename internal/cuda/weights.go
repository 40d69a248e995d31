package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Matrices lie in the device's memory as tiles of 16 rows, see kernels/tile.cuh.
const tileRows = 16

// hasKernels says that there are kernels for matrices of format d.
func hasKernels(d tensor.DType) bool {
	return plan.InBytes(d) || d == tensor.F32 || d == tensor.F16 || d == tensor.BF16
}

// exactInF16 are formats without kernels whose values are all exact in F16.
var exactInF16 = []tensor.DType{tensor.F8_E4M3, tensor.F8_E5M2, tensor.TQ1_0}

// laidAs is the format in which a matrix of format d lies in the device's memory: its
// own where it has kernels, or else one of floats that holds its values. Blocks of what has
// no exact F16 are rounded to it where activations are rounded too, since it takes half the
// memory.
func laidAs(d tensor.DType, lim *plan.Limits) tensor.DType {
	switch {
	case hasKernels(d):
		return d
	case slices.Contains(exactInF16, d), d.BlockLen() > 1 && lim.Activations == tensor.Q8_0:
		return tensor.F16
	}
	return tensor.F32
}

// A tiling is how a matrix is cut.
type tiling struct {
	format     tensor.DType // in which it lies
	rows, cols int
	rowTiles   int
	colTiles   int
	bytes      int // of a tile
}

// tileOf is the shape of a format's tile: its columns, and its bytes.
func tileOf(d tensor.DType) (cols, bytes int) {
	switch d {
	case tensor.F32:
		return 32, tileRows * 32 * 4
	case tensor.F16, tensor.BF16:
		return 128, tileRows * 128 * 2
	}
	return 256, tileRows * 256 / d.BlockLen() * d.BlockBytes()
}

func tilingOf(w *tensor.Tensor, lim *plan.Limits) tiling {
	format := laidAs(w.DType, lim)
	cols, bytes := tileOf(format)
	return tiling{
		format: format, rows: w.Rows(), cols: w.Cols(), bytes: bytes,
		rowTiles: (w.Rows() + tileRows - 1) / tileRows,
		colTiles: (w.Cols() + cols - 1) / cols,
	}
}

func (t *tiling) size() int { return t.rowTiles * t.colTiles * t.bytes }

// rowBytes are those of a row on its way to the device.
func (t *tiling) rowBytes() int { return t.cols / t.format.BlockLen() * t.format.BlockBytes() }

// suffix is how the names of the kernels for a format end.
func suffix(d tensor.DType) string { return strings.ToLower(d.String()) }

// family is the kernels for weights of a format.
func family(d tensor.DType) string { return "weights_" + suffix(d) }

// floatFamily is the kernel for products of a format with float32.
func floatFamily(d tensor.DType) string { return "floats_" + suffix(d) }

// loadBytes is about how much of a weight is on its way at a time, for each of
// the goroutines that load.
const loadBytes = 16 << 20

// A chunk is rows of a weight that travel together.
type chunk struct {
	weight int // index into order
	row    int
	rows   int
}

// chunks cuts some of the weights into pieces of about so many bytes, matrices into whole
// tiles of rows. None is larger than largest.
func (w *weightPlan) chunks(weights []int, bytes int) (all []chunk, largest int) {
	for _, i := range weights {
		t := w.order[i]
		m, ok := w.matrices[t]
		if !ok {
			all = append(all, chunk{weight: i})
			largest = max(largest, 4*t.Elems())
			continue
		}
		rowBytes := m.rowBytes()
		rows := max(tileRows, bytes/max(1, rowBytes)/tileRows*tileRows)
		for r := 0; r < m.rows; r += rows {
			all = append(all, chunk{i, r, min(rows, m.rows-r)})
		}
		largest = max(largest, min(rows, m.rows)*rowBytes)
	}
	return all, largest
}

// A loader brings weights to the device.
type loader struct {
	plan   *weightPlan
	base   driver.DevicePtr
	images [][]byte        // of the experts of each mixture, where there is a cache for them
	c      *driver.Context // that the stream is of
	waiter *driver.Context // waits while c goes on
	stream *driver.Stream
	pack   map[tensor.DType]*driver.Function // kernels that lay a format out, for use in c
	berths []berth

	loaded    plan.Loaded
	staged    map[*tensor.Tensor]bool // what steps will read
	mu        sync.Mutex
	left      []int // chunks of each weight that are not read yet
	announced int
}

// A berth is where one goroutine's chunks are on their way.
type berth struct {
	host    []byte
	device  driver.DevicePtr
	done    *driver.Event
	busy    bool      // until done
	trusted bool      // what was read once is not looked at for values that are not finite
	rows    []byte    // that a derived matrix's source makes
	row     []float32 // of such a matrix
}

// newBerths makes berths of so many bytes on the thread of c.
func newBerths(c *driver.Context, n, bytes int) (berths []berth, err error) {
	defer c.Doing(c.Doing("making room for weights on their way"))
	berths = make([]berth, n)
	for i := range berths {
		x := &berths[i]
		if x.host, err = c.AllocHost(bytes); err != nil {
			return berths, err
		}
		if x.device, err = c.Alloc(bytes); err != nil {
			return berths, err
		}
		if x.done, err = c.NewEvent(); err != nil {
			return berths, err
		}
	}
	return berths, nil
}

// leaveBerths gives back berths on the thread of c, which made them. Freeing the device's
// memory waits for what is on its way, also where that was not given an end.
func leaveBerths(c *driver.Context, berths []berth) error {
	var all error
	for _, x := range berths {
		for _, err := range []error{c.Free(x.device), freeHost(c, x.host), destroyEvent(x.done)} {
			if all == nil {
				all = err
			}
		}
	}
	return all
}

// packers are the kernels that lay out the matrices of w, for use in c. It is called on
// the main thread.
func (b *Backend) packers(w *weightPlan, c *driver.Context) (map[tensor.DType]*driver.Function, error) {
	all := map[tensor.DType]*driver.Function{}
	for _, m := range w.matrices {
		if all[m.format] != nil {
			continue
		}
		f, err := b.function(family(m.format), "pack")
		if err != nil {
			return nil, err
		}
		all[m.format] = f.In(c)
	}
	return all, nil
}

// load fills the memory at base, which has w.bytes, and the images of experts where there
// is a cache for them, and tells loaded of each weight. Images of layers come to their
// slots one after another; landed is told of each while it is there.
func (b *Backend) load(ctx context.Context, w *weightPlan, base driver.DevicePtr, experts [][]byte, stream *driver.Stream, loaded plan.Loaded, landed func(image int) error) (err error) {
	if len(w.order) == 0 {
		return nil
	}
	l := &loader{plan: w, base: base, images: experts, c: b.main, waiter: b.waiter, stream: stream, loaded: loaded, staged: w.staged(), left: make([]int, len(w.order))}
	phases := w.phases()
	most, largest := 0, 0
	chunks := make([][]chunk, len(phases))
	for i, weights := range phases {
		var n int
		chunks[i], n = w.chunks(weights, loadBytes)
		most, largest = max(most, len(chunks[i])), max(largest, n)
		for _, c := range chunks[i] {
			l.left[c.weight]++
		}
	}
	defer func() {
		if e := b.main.Do(func() error { return leaveBerths(b.main, l.berths) }); err == nil {
			err = e
		}
	}()
	err = b.main.Do(func() (err error) {
		defer b.main.Doing(b.main.Doing("loading weights"))
		if l.pack, err = b.packers(w, b.main); err != nil {
			return err
		}
		l.berths, err = newBerths(b.main, min(most, max(2, min(8, runtime.GOMAXPROCS(0)))), align(largest))
		return err
	})
	if err != nil {
		return err
	}
	for i := range phases {
		if err := errors.Join(l.bring(ctx, chunks[i]), l.settle()); err != nil {
			return err
		}
		if i < len(w.images) {
			if err := landed(i); err != nil {
				return err
			}
		}
	}
	return ctx.Err() // also where it ended too late to end anything
}

func freeHost(c *driver.Context, b []byte) error {
	if b == nil {
		return nil
	}
	return c.FreeHost(b)
}

func destroyEvent(e *driver.Event) error {
	if e == nil {
		return nil
	}
	return e.Destroy()
}

// bring reads chunks and gives the stream all that brings them to their places.
func (l *loader) bring(ctx context.Context, chunks []chunk) error {
	var next atomic.Int64
	errs := make([]error, len(l.berths))
	var all sync.WaitGroup
	for i := range min(len(l.berths), len(chunks)) {
		all.Go(func() {
			if errs[i] = l.work(ctx, &l.berths[i], chunks, &next); errs[i] != nil {
				next.Store(int64(len(chunks)))
			}
		})
	}
	all.Wait()
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

// work brings one chunk after another.
func (l *loader) work(ctx context.Context, x *berth, chunks []chunk, next *atomic.Int64) error {
	for {
		i := int(next.Add(1)) - 1
		if i >= len(chunks) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.send(&chunks[i], x); err != nil {
			return err
		}
		l.read(chunks[i].weight)
	}
}

// settle waits until what was brought is there.
func (l *loader) settle() error {
	var all error
	for i := range l.berths {
		if err := l.free(&l.berths[i]); all == nil {
			all = err
		}
	}
	return all
}

// free waits until a berth has nothing on its way.
func (l *loader) free(x *berth) error {
	if !x.busy {
		return nil
	}
	x.busy = false
	return l.waiter.Do(func() error { return x.done.In(l.waiter).Synchronize() })
}

// packArgs are the parameters of the kernels pack.
type packArgs struct {
	src, dst   driver.DevicePtr
	rowBytes   int64
	rows, cols int32
	colTiles   int32
	_          int32
}

// send reads a chunk, and gives the stream the rest.
func (l *loader) send(c *chunk, x *berth) error {
	t := l.plan.order[c.weight]
	m, matrix := l.plan.matrices[t]
	to := l.base + driver.DevicePtr(l.plan.at[t])
	if err := l.free(x); err != nil {
		return err
	}
	var n int
	// This is all that reads the weights, and Go does it: the driver copies from memory
	// that it has pinned itself, and from no other (see [driver.Stream.CopyToDevice]). So
	// where a mapped file was cut short, no copy of the driver's comes to what is gone.
	err := tensor.Guard(func() (err error) {
		if matrix {
			n, err = x.fill(t, &m, c)
		} else {
			n, err = x.fillVector(t)
		}
		return err
	})
	if err != nil || n == 0 {
		return err
	}
	x.busy = true
	return l.c.Do(func() error {
		defer l.c.Doing(l.c.Doing("loading " + t.Name))
		if !matrix {
			if err := l.stream.CopyToDevice(to, x.host[:n]); err != nil {
				return err
			}
			return x.done.Record(l.stream)
		}
		if err := l.stream.CopyToDevice(x.device, x.host[:n]); err != nil {
			return err
		}
		first, tiles := c.row/tileRows*m.colTiles*m.bytes, (c.rows+tileRows-1)/tileRows
		a := packArgs{
			src: x.device, dst: to + driver.DevicePtr(first), rowBytes: int64(n / c.rows),
			rows: int32(c.rows), cols: int32(m.cols), colTiles: int32(m.colTiles),
		}
		grid := driver.Dim3{X: tiles, Y: (m.colTiles + 3) / 4}
		if err := l.pack[m.format].Launch(l.stream, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: 128}}, arguments(&a)); err != nil {
			return err
		}
		// The stream takes it over before another expert comes to the same place.
		if image := l.plan.experts.image(l.images, t); image != nil {
			if err := l.stream.CopyToHost(image[first:first+tiles*m.colTiles*m.bytes], a.dst); err != nil {
				return err
			}
		}
		return x.done.Record(l.stream)
	})
}

// fillVector writes a vector's values to the host's memory and returns how many bytes
// they are. One that is not finite is an error.
func (x *berth) fillVector(t *tensor.Tensor) (int, error) {
	if err := tensor.CheckFinite(t.DType, t.Data); err != nil {
		return 0, fmt.Errorf("%s: %w", t.Name, err)
	}
	values, err := t.Float32s()
	if err != nil {
		return 0, err
	}
	for i, v := range values {
		binary.LittleEndian.PutUint32(x.host[4*i:], math.Float32bits(v))
	}
	return 4 * len(values), nil
}

// fill writes a chunk's rows to the host's memory, in the format in which they will
// lie, and returns how many bytes they are. A value that is not finite is an error.
func (x *berth) fill(t *tensor.Tensor, m *tiling, c *chunk) (int, error) {
	rowBytes := m.rowBytes()
	if m.format != t.DType && len(x.row) < m.cols {
		x.row = make([]float32, m.cols)
	}
	row, size := x.row[:min(m.cols, len(x.row))], t.RowBytes()
	step := max(1, readBytes/size)
	for i := 0; i < c.rows; i += step {
		n := min(step, c.rows-i)
		src, err := x.read(t, c.row+i, c.row+i+n)
		if err != nil {
			return 0, fmt.Errorf("%s: from row %d on: %w", t.Name, c.row+i, err)
		}
		to := x.host[i*rowBytes : (i+n)*rowBytes]
		if m.format == t.DType {
			copy(to, src)
			continue
		}
		for r := range n {
			if err := tensor.Dequantize(t.DType, row, src[r*size:(r+1)*size]); err != nil {
				return 0, fmt.Errorf("%s: %w", t.Name, err)
			}
			if err := tensor.Quantize(m.format, to[r*rowBytes:(r+1)*rowBytes], row); err != nil {
				return 0, fmt.Errorf("%s: row %d of %v, which is laid out as %v: %w (activations in float32 do that)", t.Name, c.row+i+r, t.DType, m.format, err)
			}
		}
	}
	return c.rows * rowBytes, nil
}

// readBytes is about how much is read at a time: what is checked is near the processor
// still when it is taken over, and a source makes a few dozen rows at once.
const readBytes = 128 << 10

// read is the bytes of rows lo to hi, until the next call. A value that is not finite
// is an error.
func (x *berth) read(t *tensor.Tensor, lo, hi int) ([]byte, error) {
	size := t.RowBytes()
	if t.Source == nil {
		rows := t.Data[lo*size : hi*size]
		if x.trusted {
			return rows, nil
		}
		return rows, tensor.CheckFinite(t.DType, rows)
	}
	if n := (hi - lo) * size; len(x.rows) < n {
		x.rows = make([]byte, n)
	}
	rows := x.rows[:(hi-lo)*size]
	return rows, t.ReadRows(rows, lo, hi)
}

// read announces the weights that are complete, in order. No step reads again what is
// not staged.
func (l *loader) read(weight int) {
	if l.loaded == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.left[weight]--; l.announced < len(l.left) && l.left[l.announced] == 0; l.announced++ {
		t := l.plan.order[l.announced]
		l.loaded(t, !l.staged[t])
	}
}

// matrices are the weights of n that lie as tiles.
func matrices(n *plan.Node) []*tensor.Tensor {
	switch n.Op {
	case plan.Linear, plan.Embed, plan.Position:
		return []*tensor.Tensor{n.Weight}
	case plan.Experts:
		a := n.Attr.(plan.ExpertsAttr)
		return slices.Concat(a.Gate, a.Up, a.Down)
	}
	return nil
}

// checkWeights says which weight or operation of p the kernels cannot take.
func checkWeights(p *plan.Program, lim *plan.Limits) error {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if err := checkLimits(n); err != nil {
			return fmt.Errorf("cuda: %s: %w; use --device cpu", n.Where(), err)
		}
		for _, w := range matrices(n) {
			if t := tilingOf(w, lim); t.rows == 0 || t.cols == 0 || t.rowTiles > math.MaxInt32 || t.cols > math.MaxInt32/4 {
				return fmt.Errorf("cuda: %s: no kernel for a weight of shape %v", n.Where(), w.Shape)
			}
		}
	}
	return nil
}

// checkLimits says how n is larger than the kernels can be.
func checkLimits(n *plan.Node) error {
	switch a := n.Attr.(type) {
	case plan.AttentionAttr:
		if n.Op == plan.Bidirectional && a.HeadDim > maxHeadDim {
			return fmt.Errorf("no kernel for heads of %d values, of which %d is the most", a.HeadDim, maxHeadDim)
		}
	case plan.ExpertsAttr:
		if len(a.Gate) > maxExperts {
			return fmt.Errorf("no kernel for %d experts, of which %d is the most", len(a.Gate), maxExperts)
		}
	}
	return nil
}
