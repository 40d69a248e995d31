package cuda

import (
	"fmt"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// stack returns a program of matrices, each of the given number of 4096-byte tiles, a few per
// layer: a table, which is also the head, and layers of a norm and matrices. Layers that share a
// matrix name share the matrix. A layer that is listed twice occurs twice.
func stack(t *testing.T, layers []int, matrices map[int][]string, tiles map[string]int) *plan.Program {
	t.Helper()
	const width = 16
	rng := newRand()
	made := map[string]*tensor.Tensor{}
	matrix := func(name string) *tensor.Tensor {
		if made[name] == nil {
			made[name] = plantest.Weight(rng, name, tensor.F16, 1, weights.TileRows*tiles[name], width)
		}
		return made[name]
	}
	return program(t, func(b *plan.Builder) {
		table := plantest.Weight(rng, "table", tensor.F16, 1, decoderVocab, width)
		x := b.Embed(table)
		for _, layer := range layers {
			b.Layer(layer)
			h := b.RMSNorm(x, plantest.Weight(rng, fmt.Sprint("norm ", layer), tensor.F32, 1, width), 1e-5)
			for _, name := range matrices[layer] {
				up := b.Linear(h, matrix(name), nil)
				if tiles[name] == 1 {
					x = b.Add(x, up)
				}
			}
		}
		b.Layer(plan.NoLayer)
		h := b.Pick(x)
		b.Output(h, b.Linear(h, table, nil))
	})
}

// In a program of a table of three tiles, a norm per layer and matrices, weights that do not fit
// stream: whole layers, evenly spaced, as few as possible.
func TestPlacement(t *testing.T) {
	const tile = 4096
	six := map[int][]string{}
	tiles := map[string]int{}
	for i := range 6 {
		names := []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
		six[i], tiles[names[0]], tiles[names[1]] = names, 1, 2
	}
	in := []int{0, 1, 2, 3, 4, 5}
	const fixed, layer = 3*tile + 6*256, 3 * tile // bytes in this program
	uneven := map[string]int{}
	for name, n := range tiles {
		uneven[name] = n
	}
	uneven["b0"] = 20
	shared := map[int][]string{}
	for i := range six {
		shared[i] = []string{six[i][0], "b0"}
	}
	shared[3] = six[3]
	for _, test := range []struct {
		name     string
		layers   []int
		matrices map[int][]string
		tiles    map[string]int
		weights  int
		pinned   int
		want     plan.Streaming
	}{
		{"no limit", in, six, tiles, 0, 0, plan.Streaming{Resident: fixed + 6*layer}},
		{"all fit", in, six, tiles, fixed + 6*layer, 1 << 30, plan.Streaming{Resident: fixed + 6*layer}},
		{"one byte too few", in, six, tiles, fixed + 6*layer - 1, 1 << 30,
			plan.Streaming{Resident: fixed + 4*layer, Layers: []int{1, 4}, Slots: 1, SlotBytes: layer, Streamed: 2 * layer, Pinned: 2 * layer}},
		{"one stays", in, six, tiles, fixed + 3*layer + 17, 2*layer + 1,
			plan.Streaming{Resident: fixed + layer, Layers: []int{0, 1, 3, 4, 5}, Slots: 2, SlotBytes: layer, Streamed: 5 * layer, Pinned: 2 * layer, Staged: 3 * layer}},
		{"none stays", in, six, tiles, fixed + 2*layer, 0,
			plan.Streaming{Resident: fixed, Layers: in, Slots: 2, SlotBytes: layer, Streamed: 6 * layer, Staged: 6 * layer}},
		{"less than the least", in, six, tiles, 1, 1 << 30,
			plan.Streaming{Resident: fixed, Layers: in, Slots: 2, SlotBytes: layer, Streamed: 6 * layer, Pinned: 6 * layer}},
		// Two slots for a layer larger than all others together would take more memory than they
		// free.
		{"a large layer", in, six, uneven, 1, 1 << 30,
			plan.Streaming{Resident: fixed + 21*tile, Layers: []int{1, 2, 3, 4, 5}, Slots: 2, SlotBytes: layer, Streamed: 5 * layer, Pinned: 5 * layer}},
		// A matrix of several layers stays resident, and so does a layer of the size of two more
		// slots.
		{"a matrix of several layers", in, shared, tiles, 1, 1 << 30,
			plan.Streaming{Resident: fixed + 2*tile + layer, Layers: []int{0, 1, 2, 4, 5}, Slots: 2, SlotBytes: tile, Streamed: 5 * tile, Pinned: 5 * tile}},
		{"one layer alone", []int{0}, six, tiles, 1, 1 << 30, plan.Streaming{Resident: fixed - 5*256 + layer}},
		// A layer that is interrupted by another one stays resident.
		{"layers within layers", []int{0, 1, 0, 2, 3}, six, tiles, 1, 1 << 30,
			plan.Streaming{Resident: 3*tile + 5*256 + layer, Layers: []int{1, 2, 3}, Slots: 1, SlotBytes: layer, Streamed: 3 * layer, Pinned: 3 * layer}},
	} {
		p := stack(t, test.layers, test.matrices, test.tiles)
		lim := plan.Limits{Activations: tensor.F16, Weights: test.weights, Pinned: test.pinned}
		w := weights.NewPlan(p, &lim, weights.StreamSlots)
		if got := w.Streaming(); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", test.want) || w.Bytes != got.Device() {
			t.Errorf("%s: %+v in %d bytes, want\n%+v in %d", test.name, got, w.Bytes, test.want, test.want.Device())
		}
		checkPlaces(t, test.name, w)
	}
}

// checkPlaces checks that weights lie within the memory and do not overlap, except for layers that
// share a slot.
func checkPlaces(t *testing.T, name string, w *weights.Plan) {
	t.Helper()
	image := map[*tensor.Tensor]int{}
	for i, m := range w.Images {
		end := w.Slot(i)
		for _, x := range m.Weights {
			image[x] = i + 1
			if w.At[x] != end || end%256 != 0 {
				t.Errorf("%s: %s lies at %d, want %d", name, x.Name, w.At[x], end)
			}
			end += weights.Align(w.Size(x))
		}
		if end != w.Slot(i)+m.Bytes || m.Bytes > w.SlotBytes {
			t.Errorf("%s: image %d has %d bytes, planned are %d", name, i, end-w.Slot(i), m.Bytes)
		}
	}
	end := 0
	for _, x := range w.Order {
		if image[x] > 0 {
			continue
		}
		if w.At[x] != end {
			t.Errorf("%s: %s lies at %d, want %d", name, x.Name, w.At[x], end)
		}
		end += weights.Align(w.Size(x))
	}
	if end != w.Resident || w.Bytes != w.Resident+w.Slots*w.SlotBytes {
		t.Errorf("%s: what stays ends at %d of %d", name, end, w.Resident)
	}
}

// More memory never makes more layers stream. A plan takes at most its limit, or the least possible
// amount if the limit is below that.
func TestPlacementIsMonotone(t *testing.T) {
	for _, p := range []*plan.Program{plantest.Model(t, nil), apart(t)} {
		all := weights.NewPlan(p, &plan.Limits{}, weights.StreamSlots).Bytes
		least := weights.NewPlan(p, &plan.Limits{Weights: 1}, weights.StreamSlots).Bytes
		before := -1
		for most := 1; most <= all; most += all/97 + 1 {
			w := weights.NewPlan(p, &plan.Limits{Weights: most}, weights.StreamSlots)
			if w.Bytes > max(most, least) || most < least && w.Bytes != least {
				t.Errorf("%d bytes are planned of %d, the least is %d", w.Bytes, most, least)
			}
			if before >= 0 && len(w.Images) > before {
				t.Errorf("with %d bytes %d layers stream, with fewer %d", most, len(w.Images), before)
			}
			before = len(w.Images)
			checkPlaces(t, fmt.Sprint(most), w)
		}
		w := weights.NewPlan(p, &plan.Limits{Weights: all}, weights.StreamSlots)
		if len(w.Images) > 0 || w.Bytes != all {
			t.Errorf("%d layers stream where all have room", len(w.Images))
		}
	}
}

// Experts stream with their layer, at equal distances in its slot.
func TestPlacementOfExperts(t *testing.T) {
	p := plantest.MoEModel(t, nil)
	lim := plan.Limits{Weights: 1}
	w := weights.NewPlan(p, &lim, weights.StreamSlots)
	found := false
	for i := range p.Nodes {
		a, ok := p.Nodes[i].Attr.(plan.ExpertsAttr)
		if !ok {
			continue
		}
		k := slices.IndexFunc(w.Images, func(m weights.Image) bool { return m.Layer == p.Nodes[i].Layer })
		if k < 0 {
			continue
		}
		found = true
		for j, e := range a.Gate {
			if want := w.At[a.Gate[0]] + j*(w.At[a.Gate[1]]-w.At[a.Gate[0]]); w.At[e] != want || !slices.Contains(w.Images[k].Weights, e) {
				t.Errorf("%s lies at %d, want %d in the image of its layer", e.Name, w.At[e], want)
			}
		}
	}
	if !found {
		t.Error("no layer of experts streams")
	}
}
