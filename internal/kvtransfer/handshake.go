package kvtransfer

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The handshake, of which the sender's side speaks first:
//
//	sender     magic, version, 32 random bytes
//	receiver   magic, version, 32 random bytes, HMAC-SHA256(key, "receiver", all bytes so far)
//	sender     HMAC-SHA256(key, "sender", all bytes so far)
//
// So a sender proves that it has the key only to a receiver that has proved it first. Over TLS, the
// bytes so far begin with the session's channel binding (RFC 9266), so that nobody in between can
// relay the proofs.
const (
	magic   = "RZKV"
	version = 1

	helloBytes = len(magic) + 4 + 32
	macBytes   = sha256.Size
)

// ErrKey reports a peer that does not have the key.
var ErrKey = errors.New("the peer has another key")

// A channel is a connection to a peer that has the key.
type channel struct {
	net.Conn
	stall   time.Duration
	session []byte // a key that only the two peers know
	sent    uint32 // frames
	got     uint32
	sum     interface { // of all frames so far, see frame.go
		io.Writer
		Sum([]byte) []byte
	}
}

// upgrade returns c, or c over TLS if config is not nil, and the session's channel binding.
func upgrade(ctx context.Context, c net.Conn, config *tls.Config, side func(net.Conn, *tls.Config) *tls.Conn) (net.Conn, []byte, error) {
	if config == nil {
		return c, nil, nil
	}
	t := side(c, config)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	state := t.ConnectionState()
	binding, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
	return t, binding, err
}

// answer is the sender's side of the handshake.
func answer(c net.Conn, key, binding []byte, stall time.Duration) (*channel, error) {
	if err := c.SetDeadline(time.Now().Add(stall)); err != nil {
		return nil, err
	}
	transcript := append([]byte{}, binding...)
	transcript = append(transcript, hello()...)
	if _, err := c.Write(transcript[len(binding):]); err != nil {
		return nil, err
	}
	var got [helloBytes + macBytes]byte
	if _, err := io.ReadFull(c, got[:]); err != nil {
		return nil, err
	}
	if err := checkHello(got[:helloBytes]); err != nil {
		return nil, err
	}
	transcript = append(transcript, got[:helloBytes]...)
	if !hmac.Equal(got[helloBytes:], prove(key, "receiver", transcript)) {
		return nil, ErrKey
	}
	if _, err := c.Write(prove(key, "sender", transcript)); err != nil {
		return nil, err
	}
	return newChannel(c, key, transcript, stall), nil
}

// call is the receiver's side of the handshake.
func call(c net.Conn, key, binding []byte, stall time.Duration) (*channel, error) {
	if err := c.SetDeadline(time.Now().Add(stall)); err != nil {
		return nil, err
	}
	var got [helloBytes]byte
	if _, err := io.ReadFull(c, got[:]); err != nil {
		return nil, err
	}
	if err := checkHello(got[:]); err != nil {
		return nil, err
	}
	transcript := append(append([]byte{}, binding...), got[:]...)
	own := hello()
	transcript = append(transcript, own...)
	if _, err := c.Write(append(own, prove(key, "receiver", transcript)...)); err != nil {
		return nil, err
	}
	var mac [macBytes]byte
	if _, err := io.ReadFull(c, mac[:]); err != nil {
		return nil, fmt.Errorf("%w, or has gone: %w", ErrKey, err)
	}
	if !hmac.Equal(mac[:], prove(key, "sender", transcript)) {
		return nil, ErrKey
	}
	return newChannel(c, key, transcript, stall), nil
}

func newChannel(c net.Conn, key, transcript []byte, stall time.Duration) *channel {
	session := prove(key, "session", transcript)
	return &channel{Conn: c, stall: stall, session: session, sum: hmac.New(sha256.New, session)}
}

func hello() []byte {
	b := binary.BigEndian.AppendUint32([]byte(magic), version)
	random := make([]byte, helloBytes-len(b))
	_, _ = rand.Read(random) // it never fails
	return append(b, random...)
}

func checkHello(b []byte) error {
	if string(b[:len(magic)]) != magic {
		return errors.New("the peer speaks another protocol")
	}
	if v := binary.BigEndian.Uint32(b[len(magic):]); v != version {
		return fmt.Errorf("the peer speaks version %d of the protocol; want %d: run the same version of realizar on both sides", v, version)
	}
	return nil
}

// prove returns a MAC of the transcript for a purpose.
func prove(key []byte, purpose string, transcript []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("realizar kv transfer " + purpose + "\x00"))
	m.Write(transcript)
	return m.Sum(nil)
}
