package arch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/modelfile"
)

// config reads a file's metadata. The first value that is missing or of the
// wrong type is kept as an error, so that a specification reads as a list.
type config struct {
	m    *modelfile.Meta
	gguf bool
	name string            // of the architecture: the prefix of GGUF's keys
	keys map[string]string // the architecture's own names of keys

	defaults map[string]int // of keys that config.json lacks
	ffn      int            // see architecture.ffn

	err error
}

func (c *config) failf(format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, a...))
	}
}

// key is the full name: GGUF puts the architecture before it, and in config.json some
// architectures have names of their own, which go before the common ones.
func (c *config) key(key string) string {
	if c.gguf {
		return c.name + "." + key
	}
	if own, ok := c.keys[key]; ok && (c.m.Type(own) != "" || c.m.Type(key) == "") {
		return own
	}
	return key
}

// has reports whether key has a value; JSON's null is none.
func (c *config) has(key string) bool {
	t := c.m.Type(c.key(key))
	return t != "" && t != "null"
}

// largest is above any length of a real model, and small enough that the
// product of two lengths fits an int.
const largest = 1 << 30

// integer is the number of at least 1 under key, or def when there is none; a
// negative def makes the key required.
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

// each is the number of at least 1 under key, or def, and where there is a list of one
// for each layer that list besides the largest of its numbers.
func (c *config) each(key string, layers, def int) (int, []int) {
	list, ok := c.m.Ints(c.key(key))
	if _, single := c.m.Int(c.key(key)); single || !ok {
		return c.integer(key, def), nil
	}
	if len(list) != layers {
		c.failf("%s has %d numbers for %d layers", c.key(key), len(list), layers)
		return max(def, 1), nil
	}
	var all []int
	for i, n := range list {
		if n < 1 || n > largest {
			c.failf("%s[%d] is %d, want 1 to %d", c.key(key), i, n, largest)
			return max(def, 1), nil
		}
		all = append(all, int(n))
	}
	return slices.Max(all), all
}

// number is the positive number under key, or def when there is none; a
// negative def makes the key required.
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

// positive reports whether f is a positive number that a product with others leaves
// in range.
func positive(f float64) bool { return f > 0 && f < 1e30 }

// optional is the number under key; 0, which Python takes for nothing, where
// there is none.
func (c *config) optional(key string) float64 {
	if f, ok := c.m.Float(c.key(key)); ok && f == 0 {
		return 0
	}
	return c.number(key, 0)
}

// softcap is the number under key, or def when there is none, and 0, which caps nothing,
// where it is null.
func (c *config) softcap(key string, def float64) float64 {
	if c.m.Type(c.key(key)) == "null" {
		return 0
	}
	return c.number(key, def)
}

// hasAny reports whether there is a key that begins so.
func (c *config) hasAny(prefix string) bool {
	return slices.ContainsFunc(c.m.Keys(), func(key string) bool { return strings.HasPrefix(key, c.key(prefix)) })
}

// numbers is the list of n positive numbers under key.
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

// text is the string under key, or def when there is none.
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

// flag is the truth value under key, or def when there is none.
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

// only fails where the truth value under key is not the one that is supported.
func (c *config) only(key string, supported bool) {
	if v := c.flag(key, supported); v != supported {
		c.failf("%s is %v; supported is %v", c.key(key), v, supported)
	}
}
