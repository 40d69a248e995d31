package main

import (
	"errors"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// TestCheckFlags checks that a deviation found by a check is the command's error.
func TestCheckFlags(t *testing.T) {
	device := withAbacus(t)
	model := modeltest.Llama(t)
	for _, off := range []float32{0, -1000} {
		device.off = off
		for _, flags := range []checkFlags{{}, {CheckArgmax: true}, {CheckReference: 2}} {
			a, _, _ := testApp(t)
			three, prompt := 3, "hello world"
			c := &runCommand{Model: model, modelFlags: modelFlags{Activations: "auto", Device: "abacus", checkFlags: flags}}
			c.MaxTokens, c.Prompt, c.N = &three, &prompt, 1
			err := c.Run(a)
			if found := off != 0 && flags.CheckArgmax; found != errors.Is(err, realizar.ErrCheck) || !found && err != nil {
				t.Errorf("logits off by %v, %+v: error %v", off, flags, err)
			}
		}
	}
	f := modelFlags{checkFlags: checkFlags{CheckReference: -1}}
	if err := f.Validate(); err == nil {
		t.Error("-1 steps are checked")
	}
	one := benchCommand{Runs: 1, modelFlags: modelFlags{checkFlags: checkFlags{CheckArgmax: true}}}
	if err := one.Validate(); err == nil {
		t.Error("a benchmark is checked")
	}
}
