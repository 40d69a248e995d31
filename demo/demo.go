// Package demo embeds a small model in the program. Importing it lets realizar.Open, and every
// other function that takes the path of a model, open [Name] without touching the disk. The model
// answers questions about realizar and does a little arithmetic, sorting, JSON and tool calling.
// The repository's train folder describes how it was made.
package demo

import (
	_ "embed"

	"github.com/realizar/realizar/modelfile"
)

// Name is the path of the embedded model.
const Name = "demo"

//go:embed demo.gguf
var file []byte

func init() { modelfile.Register(Name, file) }
