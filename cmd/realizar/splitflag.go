package main

import "github.com/realizar/realizar"

// splitFlag says how GPUs divide a model.
type splitFlag struct {
	Split string `default:"auto" enum:"auto,tensor,layers" placeholder:"auto|tensor|layers" group:"model" help:"How GPUs that run the model together divide it: tensor gives each a share of every layer, layers some of the layers. auto is tensor, or layers if they do not reach each other's memory."`
}

// apply sets the option that the flag selects.
func (f *splitFlag) apply(o *realizar.Options) {
	o.Split, _ = realizar.ParseSplit(f.Split) // the parser has checked the value
}
