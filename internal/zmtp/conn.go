// Package zmtp speaks the listening side of ZMTP 3.0, the wire protocol of ZeroMQ
// (rfc.zeromq.org/spec/23), without authentication (the NULL mechanism).
package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A Conn is a connection with a ZeroMQ socket. One goroutine may read and others write.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
	peer string

	mu  sync.Mutex
	out []byte // reused
}

// mostKept is the largest buffer that a connection keeps for the next message.
const mostKept = 64 << 10

// Bounds of the time for the handshake, and of the time in which a peer must take a message.
const (
	handshakeTime = 10 * time.Second
	writeTime     = 30 * time.Second
)

// Accept does the handshake on c. sockets maps the socket types that are accepted of the peer to
// the type that it is answered by. After an error the caller closes c.
func Accept(c net.Conn, sockets map[string]string) (*Conn, error) {
	z := &Conn{conn: c, in: bufio.NewReaderSize(c, mostFrameBytes)}
	if err := c.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, err
	}
	if err := z.greet(); err != nil {
		return nil, err
	}
	f, err := readFrame(z.in)
	if err != nil {
		return nil, err
	}
	properties, ok := command(f, "READY")
	if z.peer, err = socketType(properties); !ok || err != nil {
		return nil, fmt.Errorf("zmtp: the peer begins with %q, not with the command READY (%w)", f.body, err)
	}
	own, ok := sockets[z.peer]
	if !ok {
		reason := "no socket here takes " + z.peer
		_, _ = c.Write(appendFrame(nil, isCommand, append([]byte("\x05ERROR"+string(rune(len(reason)))), reason...)))
		return nil, errors.New("zmtp: " + reason)
	}
	ready := []byte("\x05READY\x0bSocket-Type")
	ready = append(binary.BigEndian.AppendUint32(ready, uint32(len(own))), own...)
	if _, err := c.Write(appendFrame(nil, isCommand, ready)); err != nil {
		return nil, err
	}
	return z, c.SetDeadline(time.Time{})
}

// greet exchanges greetings: a signature, the version, the mechanism in 20 bytes, whether the
// speaker is a server, and padding up to 64 bytes.
func (z *Conn) greet() error {
	var own, theirs [64]byte
	copy(own[:], "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL")
	if _, err := z.conn.Write(own[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(z.in, theirs[:]); err != nil {
		return err
	}
	mechanism := string(bytes.TrimRight(theirs[12:32], "\x00"))
	if theirs[0] != 0xff || theirs[9] != 0x7f || theirs[10] < 3 || mechanism != "NULL" {
		return fmt.Errorf("zmtp: the peer's greeting is % x; want ZMTP 3 with the NULL mechanism", theirs[:32])
	}
	return nil
}

// command returns the data of a command frame with that name.
func command(f frame, name string) (data []byte, ok bool) {
	if f.flags&^longFrame != isCommand || len(f.body) <= len(name) || int(f.body[0]) != len(name) || string(f.body[1:1+len(name)]) != name {
		return nil, false
	}
	return f.body[1+len(name):], true
}

// socketType finds Socket-Type in the properties of READY.
func socketType(b []byte) (string, error) {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+4 {
			break
		}
		name, size := b[1:1+n], binary.BigEndian.Uint32(b[1+n:])
		if b = b[1+n+4:]; uint64(len(b)) < uint64(size) {
			break
		}
		if bytes.EqualFold(name, []byte("Socket-Type")) {
			return string(b[:size]), nil
		}
		b = b[size:]
	}
	return "", errors.New("a property Socket-Type is missing")
}

// Peer returns the type of the peer's socket, such as "SUB".
func (z *Conn) Peer() string { return z.peer }

// Read returns the frames of the next message. A command that subscribes or cancels a subscription
// (ZMTP 3.1) is returned as the message of ZMTP 3.0: the byte 1 or 0 and the topic. Read answers
// PING. It is an error if a frame is longer than 1024 bytes or a message has more than 8 frames.
func (z *Conn) Read() (frames [][]byte, err error) {
	for {
		f, err := readFrame(z.in)
		if err != nil {
			return nil, err
		}
		if f.flags&isCommand == 0 {
			if frames = append(frames, f.body); f.flags&moreFrames == 0 {
				return frames, nil
			}
			if len(frames) == mostFrames {
				return nil, fmt.Errorf("zmtp: a message of more than %d frames", mostFrames)
			}
			continue
		}
		if topic, ok := command(f, "SUBSCRIBE"); ok {
			return [][]byte{append([]byte{1}, topic...)}, nil
		}
		if topic, ok := command(f, "CANCEL"); ok {
			return [][]byte{append([]byte{0}, topic...)}, nil
		}
		if data, ok := command(f, "PING"); ok && len(data) >= 2 { // a time to live in 2 bytes, and a context to return
			if err := z.send(isCommand, append([]byte("\x04PONG"), data[2:]...)); err != nil {
				return nil, err
			}
		}
	}
}

// Write sends a message. It is an error if the peer does not take it within 30 seconds.
func (z *Conn) Write(frames ...[]byte) error { return z.send(0, frames...) }

func (z *Conn) send(flags byte, frames ...[]byte) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.out = z.out[:0]
	for i, body := range frames {
		if i < len(frames)-1 {
			z.out = appendFrame(z.out, flags|moreFrames, body)
		} else {
			z.out = appendFrame(z.out, flags, body)
		}
	}
	if err := z.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	_, err := z.conn.Write(z.out)
	if cap(z.out) > mostKept {
		z.out = nil
	}
	return err
}

// Close closes the connection.
func (z *Conn) Close() error { return z.conn.Close() }
