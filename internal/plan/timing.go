package plan

import "time"

// Setup is the time that making an executable ready has taken so far.
type Setup struct {
	Load    time.Duration // reading the weights and laying them out
	Compile time.Duration // choosing and building kernels
	Capture time.Duration // capturing steps as graphs, when a size of step first comes up
}

// Times are the times of the parts of a step, measured on the device.
type Times struct {
	Embed  time.Duration // before the first layer
	Choose time.Duration // sampling
	Total  time.Duration // the whole step, including Embed and Choose
}

// A Span is the time of one part of a step: a kernel on a device, a stage on a processor. The spans
// of a device do not overlap.
type Span struct {
	Device int           // index of the device; 0 if one runs the whole program
	Kernel string        // name of the kernel
	Where  string        // what it computed, in words
	Layer  int           // or NoLayer
	Begin  time.Duration // since the beginning of the step
	Time   time.Duration

	// Bytes is the least that the part has to read and write: each weight in its layout in memory,
	// the keys and values that it attends to or stores, its inputs and its outputs, each once. Data
	// that may still be in a cache is included.
	Bytes int
}

// Attended returns how many positions the sequences of b see, each counted once, of those that a
// token needs of the states of g.
func (b *Batch) Attended(g Group) int {
	n := 0
	for s := range b.Seqs() {
		first, last := int(b.Positions[b.Start[s]]), int(b.Positions[b.Start[s+1]-1])
		n += last + 1 - g.FirstVisible(first)
	}
	return n
}
