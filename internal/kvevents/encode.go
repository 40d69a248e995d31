package kvevents

import (
	"encoding/binary"
	"math"

	"github.com/realizar/realizar"
)

// This file writes events in MessagePack (github.com/msgpack/msgpack, spec.md), in vLLM's layout of
// arrays. Trailing nulls of an event are left out.

// The media of blocks. The device's memory is GPU on a CPU as well: it is the first tier.
const (
	onDevice = "GPU"
	onHost   = "CPU"
)

// encode returns the payload of a message: the time in seconds since 1970, events, and the rank.
// Blocks that follow each other are joined into one event.
func encode(seconds float64, events []event) []byte {
	runs := runsOf(events)
	b := appendFloat(appendArray(make([]byte, 0, 64+128*len(events)), 3), seconds)
	b = appendArray(b, len(runs))
	for _, run := range runs {
		switch run[0].Change {
		case realizar.CacheStored:
			b = appendStored(b, run)
		case realizar.CacheRemoved:
			b = appendRemoved(b, run)
		default:
			b = appendString(appendArray(b, 1), "AllBlocksCleared")
		}
	}
	return appendUint(b, 0)
}

// runsOf cuts events into runs that one event of the protocol can describe: blocks of one pool and
// medium, each the parent of the next if they are stored.
func runsOf(events []event) (runs [][]event) {
	from := 0
	for i := 1; i <= len(events); i++ {
		if i < len(events) && follows(&events[i], &events[i-1]) {
			continue
		}
		runs = append(runs, events[from:i])
		from = i
	}
	return runs
}

func follows(e, o *event) bool {
	if e.Change != o.Change || e.Pool != o.Pool || e.Host != o.Host || e.Change == realizar.CacheCleared {
		return false
	}
	return e.Change == realizar.CacheRemoved || e.Parent == o.Hash
}

// appendStored appends BlockStored: hashes, parent, token ids, block size, number of the LoRA
// adapter, medium, name of the adapter; then extra keys if there is a salt; then number, kind and
// window of the pool if there are several.
func appendStored(b []byte, run []event) []byte {
	first := &run[0]
	fields := 8
	if first.Salt != "" {
		fields = 9
	}
	if first.Pools > 1 {
		fields = 11
		if window(first) > 0 {
			fields = 12
		}
	}
	b = appendHashes(appendString(appendArray(b, fields), "BlockStored"), run)
	if first.Parent == 0 {
		b = appendNil(b)
	} else {
		b = appendUint(b, first.Parent)
	}
	b = appendArray(b, len(run)*len(first.Tokens))
	for i := range run {
		for _, id := range run[i].Tokens {
			b = appendUint(b, uint64(id))
		}
	}
	b = appendNil(appendUint(b, uint64(len(first.Tokens))))
	b = appendNil(appendString(b, medium(first)))
	if fields > 8 {
		b = appendSalts(b, run)
	}
	if fields > 9 {
		b = appendString(appendUint(b, uint64(first.Pool)), kind(first))
	}
	if fields > 11 {
		b = appendUint(b, uint64(window(first)))
	}
	return b
}

// appendRemoved appends BlockRemoved: hashes, medium, and if there are several the number of the
// pool.
func appendRemoved(b []byte, run []event) []byte {
	fields := 3
	if run[0].Pools > 1 {
		fields = 4
	}
	b = appendHashes(appendString(appendArray(b, fields), "BlockRemoved"), run)
	b = appendString(b, medium(&run[0]))
	if fields > 3 {
		b = appendUint(b, uint64(run[0].Pool))
	}
	return b
}

func appendHashes(b []byte, run []event) []byte {
	b = appendArray(b, len(run))
	for i := range run {
		b = appendUint(b, run[i].Hash)
	}
	return b
}

// appendSalts appends the extra keys of each block: the salt of the first of a request.
func appendSalts(b []byte, run []event) []byte {
	if run[0].Salt == "" {
		return appendNil(b)
	}
	b = appendString(appendArray(appendArray(b, len(run)), 1), run[0].Salt)
	for range run[1:] {
		b = appendNil(b)
	}
	return b
}

func medium(e *event) string {
	if e.Host {
		return onHost
	}
	return onDevice
}

// kind returns vLLM's name for what the layers of e's pool see.
func kind(e *event) string {
	switch {
	case e.Recurrent:
		return "mamba"
	case e.Chunk > 0:
		return "chunked_local_attention"
	case e.Window > 0:
		return "sliding_window"
	}
	return "full_attention"
}

func window(e *event) int {
	if e.Recurrent {
		return 0
	}
	return e.Window
}

func appendNil(b []byte) []byte { return append(b, 0xc0) }

func appendFloat(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(v))
}

func appendUint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<7:
		return append(b, byte(v))
	case v < 1<<8:
		return append(b, 0xcc, byte(v))
	case v < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(v))
	case v < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
}

func appendArray(b []byte, n int) []byte {
	switch {
	case n < 1<<4:
		return append(b, 0x90|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(n))
}

func appendString(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 1<<5:
		b = append(b, 0xa0|byte(n))
	case n < 1<<8:
		b = append(b, 0xd9, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}
