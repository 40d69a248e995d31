// Package zmtptest has a client of ZMTP 3.0 for tests.
package zmtptest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// A Client is a connected socket.
type Client struct{ net.Conn }

// Dial connects a socket of the given type, such as "SUB", and checks that the peer is of type
// wanted.
func Dial(address, socket, wanted string) (*Client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	c := &Client{conn}
	if err := c.shake(socket, wanted); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// Greeting returns the bytes with which a connection begins.
func Greeting() []byte {
	return append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL"), make([]byte, 48)...)
}

// Ready returns the command READY of a socket.
func Ready(socket string) []byte {
	body := append([]byte("\x05READY\x08Identity\x00\x00\x00\x00\x0bSocket-Type\x00\x00\x00"), byte(len(socket)))
	body = append(body, socket...)
	return append([]byte{4, byte(len(body))}, body...)
}

func (c *Client) shake(socket, wanted string) error {
	if _, err := c.Write(append(Greeting(), Ready(socket)...)); err != nil {
		return err
	}
	greeting := make([]byte, 64)
	if _, err := io.ReadFull(c, greeting); err != nil {
		return err
	}
	flags, body, err := c.frame()
	if err != nil {
		return err
	}
	want := append([]byte("\x05READY\x0bSocket-Type\x00\x00\x00"), byte(len(wanted)))
	if want = append(want, wanted...); flags != 4 || string(body) != string(want) || greeting[10] != 3 {
		return fmt.Errorf("the peer greets with % x and says %d %q", greeting, flags, body)
	}
	return nil
}

// Send sends a message of frames shorter than 256 bytes.
func (c *Client) Send(frames ...string) error {
	var b []byte
	for i, f := range frames {
		more := byte(0)
		if i < len(frames)-1 {
			more = 1
		}
		b = append(append(b, more, byte(len(f))), f...)
	}
	_, err := c.Write(b)
	return err
}

// Receive returns the frames of the next message.
func (c *Client) Receive() (frames [][]byte, err error) {
	for {
		flags, body, err := c.frame()
		if err != nil {
			return nil, err
		}
		if flags&4 != 0 {
			return nil, fmt.Errorf("a command %q", body)
		}
		if frames = append(frames, body); flags&1 == 0 {
			return frames, nil
		}
	}
}

// Command returns the body of the next frame, which must be a command.
func (c *Client) Command() (string, error) {
	flags, body, err := c.frame()
	if err == nil && flags&4 == 0 {
		err = errors.New("a message")
	}
	return string(body), err
}

func (c *Client) frame() (flags byte, body []byte, err error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(c, head[:2]); err != nil {
		return 0, nil, err
	}
	n := uint64(head[1])
	if head[0]&2 != 0 {
		if _, err := io.ReadFull(c, head[2:]); err != nil {
			return 0, nil, err
		}
		n = binary.BigEndian.Uint64(head[1:])
	}
	body = make([]byte, n)
	_, err = io.ReadFull(c, body)
	return head[0], body, err
}
