package main

import "github.com/realizar/realizar"

// checkFlags select the work of a device that the CPU verifies.
type checkFlags struct {
	CheckArgmax    bool `group:"model" help:"Choose every token again on the CPU, from the logits of the device, and end with an error at the first difference."`
	CheckReference int  `default:"0" placeholder:"N" group:"model" help:"Repeat every operation of the first N steps with plain loops on the CPU, and end with an error that names the first operation that drifts. Such a step takes seconds."`
}

// apply sets the options of the flags.
func (f *checkFlags) apply(o *realizar.Options) {
	o.CheckArgmax, o.CheckReference = f.CheckArgmax, f.CheckReference
}

// Validate returns an error for an invalid value.
func (f *checkFlags) Validate() error {
	if f.CheckReference < 0 {
		return wrongFlag("check-reference", f.CheckReference, "1 or more steps, or 0 for none")
	}
	return nil
}

// checks reports whether anything is verified.
func (f *checkFlags) checks() bool { return f.CheckArgmax || f.CheckReference > 0 }
