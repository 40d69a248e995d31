package kvtransfer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"log/slog"
	"net"
	"time"
)

// serve makes one transfer on c.
func (p *Peer) serve(c net.Conn) {
	begun := time.Now()
	n, err := p.sendOn(c)
	p.counters.sent.add(n, time.Since(begun), err)
	log, level := p.config.Logger, slog.LevelInfo
	attrs := []slog.Attr{slog.String("peer", c.RemoteAddr().String()), slog.Int64("bytes", n), slog.Duration("time", time.Since(begun))}
	if err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	log.LogAttrs(p.ctx, level, "pages sent", attrs...)
}

func (p *Peer) sendOn(c net.Conn) (n int64, err error) {
	if err := c.SetDeadline(time.Now().Add(p.config.Stall)); err != nil {
		return 0, err
	}
	c, binding, err := upgrade(p.ctx, c, p.config.TLS, tls.Server)
	if err != nil {
		return 0, err
	}
	to, err := answer(c, p.config.Key, binding, p.config.Stall)
	if err != nil {
		return 0, err
	}
	var wanted [wantBytes]byte
	if err := to.receive(want, wanted[:]); err != nil {
		return 0, err
	}
	h := p.take(offerID(wanted[:]))
	if h == nil {
		_ = to.send(refuse) // the peer has gone, or will see
		return 0, errGone
	}
	defer h.pages.Release()
	skip := binary.BigEndian.Uint32(wanted[len(offerID{}):])
	err = h.pages.Read(p.ctx, int(skip), func(ctx context.Context, pages [][]byte) error {
		n = size(pages)
		ctx, cancel := context.WithTimeout(ctx, limit(n))
		defer cancel()
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		err := to.sendPages(pages)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	})
	return n, err
}

// sendPages sends all frames of a transfer from give on and waits for the receiver.
func (c *channel) sendPages(pages [][]byte) error {
	if err := c.send(give, binary.BigEndian.AppendUint64(nil, uint64(size(pages)))); err != nil {
		return err
	}
	if err := eachFrame(pages, func(parts [][]byte) error { return c.send(data, parts...) }); err != nil {
		return err
	}
	if err := c.sendEnd(); err != nil {
		return err
	}
	return noEOF(c.receive(done))
}
