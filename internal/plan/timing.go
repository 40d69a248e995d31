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

	// Bytes is what it has to read and write of the memory that holds weights and
	// states, at least: each weight once, and what it attends to.
	Bytes int
}
