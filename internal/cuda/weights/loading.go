package weights

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// LoadBytes is the approximate size in bytes of the piece of a weight that each loading goroutine
// copies at a time.
const LoadBytes = 16 << 20

// A Chunk is a range of rows of a weight that is copied at once.
type Chunk struct {
	Weight int // index into order
	Row    int
	Rows   int
}

// Chunks cuts weights into pieces of about the given number of bytes, and matrices at tile
// boundaries. It also returns the size of the largest piece in bytes.
func (w *Plan) Chunks(weights []int, bytes int) (all []Chunk, largest int) {
	for _, i := range weights {
		t := w.Order[i]
		m, ok := w.Matrices[t]
		if !ok {
			all = append(all, Chunk{Weight: i})
			largest = max(largest, 4*t.Elems())
			continue
		}
		rowBytes := m.copiedBytes()
		rows := max(TileRows, bytes/max(1, rowBytes)/TileRows*TileRows)
		for r := 0; r < m.Rows; r += rows {
			all = append(all, Chunk{i, r, min(rows, m.Rows-r)})
		}
		largest = max(largest, min(rows, m.Rows)*rowBytes)
	}
	return all, largest
}

// A Loader copies weights to the device.
type Loader struct {
	Plan   *Plan
	base   driver.DevicePtr
	images [][]byte        // images of the experts of each mixture; nil without an expert cache
	c      *driver.Context // the stream's context
	waiter *driver.Context // waits for events while c continues
	stream *driver.Stream
	pack   packers
	berths []Berth

	Loaded    plan.Loaded
	staged    map[*tensor.Tensor]bool // weights that every step reads again
	mu        sync.Mutex
	Left      []int // number of unread chunks of each weight
	announced int
}

// A Berth holds the buffers of one loading goroutine.
type Berth struct {
	Host    []byte
	device  driver.DevicePtr
	done    *driver.Event
	busy    bool      // until done
	trusted bool      // skips the check for values that are not finite: the weights were checked before
	rows    []byte    // buffer for rows of a derived matrix
	row     []float32 // buffer for one row as float32
}

// newBerths allocates n berths of the given number of bytes, on the thread of c.
func newBerths(c *driver.Context, n, bytes int) (berths []Berth, err error) {
	defer c.Doing(c.Doing("making room for weights on their way"))
	berths = make([]Berth, n)
	for i := range berths {
		x := &berths[i]
		if x.Host, err = c.AllocHost(bytes); err != nil {
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

// leaveBerths frees berths on the thread of c, which allocated them. Freeing device memory waits
// for copies in flight, even those without an event.
func leaveBerths(c *driver.Context, berths []Berth) error {
	var all error
	for _, x := range berths {
		for _, err := range []error{c.Free(x.device), device.FreeHost(c, x.Host), device.DestroyEvent(x.done)} {
			if all == nil {
				all = err
			}
		}
	}
	return all
}

// packers are the kernels that lay out matrices, by format.
type packers struct {
	pack, fit map[tensor.DType]*driver.Function
}

// packers returns the kernels that lay out the matrices of w, for use in c. It must be called on
// the main thread.
func (w *Plan) packers(g *device.GPU, c *driver.Context) (packers, error) {
	all := packers{map[tensor.DType]*driver.Function{}, map[tensor.DType]*driver.Function{}}
	add := func(to map[tensor.DType]*driver.Function, d tensor.DType, family, name string) error {
		if to[d] != nil {
			return nil
		}
		f, err := g.Function(family, name)
		if err == nil {
			to[d] = f.In(c)
		}
		return err
	}
	for _, m := range w.Matrices {
		if err := add(all.pack, m.Format, Family(m.Format), "pack"); err != nil {
			return all, err
		}
		if !m.Float8 {
			continue
		}
		if err := add(all.fit, m.Format, Float8Family(m.Format), "fit"); err != nil {
			return all, err
		}
	}
	return all, nil
}

// Load fills the weights' memory at base, of w.Bytes bytes, and the images of experts if there is a
// cache, and reports each weight to loaded. The images of layers take turns in their slots; Load
// calls landed for each while it is in its slot.
func (w *Plan) Load(ctx context.Context, g *device.GPU, base driver.DevicePtr, experts [][]byte, stream *driver.Stream, loaded plan.Loaded, landed func(image int) error) (err error) {
	if len(w.Order) == 0 {
		return nil
	}
	l := &Loader{Plan: w, base: base, images: experts, c: g.Main, waiter: g.Waiter, stream: stream, Loaded: loaded, staged: w.Staged(), Left: make([]int, len(w.Order))}
	phases := w.phases()
	most, largest := 0, 0
	chunks := make([][]Chunk, len(phases))
	for i, weights := range phases {
		var n int
		chunks[i], n = w.Chunks(weights, LoadBytes)
		most, largest = max(most, len(chunks[i])), max(largest, n)
		for _, c := range chunks[i] {
			l.Left[c.Weight]++
		}
	}
	defer func() {
		if e := g.Main.Do(func() error { return leaveBerths(g.Main, l.berths) }); err == nil {
			err = e
		}
	}()
	err = g.Main.Do(func() (err error) {
		defer g.Main.Doing(g.Main.Doing("loading weights"))
		if l.pack, err = w.packers(g, g.Main); err != nil {
			return err
		}
		l.berths, err = newBerths(g.Main, min(most, max(2, min(8, runtime.GOMAXPROCS(0)))), Align(largest))
		return err
	})
	if err != nil {
		return err
	}
	for i := range phases {
		if err := errors.Join(l.bring(ctx, chunks[i]), l.settle()); err != nil {
			return err
		}
		if i < len(w.Images) {
			if err := landed(i); err != nil {
				return err
			}
		}
	}
	return ctx.Err() // the context may have ended after the last check
}

// bring reads chunks and queues their copies on the stream.
func (l *Loader) bring(ctx context.Context, chunks []Chunk) error {
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

// work processes one chunk after another.
func (l *Loader) work(ctx context.Context, x *Berth, chunks []Chunk, next *atomic.Int64) error {
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
		l.Read(chunks[i].Weight)
	}
}

// settle waits for copies in flight.
func (l *Loader) settle() error {
	var all error
	for i := range l.berths {
		if err := l.free(&l.berths[i]); all == nil {
			all = err
		}
	}
	return all
}

// free waits until a berth has no copy in flight.
func (l *Loader) free(x *Berth) error {
	if !x.busy {
		return nil
	}
	x.busy = false
	return l.waiter.Do(func() error { return x.done.In(l.waiter).Synchronize() })
}

// PackArgs are the parameters of the pack kernels.
type PackArgs struct {
	Src, Dst   driver.DevicePtr
	Powers     driver.DevicePtr // exponents of the rows, after all tiles; 0 if the format has none
	RowBytes   int64
	Rows, Cols int32
	ColTiles   int32
	First      int32 // the first column of Src's rows
}

// fitArgs are the parameters of the fit kernels; see kernels/float8.cuh.
type fitArgs struct {
	w, powers, fits driver.DevicePtr
	colTiles, _     int32
}

// send reads a chunk and queues its copy and layout on the stream.
func (l *Loader) send(c *Chunk, x *Berth) error {
	t := l.Plan.Order[c.Weight]
	m, matrix := l.Plan.Matrices[t]
	to := l.base + driver.DevicePtr(l.Plan.At[t])
	if err := l.free(x); err != nil {
		return err
	}
	var n int
	// Only this code reads the weights, and it is Go code: the driver copies only from memory that
	// it has pinned itself (see [driver.Stream.CopyToDevice]). So if a mapped file is truncated, no
	// copy of the driver faults.
	err := tensor.Guard(func() (err error) {
		if matrix {
			n, err = x.Fill(t, &m, c)
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
			if err := l.stream.CopyToDevice(to, x.Host[:n]); err != nil {
				return err
			}
			return x.done.Record(l.stream)
		}
		if err := l.stream.CopyToDevice(x.device, x.Host[:n]); err != nil {
			return err
		}
		first, tiles := c.Row/TileRows*m.ColTiles*m.Bytes, (c.Rows+TileRows-1)/TileRows
		a := PackArgs{
			Src: x.device, Dst: to + driver.DevicePtr(first), RowBytes: int64(n / c.Rows),
			Rows: int32(c.Rows), Cols: int32(m.Cols), ColTiles: int32(m.ColTiles), First: int32(m.First),
		}
		powers := m.Tiles() + 4*c.Row
		if m.Scaled() {
			a.Powers = to + driver.DevicePtr(powers)
		}
		grid := driver.Dim3{X: tiles, Y: (m.ColTiles + 3) / 4}
		if err := l.pack.pack[m.Format].Launch(l.stream, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: 128}}, device.Arguments(&a)); err != nil {
			return err
		}
		if m.Float8 {
			a := fitArgs{w: a.Dst, powers: a.Powers, fits: to + driver.DevicePtr(m.Fits()+FitBytes*c.Row), colTiles: int32(m.ColTiles)}
			if err := l.pack.fit[m.Format].Launch(l.stream, driver.LaunchConfig{Grid: driver.Dim3{X: tiles}, Block: driver.Dim3{X: 256}}, device.Arguments(&a)); err != nil {
				return err
			}
		}
		// The stream copies the image to the host before it lays out another expert in the same
		// place.
		if image := l.Plan.Experts.image(l.images, t); image != nil {
			if err := l.stream.CopyToHost(image[first:first+tiles*m.ColTiles*m.Bytes], a.Dst); err != nil {
				return err
			}
			if m.Scaled() {
				if err := l.stream.CopyToHost(image[powers:powers+4*TileRows*tiles], a.Powers); err != nil {
					return err
				}
			}
		}
		return x.done.Record(l.stream)
	})
}

// fillVector writes a vector's values as float32 to host memory and returns their size in bytes. A
// value that is not finite is an error.
func (x *Berth) fillVector(t *tensor.Tensor) (int, error) {
	if err := tensor.CheckFinite(t.DType, t.Data); err != nil {
		return 0, fmt.Errorf("%s: %w", t.Name, err)
	}
	values, err := t.Float32s()
	if err != nil {
		return 0, err
	}
	for i, v := range values {
		binary.LittleEndian.PutUint32(x.Host[4*i:], math.Float32bits(v))
	}
	return 4 * len(values), nil
}

// Fill writes a chunk's rows to host memory, in the format of the layout, and returns their size in
// bytes. A value that is not finite is an error.
func (x *Berth) Fill(t *tensor.Tensor, m *Tiling, c *Chunk) (int, error) {
	t, _ = t.Whole()
	rowBytes := m.copiedBytes()
	if m.Format != t.DType && len(x.row) < m.Whole {
		x.row = make([]float32, m.Whole)
	}
	row, size := x.row[:min(m.Whole, len(x.row))], t.RowBytes()
	step := max(1, readBytes/size)
	for i := 0; i < c.Rows; i += step {
		n := min(step, c.Rows-i)
		src, err := x.read(t, c.Row+i, c.Row+i+n)
		if err != nil {
			return 0, fmt.Errorf("%s: from row %d on: %w", t.Name, c.Row+i, err)
		}
		to := x.Host[i*rowBytes : (i+n)*rowBytes]
		if m.Format == t.DType {
			copy(to, src)
			continue
		}
		for r := range n {
			if err := tensor.Dequantize(t.DType, row, src[r*size:(r+1)*size]); err != nil {
				return 0, fmt.Errorf("%s: %w", t.Name, err)
			}
			if err := tensor.Quantize(m.Format, to[r*rowBytes:(r+1)*rowBytes], row); err != nil {
				return 0, fmt.Errorf("%s: row %d of %v, which is laid out as %v: %w (activations in float32 do that)", t.Name, c.Row+i+r, t.DType, m.Format, err)
			}
		}
	}
	return c.Rows * rowBytes, nil
}

// readBytes is the approximate number of bytes read at a time. It is small enough that checked data
// is still in the processor's cache when it is copied, and large enough that a source computes a
// few dozen rows at once.
const readBytes = 128 << 10

// read returns the bytes of rows lo to hi, which are valid until the next call. A value that is not
// finite is an error.
func (x *Berth) read(t *tensor.Tensor, lo, hi int) ([]byte, error) {
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

// Read records that a chunk of a weight has been read, and announces complete weights in order.
// Steps read only staged weights again.
func (l *Loader) Read(weight int) {
	if l.Loaded == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.Left[weight]--; l.announced < len(l.Left) && l.Left[l.announced] == 0; l.announced++ {
		t := l.Plan.Order[l.announced]
		l.Loaded(t, !l.staged[t])
	}
}
