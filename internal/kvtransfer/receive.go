package kvtransfer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"time"
)

// Check returns an error if o is not signed for pages of that name.
func (p *Peer) Check(o *Offer, name Name) error {
	_, err := o.id(p.config.Key, name)
	return err
}

// Fetch fills pages with those of an offer that are not of the first skip tokens. The name must be
// that of the pages. After an error, the pages have any contents.
func (p *Peer) Fetch(ctx context.Context, o *Offer, name Name, skip int, pages [][]byte) error {
	begun := time.Now()
	n := size(pages)
	err := p.fetch(ctx, o, name, skip, pages)
	p.counters.received.add(n, time.Since(begun), err)
	log, level := p.config.Logger, slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("peer", net.JoinHostPort(o.Host, strconv.Itoa(o.Port))), slog.Int("tokens", o.Tokens), slog.Int("cached", skip),
		slog.Int64("bytes", n), slog.Duration("time", time.Since(begun)),
	}
	if err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	log.LogAttrs(ctx, level, "pages received", attrs...)
	return err
}

func (p *Peer) fetch(ctx context.Context, o *Offer, name Name, skip int, pages [][]byte) error {
	id, err := o.id(p.config.Key, name)
	if err != nil {
		return err
	}
	if skip < 0 || skip > math.MaxInt32 {
		return fmt.Errorf("%d tokens to skip; want 0 to %d", skip, math.MaxInt32)
	}
	ctx, stop := p.closing(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit(size(pages)))
	defer cancel()
	dialer := net.Dialer{Timeout: p.config.Stall}
	c, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all is received, or the transfer has failed
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	err = p.receiveOn(ctx, c, o.TLS, id, skip, pages)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (p *Peer) receiveOn(ctx context.Context, c net.Conn, secured bool, id offerID, skip int, pages [][]byte) error {
	if err := c.SetDeadline(time.Now().Add(p.config.Stall)); err != nil {
		return err
	}
	var config *tls.Config
	if secured {
		// The peers prove to each other that they have the key, bound to this session.
		config = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13} //nolint:gosec // see the handshake
	}
	c, binding, err := upgrade(ctx, c, config, tls.Client)
	if err != nil {
		return err
	}
	from, err := call(c, p.config.Key, binding, p.config.Stall)
	if err != nil {
		return err
	}
	return from.receivePages(id, skip, pages)
}

// receivePages wants an offer and receives all frames of the transfer.
func (c *channel) receivePages(id offerID, skip int, pages [][]byte) error {
	if err := c.send(want, id[:], binary.BigEndian.AppendUint32(nil, uint32(skip))); err != nil {
		return err
	}
	var given [giveBytes]byte
	if err := c.receive(give, given[:]); err != nil {
		return err
	}
	if n := binary.BigEndian.Uint64(given[:]); n != uint64(size(pages)) {
		return fmt.Errorf("the sender gives %d bytes; want %d: it has pages of another form", n, size(pages))
	}
	if err := eachFrame(pages, func(parts [][]byte) error { return c.receive(data, parts...) }); err != nil {
		return err
	}
	if err := c.receiveEnd(); err != nil {
		return err
	}
	_ = c.send(done) // the sender releases the pages in any case
	return nil
}
