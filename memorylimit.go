package realizar

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/bytesize"
)

// A MemoryLimit is how much of a device's memory a model may take: a number of bytes,
// or a fraction of all that the device has. The zero MemoryLimit is what is free.
type MemoryLimit struct {
	Bytes    int64
	Fraction float64 // of the whole, 0 to 1; beside Bytes it is an error
}

// ParseMemoryLimit reads a number of bytes with its unit, "8GiB" for example, or a
// fraction of the device's memory: "0.5", which is "50%". A number without a unit is
// bytes where it is above 1.
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
	return MemoryLimit{}, fmt.Errorf("realizar: %w: %.40q is no part of a device's memory, want bytes, such as 8GiB, or a fraction, such as 0.5 or 50%%", ErrOptions, s)
}

// String is what [ParseMemoryLimit] reads: "8589934592b", "50%", or "0" for no limit.
func (l MemoryLimit) String() string {
	switch {
	case l.Fraction > 0:
		return strconv.FormatFloat(100*l.Fraction, 'g', -1, 64) + "%"
	case l.Bytes > 0:
		return strconv.FormatInt(l.Bytes, 10) + "b"
	}
	return "0"
}

// Of is the limit in bytes where a device has total; 0: there is none, or nobody knows
// of what it is a fraction.
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

// StreamWeights says whether weights may lie in the host's memory and come to the
// device when they are needed.
type StreamWeights uint8

const (
	// StreamAuto streams what the device has no room for beside the cache of one
	// answer, of the Context that was asked for or of 4096 tokens.
	StreamAuto StreamWeights = iota
	// StreamAlways streams all that can.
	StreamAlways
	// StreamNever streams nothing: what the device has no room for is an error.
	StreamNever
)

var streamWeightsNames = []string{"auto", "always", "never"}

// String is "auto", "always" or "never".
func (s StreamWeights) String() string { return nameOf("StreamWeights", s, streamWeightsNames) }

// ParseStreamWeights reads "auto", "always" or "never"; "" is "auto".
func ParseStreamWeights(s string) (StreamWeights, error) {
	return parseName[StreamWeights]("weights are to stream", s, streamWeightsNames)
}
