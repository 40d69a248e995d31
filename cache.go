package realizar

import "github.com/realizar/realizar/tensor"

// Cache are the numbers that a model keeps keys and values in.
type Cache uint8

const (
	// CacheAuto goes by [Options.Activations]: float32 where they are float32, else
	// float16.
	CacheAuto Cache = iota
	// CacheF32 is float32.
	CacheF32
	// CacheF16 is float16.
	CacheF16
	// CacheQ8 is 8 bits with a scale for every 32 values: a little more than half of
	// float16's memory. It takes heads whose width is a multiple of 32.
	CacheQ8
)

var cacheNames = []string{"auto", "f32", "f16", "q8"}

// String is "auto", "f32", "f16" or "q8".
func (c Cache) String() string { return nameOf("cache", c, cacheNames) }

// ParseCache reads "auto", "f32", "f16" or "q8"; "" is "auto".
func ParseCache(s string) (Cache, error) { return parseName[Cache]("cache", s, cacheNames) }

// dtype is that of keys and values beside a.
func (c Cache) dtype(a Activations) tensor.DType {
	switch {
	case c == CacheQ8:
		return tensor.Q8_0
	case c == CacheF32 || c == CacheAuto && a == ActivationsF32:
		return tensor.F32
	}
	return tensor.F16
}
