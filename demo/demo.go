// Package demo embeds a small model in the program. Importing it lets realizar.Open, and every
// other function that takes the path of a model, open [Name] without touching the disk. The model
// answers questions about realizar and does a little arithmetic, sorting, JSON and tool calling.
// Its EAGLE-3 head predicts several tokens of its answers at once (realizar.SpeculativeEAGLE). The
// repository's train folder describes how both were made.
package demo

import (
	_ "embed"

	"github.com/realizar/realizar/modelfile"
)

// Name is the path of the embedded model, and Head that of its EAGLE-3 head.
const (
	Name = "demo"
	Head = Name + "/eagle3"
)

//go:embed demo.gguf
var file []byte

//go:embed head.gguf
var head []byte

func init() {
	modelfile.Register(Name, file)
	modelfile.Register(Head, head)
}
