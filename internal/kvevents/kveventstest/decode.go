package kveventstest

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
