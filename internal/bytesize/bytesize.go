// Package bytesize reads and writes numbers of bytes with units.
package bytesize

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Suffixes in lower case. A single letter is a power of two.
var units = []struct {
	name string
	size float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40},
	{"b", 1},
}

// Parse reads a number of bytes such as 8GiB, 512MiB, 1.5G or 4096.
func Parse(text string) (int64, error) {
	number, unit := strings.ToLower(strings.TrimSpace(text)), 1.0
	for _, u := range units {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.size
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if bytes := v * unit; err == nil && bytes >= 0 && bytes < math.MaxInt64 {
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("%.40q is not a size: want a number of bytes, such as 8GiB, 512MiB or 4G", text)
}

// Text returns n with about four digits and a unit: "1.5 GiB", "12 bytes".
func Text(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
