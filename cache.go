package realizar

import "github.com/realizar/realizar/tensor"

// Cache is the number format of keys and values in the KV cache.
type Cache uint8

const (
	// CacheAuto selects float32 if [Options.Activations] is [ActivationsF32], and float16
	// otherwise.
	CacheAuto Cache = iota
	// CacheF32 selects float32.
	CacheF32
	// CacheF16 selects float16.
	CacheF16
	// CacheQ8 selects 8 bits with a scale for every 32 values (Q8_0), which takes a little more
	// than half of the memory of float16. The width of the model's heads must be a multiple of 32.
	CacheQ8
	// CacheF8 selects 8-bit floats (E4M3) with a scale for every key and every value of a head. It
	// takes no more memory than [CacheQ8] and is less accurate. The width of the model's heads must be
	// a multiple of 16.
	CacheF8
)

var cacheNames = []string{"auto", "f32", "f16", "q8", "f8"}

// String returns "auto", "f32", "f16", "q8" or "f8".
func (c Cache) String() string { return nameOf("cache", c, cacheNames) }

// ParseCache parses "auto", "f32", "f16", "q8" or "f8"; "" is "auto". The error wraps [ErrOptions].
func ParseCache(s string) (Cache, error) { return parseName[Cache]("cache", s, cacheNames) }

// dtype returns the data type of keys and values if activations are a.
func (c Cache) dtype(a Activations) tensor.DType {
	switch {
	case c == CacheQ8:
		return tensor.Q8_0
	case c == CacheF8:
		return tensor.F8_E4M3
	case c == CacheF32 || c == CacheAuto && a == ActivationsF32:
		return tensor.F32
	}
	return tensor.F16
}
