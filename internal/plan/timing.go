package plan

import "time"

// Setup is what making an executable ready took, as far as it went by now.
type Setup struct {
	Load    time.Duration // reading the weights and laying them out
	Compile time.Duration // choosing and building kernels
	Capture time.Duration // of steps as graphs, when sizes of steps came up for the first time
}

// Times is what the parts of a step took where the program runs.
type Times struct {
	Embed  time.Duration // what comes before the first layer
	Choose time.Duration // tokens from logits
	Total  time.Duration // all of the step, these included
}

// A Span is what one part of a step took: on a device a kernel, elsewhere a stage.
// Those of a step follow each other.
type Span struct {
	Kernel string        // what ran
	Where  string        // what it did, in words
	Layer  int           // or NoLayer
	Begin  time.Duration // from the step's beginning
	Time   time.Duration

	// Bytes is what it has to read and write, at least: each weight as it lies in
	// memory, keys and values that it attends to or stores, what goes in and what
	// comes out, each once. What of it is near the processor still is not left out.
	Bytes int
}

// Attended is how many positions the sequences of b see, each counted once, through a
// window of so many positions, or of all where that is 0.
func (b *Batch) Attended(window int) int {
	n := 0
	for s := range b.Seqs() {
		first, last := int(b.Positions[b.Start[s]]), int(b.Positions[b.Start[s+1]-1])
		n += last + 1 - Group{Window: window}.FirstVisible(first)
	}
	return n
}
