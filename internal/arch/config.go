package arch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/modelfile"
)

// config reads a file's metadata. It keeps the first error, for a value that is missing or of the
// wrong type, so that reading a specification needs no error checks.
type config struct {
	m    *modelfile.Meta
	gguf bool
	name string // GGUF's prefix of the architecture's keys
	file *modelfile.File
	keys map[string]string // the architecture's own names of keys

	ggufKeys map[string]string // see architecture.ggufKeys

	defaults map[string]int // values of keys that config.json lacks
	ffn      int            // see architecture.ffn
	zeros    bool           // see architecture.zeros

	err error
}

func (c *config) failf(format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, a...))
	}
}

// key returns the full name of a key. GGUF's has the architecture as prefix. For config.json, the
// architecture's own names take precedence over the common ones.
func (c *config) key(key string) string {
	if c.gguf {
		return c.name + "." + cmp.Or(c.ggufKeys[key], key)
	}
	if own, ok := c.keys[key]; ok && (c.m.Type(own) != "" || c.m.Type(key) == "") {
		return own
	}
	return key
}

// has reports whether key has a value other than JSON's null.
func (c *config) has(key string) bool {
	t := c.m.Type(c.key(key))
	return t != "" && t != "null"
}

// largest is above any length of a real model, and small enough that the product of two lengths
// fits in an int.
const largest = 1 << 30

// integer returns the number under key, which must be at least 1. If there is none, it returns def;
// a negative def makes the key required.
func (c *config) integer(key string, def int) int {
	if !c.has(key) {
		if n, ok := c.defaults[key]; ok && !c.gguf {
			return n
		}
		if def < 0 {
			c.failf("%s is missing", c.key(key))
		}
		return def
	}
	n, ok := c.m.Int(c.key(key))
	if list, each := c.m.Ints(c.key(key)); !ok && each && len(slices.Compact(list)) == 1 {
		n, ok = list[0], true // the same for each layer
	}
	switch v, _ := c.m.Value(c.key(key)); {
	case !ok:
		c.failf("%s is of type %s, want one integer", c.key(key), c.m.Type(c.key(key)))
	case n < 1 || n > largest:
		c.failf("%s is %v, want 1 to %d", c.key(key), v, largest)
	default:
		return int(n)
	}
	return max(def, 1)
}

// each returns the number under key, which must be at least 1, or def if there is none. If the
// value is a list with a number for each layer, each returns the largest number and the list. Both
// may be 0 if c.zeros.
func (c *config) each(key string, layers, def int) (int, []int) {
	list, ok := c.m.Ints(c.key(key))
	least := 1
	if c.zeros {
		least = 0
	}
	if n, single := c.m.Int(c.key(key)); single && n == 0 && c.zeros {
		return 0, nil
	} else if single || !ok {
		return c.integer(key, def), nil
	}
	if len(list) != layers {
		c.failf("%s has %d numbers for %d layers", c.key(key), len(list), layers)
		return max(def, 1), nil
	}
	var all []int
	for i, n := range list {
		if n < int64(least) || n > largest {
			c.failf("%s[%d] is %d, want %d to %d", c.key(key), i, n, least, largest)
			return max(def, 1), nil
		}
		all = append(all, int(n))
	}
	return slices.Max(all), all
}

// number returns the positive number under key. If there is none, it returns def; a negative def
// makes the key required.
func (c *config) number(key string, def float64) float64 {
	if !c.has(key) {
		if def < 0 {
			c.failf("%s is missing", c.key(key))
		}
		return def
	}
	f, ok := c.m.Float(c.key(key))
	if !ok {
		c.failf("%s is of type %s, want a number", c.key(key), c.m.Type(c.key(key)))
	} else if !positive(f) {
		c.failf("%s is %v, want a positive number", c.key(key), f)
	}
	return f
}

// positive reports whether f is positive and small enough to be multiplied with similar numbers.
func positive(f float64) bool { return f > 0 && f < 1e30 }

// optional returns the number under key, or 0, which Python treats as missing.
func (c *config) optional(key string) float64 {
	if f, ok := c.m.Float(c.key(key)); ok && f == 0 {
		return 0
	}
	return c.number(key, 0)
}

// softcap returns the number under key, or def if there is no such key. It returns 0, which means
// no cap, if the value is null.
func (c *config) softcap(key string, def float64) float64 {
	if c.m.Type(c.key(key)) == "null" {
		return 0
	}
	return c.number(key, def)
}

// hasAny reports whether a key has this prefix.
func (c *config) hasAny(prefix string) bool {
	return slices.ContainsFunc(c.m.Keys(), func(key string) bool { return strings.HasPrefix(key, c.key(prefix)) })
}

// numbers returns the list of n positive numbers under key.
func (c *config) numbers(key string, n int) []float64 {
	list, ok := c.m.Floats(c.key(key))
	if !ok || len(list) != n {
		c.failf("%s: want a list of %d numbers, is %d of type %q", c.key(key), n, len(list), c.m.Type(c.key(key)))
		return make([]float64, n)
	}
	for i, f := range list {
		if !positive(f) {
			c.failf("%s[%d] is %v, want a positive number", c.key(key), i, f)
		}
	}
	return list
}

// text returns the string under key, or def if there is none.
func (c *config) text(key, def string) string {
	if !c.has(key) {
		return def
	}
	s, ok := c.m.String(c.key(key))
	if !ok {
		c.failf("%s is of type %s, want a string", c.key(key), c.m.Type(c.key(key)))
	}
	return s
}

// flag returns the boolean under key, or def if there is none.
func (c *config) flag(key string, def bool) bool {
	if !c.has(key) {
		return def
	}
	v, ok := c.m.Bool(c.key(key))
	if !ok {
		c.failf("%s is of type %s, want true or false", c.key(key), c.m.Type(c.key(key)))
	}
	return v
}

// only fails if the boolean under key is not supported.
func (c *config) only(key string, supported bool) {
	if v := c.flag(key, supported); v != supported {
		c.failf("%s is %v; supported is %v", c.key(key), v, supported)
	}
}
