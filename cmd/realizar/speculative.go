package main

import (
	"fmt"
	"strings"

	"github.com/realizar/realizar"
)

// speculativeFlags say who proposes tokens of which a step checks several.
type speculativeFlags struct {
	Speculative       string `default:"auto" placeholder:"PROPOSER" group:"model" help:"Speculative decoding: propose the next tokens and check several in one step. The answer is the same. suffix proposes what followed the last tokens earlier, in the prompt or in previous answers. draft=MODEL proposes what a faster model with the same tokens generates. mtp proposes what the checkpoint's layer for multi-token prediction predicts, on the CPU. auto is suffix on the CPU and off on a GPU."`
	SpeculativeTokens int    `default:"0" placeholder:"N" group:"model" help:"Tokens to propose in each step. Default: as many as pay off by measured times."`
}

// draftPrefix comes before the name of a draft model.
const draftPrefix = "draft="

// validSpeculative returns an error for an invalid value.
func (f *speculativeFlags) validSpeculative() error {
	if kind, name, isDraft := f.speculative(); kind == realizar.SpeculativeDraft && (!isDraft || name == "") {
		return wrongFlag("speculative", f.Speculative, "auto, off, suffix, mtp or draft=MODEL")
	}
	return checkSpeculative(f.SpeculativeTokens)
}

// speculative returns who proposes, and the name of the draft model. An invalid value is one of a
// draft model without a name.
func (f *speculativeFlags) speculative() (kind realizar.Speculative, name string, isDraft bool) {
	if name, isDraft = strings.CutPrefix(f.Speculative, draftPrefix); isDraft {
		return realizar.SpeculativeDraft, name, true
	}
	kind, err := realizar.ParseSpeculative(f.Speculative)
	if err != nil {
		kind = realizar.SpeculativeDraft
	}
	return kind, "", false
}

// checkSpeculative returns an error for an invalid --speculative-tokens.
func checkSpeculative(n int) error {
	if n < 0 || n > realizar.MaxSpeculativeTokens {
		return wrongFlag("speculative-tokens", n, fmt.Sprintf("1 to %d, or 0 for as many as pay off", realizar.MaxSpeculativeTokens))
	}
	return nil
}

// setSpeculative sets the options that the flags select. The draft model has its name as its path,
// see [app.findDraft].
func (f *speculativeFlags) setSpeculative(o *realizar.Options) {
	o.Speculative, o.Draft, _ = f.speculative()
	o.SpeculativeTokens = f.SpeculativeTokens
}

// findDraft replaces the name of the draft model by its path.
func (a *app) findDraft(o *realizar.Options) (err error) {
	if o.Draft == "" {
		return nil
	}
	if o.Draft, err = a.modelPath(o.Draft, false); err != nil {
		return fmt.Errorf("--speculative: %w", err)
	}
	return nil
}
