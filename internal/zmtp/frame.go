package zmtp

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The bits of a frame's flags.
const (
	moreFrames = 1 << iota
	longFrame  // the length has 8 bytes
	isCommand
)

// Bounds of what a peer sends. Subscriptions and requests are short.
const (
	mostFrameBytes = 1024
	mostFrames     = 8
)

// A frame is a part of a message, or a command.
type frame struct {
	flags byte
	body  []byte
}

// readFrame reads the next frame. It is an error if the frame is longer than mostFrameBytes.
func readFrame(r io.Reader) (frame, error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return frame{}, err
	}
	n := uint64(head[1])
	if head[0]&longFrame != 0 {
		if _, err := io.ReadFull(r, head[2:]); err != nil {
			return frame{}, err
		}
		n = binary.BigEndian.Uint64(head[1:])
	}
	if head[0]&^(moreFrames|longFrame|isCommand) != 0 || n > mostFrameBytes {
		return frame{}, fmt.Errorf("zmtp: a frame with flags %#x and %d bytes; at most %d bytes are accepted", head[0], n, mostFrameBytes)
	}
	f := frame{head[0], make([]byte, n)}
	_, err := io.ReadFull(r, f.body)
	return f, err
}

// appendFrame appends a frame to b.
func appendFrame(b []byte, flags byte, body []byte) []byte {
	if len(body) < 256 {
		b = append(b, flags, byte(len(body)))
	} else {
		b = binary.BigEndian.AppendUint64(append(b, flags|longFrame), uint64(len(body)))
	}
	return append(b, body...)
}
