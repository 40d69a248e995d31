// Package demo is a small model that is part of the program: importing it lets
// realizar.Open, and everything else that takes the path of a model, open [Name] without
// touching the disk. It answers questions about realizar and does a little arithmetic,
// sorting, JSON and calls of tools; folder train in the repository says how it was made.
package demo

import (
	_ "embed"

	"github.com/realizar/realizar/modelfile"
)

// Name is what the model is called wherever a path is taken.
const Name = "demo"

//go:embed demo.gguf
var file []byte

func init() { modelfile.Register(Name, file) }
