package jinja

import (
	"math"
	"strconv"
	"strings"
)

// A Dict is a mapping in insertion order. Keys are equal as in Python: 1, 1.0 and True are one key.
type Dict struct {
	entries []entry
	index   map[dictKey]int // only for more than linearDict entries
}

type entry struct {
	key   Value
	value Value
	hash  dictKey
}

// linearDict is the number of entries up to which a linear search is faster than a map.
const linearDict = 8

func (*Dict) typeName() string { return "dict" }

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{} }

// Len returns the number of entries.
func (d *Dict) Len() int { return len(d.entries) }

// Set stores v under a key that counts as the caller's text. An existing key keeps its position.
func (d *Dict) Set(key string, v Value) {
	k := String(key, false)
	d.put(stringKey(k.s), k, v)
}

// Get returns the value under key.
func (d *Dict) Get(key string) (Value, bool) { return d.get(stringKey(key)) }

func (d *Dict) find(k dictKey) int {
	if d.index != nil {
		if i, ok := d.index[k]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if d.entries[i].hash == k {
			return i
		}
	}
	return -1
}

func (d *Dict) get(k dictKey) (Value, bool) {
	if i := d.find(k); i >= 0 {
		return d.entries[i].value, true
	}
	return nil, false
}

func (d *Dict) put(k dictKey, key, v Value) {
	if i := d.find(k); i >= 0 {
		d.entries[i].value = v
		return
	}
	d.entries = append(d.entries, entry{key, v, k})
	switch n := len(d.entries); {
	case d.index != nil:
		d.index[k] = n - 1
	case n > linearDict:
		d.index = make(map[dictKey]int, 2*n)
		for i := range d.entries {
			d.index[d.entries[i].hash] = i
		}
	}
}

// remove removes an entry from a dict of keyword arguments.
func (in *interp) remove(d *Dict, key string) (Value, bool) {
	in.probe(stringKey(key))
	i := d.find(stringKey(key))
	if i < 0 {
		return nil, false
	}
	in.rehash(d)
	v := d.entries[i].value
	rest := d.entries
	d.entries, d.index = nil, nil
	for j, e := range rest {
		if j != i {
			d.put(e.hash, e.key, e.value)
		}
	}
	return v, true
}

// probe charges a look-up of k.
func (in *interp) probe(k dictKey) { in.step(6 + len(k.text)/bytesPerStep) }

// rehash charges making a dict with the entries of d.
func (in *interp) rehash(d *Dict) {
	in.items(3 * d.Len())
	for i := range d.entries {
		in.probe(d.entries[i].hash)
	}
}

func (in *interp) clone(d *Dict) *Dict {
	in.rehash(d)
	out := &Dict{entries: append([]entry(nil), d.entries...)}
	if d.index != nil {
		out.index = make(map[dictKey]int, len(d.index))
		for k, i := range d.index {
			out.index[k] = i
		}
	}
	return out
}

// set stores v under any hashable key.
func (in *interp) set(d *Dict, key, v Value) {
	k := in.hash(key)
	in.items(3)
	d.put(k, key, v)
}

// A dictKey is equal for two values if and only if Python treats them as the same key.
type dictKey struct {
	kind byte
	num  int64
	text string
	ptr  any
}

func stringKey(s string) dictKey { return dictKey{kind: 's', text: s} }

// hash returns the key under which v is stored. Mutable containers have no key. It also charges the
// look-up.
func (in *interp) hash(v Value) dictKey {
	k, ok := in.tryHash(v)
	if !ok {
		panic(typeErrorf("unhashable type: '%s'", v.typeName()))
	}
	return k
}

func (in *interp) tryHash(v Value) (dictKey, bool) {
	k := in.hashAt(v, 0)
	in.probe(k)
	return k, k.kind != 0
}

// hashAt is the zero key for what has none.
func (in *interp) hashAt(v Value, depth int) dictKey {
	nesting(depth)
	in.step(1)
	switch v := v.(type) {
	case *Str:
		return stringKey(v.s)
	case Bool:
		if v {
			return dictKey{kind: 'n', num: 1}
		}
		return dictKey{kind: 'n'}
	case Int:
		if v.wide == "" {
			return dictKey{kind: 'n', num: v.small}
		}
		return dictKey{kind: 'b', text: v.wide}
	case Float:
		if v.f == math.Trunc(v.f) && v.f >= -1<<63 && v.f < 1<<63 {
			return dictKey{kind: 'n', num: int64(v.f)}
		}
		return dictKey{kind: 'f', num: int64(math.Float64bits(v.f))}
	case noneValue:
		return dictKey{kind: '0'}
	case *undefined:
		return dictKey{kind: 'u'}
	case *Tuple:
		var b strings.Builder
		for _, item := range v.items {
			k := in.hashAt(item, depth+1)
			if k.kind == 0 {
				return k
			}
			in.grow(len(k.text) + 24)
			b.WriteByte(k.kind)
			b.WriteString(strconv.FormatInt(k.num, 36))
			b.WriteByte(':')
			b.WriteString(strconv.Itoa(len(k.text)))
			b.WriteByte(':')
			b.WriteString(k.text)
			if k.ptr != nil {
				// A tuple with a function or the like in it is a
				// key only by its identity.
				return dictKey{kind: 'p', ptr: v}
			}
		}
		return dictKey{kind: 't', text: b.String()}
	case *List, *Dict, *dictView:
		in.step(stepsPerError)
		return dictKey{}
	}
	return dictKey{kind: 'p', ptr: v}
}
