package kvtransfer

import (
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"
)

// A frame has a header of 16 bytes and a payload. The header, all big-endian:
//
//	0   kind (1 byte), zeros (3)
//	4   number of the frame among those of its direction, from 0 (4)
//	8   bytes of the payload (4)
//	12  CRC-32C of the first 12 bytes and the payload (4)
//
// All frames but end and done go into a MAC with the session's key, by their headers. It is the
// payload of end. So frames of another transfer, and frames left out or moved, are found; CRCs find
// damaged ones.
const headerBytes = 16

// A kind says what a frame is.
type kind uint8

const (
	want kind = iota + 1
	give
	refuse
	data
	end
	done
)

// The payloads. Those of data are dataBytes, except the last.
const (
	wantBytes = len(offerID{}) + 4
	giveBytes = 8
	dataBytes = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errFrame reports a frame that is damaged or out of order.
var errFrame = errors.New("damaged frame")

// send sends a frame whose payload is the parts.
func (c *channel) send(k kind, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	var h [headerBytes]byte
	h[0] = byte(k)
	binary.BigEndian.PutUint32(h[4:], c.sent)
	binary.BigEndian.PutUint32(h[8:], uint32(n))
	sum := crc32.Checksum(h[:12], castagnoli)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	binary.BigEndian.PutUint32(h[12:], sum)
	c.count(k, h[:])
	c.sent++
	if err := c.SetDeadline(time.Now().Add(c.stall)); err != nil {
		return err
	}
	all := append(net.Buffers{h[:]}, parts...)
	_, err := all.WriteTo(c.Conn)
	return err
}

// receive reads a frame of a kind with a payload that fills the parts. A refusal instead of it is an
// error.
func (c *channel) receive(k kind, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if err := c.SetDeadline(time.Now().Add(c.stall)); err != nil {
		return err
	}
	var h [headerBytes]byte
	if _, err := io.ReadFull(c.Conn, h[:]); err != nil {
		return err
	}
	if kind(h[0]) == refuse && k == give {
		parts, n = nil, 0
	} else if kind(h[0]) != k {
		return fmt.Errorf("%w: its kind is %d; want %d", errFrame, h[0], k)
	}
	if number, size := binary.BigEndian.Uint32(h[4:]), binary.BigEndian.Uint32(h[8:]); h[1]|h[2]|h[3] != 0 || number != c.got || uint64(size) != uint64(n) {
		return fmt.Errorf("%w: number %d with %d bytes; want number %d with %d", errFrame, number, size, c.got, n)
	}
	sum := crc32.Checksum(h[:12], castagnoli)
	for _, p := range parts {
		for len(p) > 0 { // while what was read is still in the processor's cache
			n, err := c.Read(p)
			sum = crc32.Update(sum, castagnoli, p[:n])
			if p = p[n:]; err != nil && len(p) > 0 {
				return noEOF(err)
			}
		}
	}
	if sum != binary.BigEndian.Uint32(h[12:]) {
		return fmt.Errorf("%w: its checksum is wrong", errFrame)
	}
	c.count(k, h[:])
	c.got++
	if kind(h[0]) == refuse {
		return errGone
	}
	return nil
}

// noEOF returns err, or if that is the end of a connection between frames, an error for the end in
// the middle of one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// count adds a frame to the MAC.
func (c *channel) count(k kind, header []byte) {
	if k != end && k != done {
		_, _ = c.sum.Write(header) // a hash never fails
	}
}

// sendEnd sends the MAC of all frames so far.
func (c *channel) sendEnd() error { return c.send(end, c.sum.Sum(nil)) }

// receiveEnd reads the MAC of all frames so far and verifies it.
func (c *channel) receiveEnd() error {
	got, want := make([]byte, macBytes), c.sum.Sum(nil)
	if err := c.receive(end, got); err != nil {
		return err
	}
	if !hmac.Equal(got, want) {
		return fmt.Errorf("%w: the MAC of the transfer is wrong", errFrame)
	}
	return nil
}

// eachFrame cuts pages into the payloads of data frames and calls do with the parts of each.
func eachFrame(pages [][]byte, do func(parts [][]byte) error) error {
	var parts [][]byte
	room := dataBytes
	for _, page := range pages {
		for len(page) > 0 {
			n := min(room, len(page))
			parts = append(parts, page[:n:n])
			page, room = page[n:], room-n
			if room == 0 {
				if err := do(parts); err != nil {
					return err
				}
				parts, room = parts[:0], dataBytes
			}
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return do(parts)
}

// size returns the number of bytes of pages.
func size(pages [][]byte) (n int64) {
	for _, p := range pages {
		n += int64(len(p))
	}
	return n
}
