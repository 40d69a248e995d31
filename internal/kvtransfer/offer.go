package kvtransfer

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// An offerID is a random number.
type offerID [16]byte

// An offer is a number of pages that are held until a peer has them, or until the lease ends.
type offer struct {
	pages Pages
	timer *time.Timer
}

// An Offer says where the pages of a prompt's first tokens are.
type Offer struct {
	Host   string
	Port   int
	Tokens int
	TLS    bool
	ID     string // names the offer and signs it
}

// ErrOffer reports an offer that is not of the same pages, or that is not signed with the key.
var ErrOffer = errors.New("the offer is of another prompt or model, or not signed with this key")

// errGone reports an offer that the sender does not hold any more.
var errGone = errors.New("the sender does not hold the pages any more")

// Offer holds the pages of a prompt's first tokens for one peer. Their name is also that of the
// prompt and of the model.
func (p *Peer) Offer(pages Pages, name Name, tokens int) (*Offer, error) {
	var id offerID
	_, _ = rand.Read(id[:]) // it never fails
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if len(p.offers) == mostOffers {
		p.counters.refused.Add(1)
		return nil, fmt.Errorf("%d offers of pages wait for receivers, which is the limit; the next is possible when one is taken or its lease of %v ends", mostOffers, p.config.Lease)
	}
	h := &offer{pages: pages}
	h.timer = time.AfterFunc(p.config.Lease, func() { p.expire(id, h) })
	p.offers[id] = h
	p.counters.offers.Add(1)
	o := &Offer{Host: p.config.Host, Port: p.config.Port, Tokens: tokens, TLS: p.config.TLS != nil}
	o.ID = base64.RawURLEncoding.EncodeToString(append(id[:], o.sign(p.config.Key, name, id)...))
	return o, nil
}

// sign returns the signature of o with a given id.
func (o *Offer) sign(key []byte, name Name, id offerID) []byte {
	b := append(append([]byte{}, name[:]...), id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(o.Port))
	b = binary.BigEndian.AppendUint64(b, uint64(o.Tokens))
	if o.TLS {
		b = append(b, "tls"...)
	}
	return prove(key, "offer", append(append(b, 0), o.Host...))
}

// id returns the id of o, which must be signed with the key for pages of that name.
func (o *Offer) id(key []byte, name Name) (id offerID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(o.ID)
	if err != nil || len(b) != len(id)+macBytes {
		return id, ErrOffer
	}
	copy(id[:], b)
	if !hmac.Equal(b[len(id):], o.sign(key, name, id)) {
		return id, ErrOffer
	}
	return id, nil
}

// expire releases an offer that nobody has wanted.
func (p *Peer) expire(id offerID, h *offer) {
	if p.take(id) == h {
		h.pages.Release()
		p.counters.expired.Add(1)
		p.config.Logger.Warn("nobody wanted the pages of a prompt", slog.Duration("lease", p.config.Lease))
	}
}

// take removes an offer. It returns nil if there is none of that id.
func (p *Peer) take(id offerID) *offer {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.offers[id]
	if h != nil {
		h.timer.Stop()
		delete(p.offers, id)
	}
	return h
}

func (p *Peer) releaseAll() {
	p.mu.Lock()
	all := p.offers
	p.offers = map[offerID]*offer{}
	p.mu.Unlock()
	for _, h := range all {
		h.timer.Stop()
		h.pages.Release()
	}
}

// Withdraw releases the pages of an offer that p has made, unless a peer has wanted them.
func (p *Peer) Withdraw(o *Offer) {
	b, err := base64.RawURLEncoding.DecodeString(o.ID)
	if err != nil || len(b) < len(offerID{}) {
		return
	}
	if h := p.take(offerID(b[:len(offerID{})])); h != nil {
		h.pages.Release()
	}
}

// closing returns a context that also ends when p is closed.
func (p *Peer) closing(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
