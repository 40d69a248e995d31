package kvevents

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// decode reads a value of MessagePack: nil, uint64, float64, string or []any.
func decode(b []byte) (v any, rest []byte, err error) {
	size := func(n int) (uint64, []byte, error) {
		if len(b) < 1+n {
			return 0, nil, errors.New("cut off")
		}
		var wide [8]byte
		copy(wide[8-n:], b[1:1+n])
		return binary.BigEndian.Uint64(wide[:]), b[1+n:], nil
	}
	text := func(n uint64, rest []byte) (any, []byte, error) {
		if uint64(len(rest)) < n {
			return nil, nil, errors.New("cut off")
		}
		return string(rest[:n]), rest[n:], nil
	}
	array := func(n uint64, rest []byte) (any, []byte, error) {
		all := []any{}
		for range n {
			var item any
			if item, rest, err = decode(rest); err != nil {
				return nil, nil, err
			}
			all = append(all, item)
		}
		return all, rest, nil
	}
	if len(b) == 0 {
		return nil, nil, errors.New("cut off")
	}
	var n uint64
	switch c := b[0]; {
	case c < 0x80:
		return uint64(c), b[1:], nil
	case c >= 0x90 && c < 0xa0:
		return array(uint64(c&0xf), b[1:])
	case c >= 0xa0 && c < 0xc0:
		return text(uint64(c&0x1f), b[1:])
	case c == 0xc0:
		return nil, b[1:], nil
	case c == 0xcb:
		n, rest, err = size(8)
		return math.Float64frombits(n), rest, err
	case c >= 0xcc && c <= 0xcf:
		n, rest, err = size(1 << (c - 0xcc))
		return n, rest, err
	case c >= 0xd9 && c <= 0xdb:
		if n, rest, err = size(1 << (c - 0xd9)); err == nil {
			return text(n, rest)
		}
	case c == 0xdc || c == 0xdd:
		if n, rest, err = size(2 << (c - 0xdc)); err == nil {
			return array(n, rest)
		}
	default:
		err = fmt.Errorf("a value that begins with %#x", c)
	}
	return nil, nil, err
}

// field returns field i of an event, or nil if it is left out.
func field(e []any, i int) any {
	if i < len(e) {
		return e[i]
	}
	return nil
}

// An index is what follows from messages: for each page what was said of it.
type index map[page]string

// apply applies the events of a message.
func (x index) apply(payload []byte) error {
	v, rest, err := decode(payload)
	batch, ok := v.([]any)
	if err != nil {
		return err
	}
	if !ok || len(rest) > 0 || len(batch) != 3 {
		return fmt.Errorf("a batch is %v, with %d bytes after it", v, len(rest))
	}
	for _, v := range batch[1].([]any) {
		e := v.([]any)
		switch e[0] {
		case "AllBlocksCleared":
			clear(x)
		case "BlockRemoved":
			for _, hash := range e[1].([]any) {
				delete(x, pageOf(hash, field(e, 3), e[2]))
			}
		case "BlockStored":
			tokens, size := e[3].([]any), int(e[4].(uint64))
			parent := e[2]
			for i, hash := range e[1].([]any) {
				var salt any
				if extra, ok := field(e, 8).([]any); ok {
					salt = extra[i]
				}
				x[pageOf(hash, field(e, 9), e[6])] = describe(parent, tokens[i*size:(i+1)*size], salt, field(e, 10), field(e, 11))
				parent = hash
			}
		default:
			return fmt.Errorf("an unknown event %v", e)
		}
	}
	return nil
}

func pageOf(hash, group, medium any) page {
	n, _ := group.(uint64)
	return page{hash.(uint64), int(n), medium == "CPU"}
}

func describe(all ...any) string { return fmt.Sprint(all...) }
