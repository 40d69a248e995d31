package realizar

import "github.com/realizar/realizar/internal/mesh"

// Split says how GPUs that run a model together divide it. It does not change the results.
type Split mesh.Split

const (
	// SplitAuto is SplitTensor if the GPUs reach each other's memory, otherwise SplitLayers.
	SplitAuto = Split(mesh.Auto)
	// SplitTensor gives each GPU a share of every layer: tensor parallelism. All GPUs work on every
	// token, and exchange results several times a layer.
	SplitTensor = Split(mesh.ByTensor)
	// SplitLayers gives each GPU some of the layers: pipeline parallelism. A token goes through one
	// GPU after the other, while they work on other tokens: of a long prompt, or of other answers. A
	// single answer is no faster than on one GPU. Results go through the host's memory once for each
	// GPU.
	SplitLayers = Split(mesh.ByLayer)
)

var splitNames = []string{"auto", "tensor", "layers"}

// String returns "auto", "tensor" or "layers".
func (s Split) String() string { return nameOf("Split", s, splitNames) }

// ParseSplit parses "auto", "tensor" or "layers"; "" is "auto". The error wraps [ErrOptions].
func ParseSplit(s string) (Split, error) { return parseName[Split]("a split", s, splitNames) }
