package main

import (
	"fmt"
	"strings"

	"github.com/realizar/realizar"
)

// speculativeFlags say who proposes tokens of which a step checks several.
type speculativeFlags struct {
	Speculative       string `default:"auto" placeholder:"PROPOSER" group:"model" help:"Speculative decoding: propose the next tokens and check several in one step. The answer is the same. suffix proposes what followed the last tokens earlier, in the prompt or in previous answers. draft=MODEL proposes what a faster model with the same tokens generates. mtp proposes what the checkpoint's layer for multi-token prediction predicts, and eagle what the EAGLE-3 head that the model brings does, or eagle=FOLDER another. auto is suffix on the CPU and off on a GPU."`
	SpeculativeTokens int    `default:"0" placeholder:"N" group:"model" help:"Tokens to propose in each step. Default: as many as pay off by measured times."`
}

// validSpeculative returns an error for an invalid value.
func (f *speculativeFlags) validSpeculative() error {
	if _, _, ok := f.speculative(); !ok {
		return wrongFlag("speculative", f.Speculative, "auto, off, suffix, mtp, eagle, eagle=FOLDER or draft=MODEL")
	}
	return checkSpeculative(f.SpeculativeTokens)
}

// speculative returns who proposes, and the name of the draft model or the head. ok is false for an
// invalid value.
func (f *speculativeFlags) speculative() (kind realizar.Speculative, name string, ok bool) {
	who, name, named := strings.Cut(f.Speculative, "=")
	kind, err := realizar.ParseSpeculative(who)
	switch kind {
	case realizar.SpeculativeDraft:
		ok = name != ""
	case realizar.SpeculativeEAGLE:
		ok = named == (name != "")
	default:
		ok = !named
	}
	return kind, name, ok && err == nil
}

// checkSpeculative returns an error for an invalid --speculative-tokens.
func checkSpeculative(n int) error {
	if n < 0 || n > realizar.MaxSpeculativeTokens {
		return wrongFlag("speculative-tokens", n, fmt.Sprintf("1 to %d, or 0 for as many as pay off", realizar.MaxSpeculativeTokens))
	}
	return nil
}

// setSpeculative sets the options that the flags select. The draft model or head has its name as its
// path, see [app.findDraft].
func (f *speculativeFlags) setSpeculative(o *realizar.Options) {
	o.Speculative, o.Draft, _ = f.speculative()
	o.SpeculativeTokens = f.SpeculativeTokens
}

// findDraft replaces the name of the draft model or the head by its path.
func (a *app) findDraft(o *realizar.Options) (err error) {
	if o.Draft == "" {
		return nil
	}
	if o.Draft, err = a.modelPath(o.Draft, false); err != nil {
		return fmt.Errorf("--speculative: %w", err)
	}
	return nil
}
