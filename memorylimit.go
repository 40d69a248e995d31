package realizar

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/bytesize"
)

// A MemoryLimit limits the memory of a device that a model may take, to a number of bytes or to a
// fraction of the device's total memory. The zero MemoryLimit is no limit but the memory that is
// free. Setting both fields is an error.
type MemoryLimit struct {
	Bytes    int64
	Fraction float64 // of the total memory, 0 to 1
}

// ParseMemoryLimit parses a number of bytes with a unit, such as "8GiB", or a fraction of the
// device's memory, such as "0.5" or "50%". A number without a unit is a fraction up to 1 and bytes
// above. The error wraps [ErrOptions].
func ParseMemoryLimit(s string) (MemoryLimit, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	switch {
	case err == nil && v >= 0 && v <= 1:
		return MemoryLimit{Fraction: v}, nil
	case !percent:
		n, err := bytesize.Parse(s)
		if err == nil && n > 0 {
			return MemoryLimit{Bytes: n}, nil
		}
	}
	return MemoryLimit{}, fmt.Errorf("realizar: %w: %.40q is not an amount of device memory; want bytes, such as 8GiB, or a fraction, such as 0.5 or 50%%", ErrOptions, s)
}

// String returns l in the syntax of [ParseMemoryLimit]: "8589934592b", "50%", or "0" for no limit.
func (l MemoryLimit) String() string {
	switch {
	case l.Fraction > 0:
		return strconv.FormatFloat(100*l.Fraction, 'g', -1, 64) + "%"
	case l.Bytes > 0:
		return strconv.FormatInt(l.Bytes, 10) + "b"
	}
	return "0"
}

// Of returns the limit in bytes for a device with total bytes. It is 0 if there is no limit, or if
// l is a fraction and total is 0.
func (l MemoryLimit) Of(total int64) int64 {
	if l.Fraction > 0 && total > 0 {
		return max(1, int64(l.Fraction*float64(total)))
	}
	return l.Bytes
}

// any reports whether there is a limit.
func (l MemoryLimit) any() bool { return l != MemoryLimit{} }

func (l MemoryLimit) validate() error {
	switch {
	case l.Bytes < 0:
		return fmt.Errorf("realizar: %w: %d bytes of the device's memory; want 1 or more, or 0 for what is free", ErrOptions, l.Bytes)
	case l.Fraction < 0 || l.Fraction > 1 || math.IsNaN(l.Fraction):
		return fmt.Errorf("realizar: %w: a fraction %g of the device's memory; want 0 to 1", ErrOptions, l.Fraction)
	case l.Bytes > 0 && l.Fraction > 0:
		return fmt.Errorf("realizar: %w: %d bytes of the device's memory and a fraction %g of it; want one of them", ErrOptions, l.Bytes, l.Fraction)
	}
	return nil
}

// StreamWeights says whether weights may be kept in host memory and copied to the device when a
// step needs them (weight streaming).
type StreamWeights uint8

const (
	// StreamAuto streams the weights for which the device has no room besides the KV cache of one
	// answer. The answer has [Options.Context] tokens, or 4096 if that is 0.
	StreamAuto StreamWeights = iota
	// StreamAlways streams all weights that can be streamed.
	StreamAlways
	// StreamNever streams no weights. A model that does not fit is an error.
	StreamNever
)

var streamWeightsNames = []string{"auto", "always", "never"}

// String returns "auto", "always" or "never".
func (s StreamWeights) String() string { return nameOf("StreamWeights", s, streamWeightsNames) }

// ParseStreamWeights parses "auto", "always" or "never"; "" is "auto". The error wraps
// [ErrOptions].
func ParseStreamWeights(s string) (StreamWeights, error) {
	return parseName[StreamWeights]("weights are to stream", s, streamWeightsNames)
}
