package main

import (
	"fmt"

	"github.com/realizar/realizar"
)

// speculativeFlags say who proposes tokens of which a step checks several.
type speculativeFlags struct {
	Speculative       string `default:"auto" enum:"auto,off,suffix" placeholder:"auto|off|suffix" group:"model" help:"Speculative decoding: propose the next tokens and check several in one step. The answer is the same. suffix proposes what followed the last tokens earlier, in the prompt or in previous answers. auto is suffix on the CPU and off on a GPU."`
	SpeculativeTokens int    `default:"0" placeholder:"N" group:"model" help:"Tokens to propose in each step. Default: as many as pay off by measured times."`
}

// validSpeculative returns an error for an invalid value.
func (f *speculativeFlags) validSpeculative() error { return checkSpeculative(f.SpeculativeTokens) }

// checkSpeculative returns an error for an invalid --speculative-tokens.
func checkSpeculative(n int) error {
	if n < 0 || n > realizar.MaxSpeculativeTokens {
		return wrongFlag("speculative-tokens", n, fmt.Sprintf("1 to %d, or 0 for as many as pay off", realizar.MaxSpeculativeTokens))
	}
	return nil
}

// setSpeculative sets the options that the flags select.
func (f *speculativeFlags) setSpeculative(o *realizar.Options) {
	o.Speculative, _ = realizar.ParseSpeculative(f.Speculative) // the parser knows the values
	o.SpeculativeTokens = f.SpeculativeTokens
}
