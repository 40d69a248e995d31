package zmtp_test

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/zmtp"
	"github.com/realizar/realizar/internal/zmtp/zmtptest"
)

// serve accepts one connection and passes it, or the error, to handle.
func serve(t *testing.T, handle func(*zmtp.Conn, error)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		handle(zmtp.Accept(c, map[string]string{"SUB": "PUB", "DEALER": "ROUTER"}))
	}()
	t.Cleanup(func() {
		<-ended
		_ = l.Close()
	})
	return l.Addr().String()
}

// Messages arrive as they were sent, in both directions and in frames of all lengths.
func TestMessages(t *testing.T) {
	sent := [][]byte{{}, []byte("a"), make([]byte, 255), make([]byte, 256), make([]byte, 200_000)}
	address := serve(t, func(z *zmtp.Conn, err error) {
		if err != nil || z.Peer() != "DEALER" {
			t.Errorf("%v: the peer is %s", err, z.Peer())
			return
		}
		for want := 0; want < 3; want++ {
			frames, err := z.Read()
			if err != nil || len(frames) != want+1 || string(frames[want]) != strings.Repeat("x", want) {
				t.Errorf("message %d is %q (%v)", want, frames, err)
			}
		}
		for n := range sent {
			if err := z.Write(sent[:n+1]...); err != nil {
				t.Error(err)
			}
		}
	})
	c, err := zmtptest.Dial(address, "DEALER", "ROUTER")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n := range 3 {
		frames := slices.Repeat([]string{"y"}, n+1)
		frames[n] = strings.Repeat("x", n)
		if err := c.Send(frames...); err != nil {
			t.Fatal(err)
		}
	}
	for n := range sent {
		frames, err := c.Receive()
		if err != nil || !slices.EqualFunc(frames, sent[:n+1], slices.Equal) {
			t.Errorf("message %d has %d frames (%v)", n, len(frames), err)
		}
	}
}

// Subscriptions of ZMTP 3.1 are read as those of 3.0, and PING is answered.
func TestCommands(t *testing.T) {
	address := serve(t, func(z *zmtp.Conn, err error) {
		for _, want := range []string{"\x01kv@", "\x00kv@"} {
			frames, err := z.Read()
			if err != nil || len(frames) != 1 || string(frames[0]) != want {
				t.Errorf("read %q (%v), want %q", frames, err, want)
			}
		}
	})
	c, err := zmtptest.Dial(address, "SUB", "PUB")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("\x04\x0d\x09SUBSCRIBEkv@\x04\x09\x04PING\x00\x01ab\x04\x0a\x06CANCELkv@")); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Command(); err != nil || got != "\x04PONGab" {
		t.Errorf("PING is answered with %q (%v)", got, err)
	}
}

// A peer that does not keep to the protocol, or sends too much, gets an error and costs no memory.
func TestHostilePeers(t *testing.T) {
	long := binary.BigEndian.AppendUint64([]byte{2}, 1<<62)
	begin := append(zmtptest.Greeting(), zmtptest.Ready("SUB")...)
	for what, test := range map[string]struct {
		bytes []byte
		want  string
	}{
		"HTTP":             {append([]byte("GET / HTTP/1.1\r\n"), make([]byte, 64)...), "greeting"},
		"another security": {append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00CURVE"), make([]byte, 47)...), "greeting"},
		"an old version":   {append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01\x00NULL"), make([]byte, 48)...), "greeting"},
		"no READY":         {append(zmtptest.Greeting(), 0, 1, 'x'), "READY"},
		"READY cut off":    {append(zmtptest.Greeting(), "\x04\x0a\x05READY\xff\x00\x00\x00"...), "Socket-Type"},
		"an unknown type":  {append(zmtptest.Greeting(), zmtptest.Ready("PULL")...), "PULL"},
		"a huge frame":     {slices.Concat(begin, long), "at most 1024 bytes"},
		"unknown flags":    {slices.Concat(begin, []byte{0x80, 0}), "flags"},
		"many frames":      {slices.Concat(begin, []byte(strings.Repeat("\x01\x00", 9))), "more than 8 frames"},
	} {
		t.Run(what, func(t *testing.T) {
			address := serve(t, func(z *zmtp.Conn, err error) {
				if err == nil {
					_, err = z.Read()
				}
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("the error is %v, want one with %q", err, test.want)
				}
			})
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write(test.bytes); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, c) // until the connection is closed
		})
	}
}
