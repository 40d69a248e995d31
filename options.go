package realizar

import (
	"fmt"

	"github.com/realizar/realizar/tensor"
)

// Options say how a model is opened. The zero Options are good for most.
type Options struct {
	// Device is where the model runs: "cpu", or "auto" (the same as "") for the
	// best there is.
	Device string
	// Threads share the work on the CPU. 0: as many as the process may use.
	Threads int
	// Context is the number of tokens that a prompt and its answer may have
	// together. 0: what the model was made for, or the largest power of two
	// that memory allows.
	Context int
	// Parallel is the number of answers that may be under way at one time; more
	// wait for their turn, so that one asked for within the loop over another
	// needs a place of its own. 0: 4.
	Parallel int
	// Activations are the numbers computed with.
	Activations Activations
	// Progress, where not nil, is called while the model loads.
	Progress func(Progress)
}

// Activations are the numbers that a model computes with.
type Activations uint8

const (
	// ActivationsAuto is the fastest that keeps the model's quality: on the CPU,
	// float32 with keys and values cached in float16.
	ActivationsAuto Activations = iota
	// ActivationsF32 is float32 throughout, the cache included.
	ActivationsF32
)

// String is "auto" or "f32".
func (a Activations) String() string {
	if a == ActivationsF32 {
		return "f32"
	}
	return "auto"
}

// ParseActivations reads "auto" or "f32".
func ParseActivations(s string) (Activations, error) {
	switch s {
	case "auto", "":
		return ActivationsAuto, nil
	case "f32":
		return ActivationsF32, nil
	}
	return 0, fmt.Errorf("realizar: %w: activations %q, want auto or f32", ErrOptions, s)
}

// cache is the dtype of cached keys and values.
func (a Activations) cache() tensor.DType {
	if a == ActivationsF32 {
		return tensor.F32
	}
	return tensor.F16
}

// Progress says how far loading has come.
type Progress struct {
	Done, Total int64 // bytes of weights
}

const defaultParallel = 4

func (o *Options) validate() error {
	switch {
	case o.Device != "" && o.Device != "auto" && o.Device != "cpu":
		return fmt.Errorf("realizar: %w: device %q is not in this build; use auto or cpu", ErrOptions, o.Device)
	case o.Threads < 0:
		return fmt.Errorf("realizar: %w: %d threads", ErrOptions, o.Threads)
	case o.Context < 0:
		return fmt.Errorf("realizar: %w: a context of %d tokens", ErrOptions, o.Context)
	case o.Parallel < 0:
		return fmt.Errorf("realizar: %w: %d answers at one time", ErrOptions, o.Parallel)
	case o.Activations > ActivationsF32:
		return fmt.Errorf("realizar: %w: activations %d", ErrOptions, o.Activations)
	}
	return nil
}
