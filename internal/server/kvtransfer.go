package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/kvtransfer"
)

// A KVTransfer says what a request does with the pages of its prompt in the KV cache.
type KVTransfer struct {
	// Offer offers the pages to another server when the answers have ended.
	Offer bool
	// From has another server's offer of the pages; nil means none.
	From *kvtransfer.Offer
	// Identity is what the other server calls its model, see [realizar.Model.CacheIdentity].
	Identity string
}

// CheckTransfer returns an error if the server cannot do what t says.
func (x *Exchange) CheckTransfer(t *KVTransfer) error {
	if t != nil && x.Server.config.Transfer == nil {
		return errors.New("this server transfers no KV cache; start it with --kv-transfer")
	}
	return nil
}

// fetch imports the pages that r's prompt has elsewhere. If that fails, the prompt is computed here.
func (x *Exchange) fetch(ctx context.Context, t *KVTransfer, r *realizar.Request) {
	if t == nil || t.From == nil {
		return
	}
	if err := x.fetchPages(ctx, t, r); err != nil {
		x.Note(slog.String("kv_transfer", "the prompt is computed here: "+err.Error()))
	}
}

func (x *Exchange) fetchPages(ctx context.Context, t *KVTransfer, r *realizar.Request) error {
	m, peer, prompt, tokens := x.Model(), x.Server.config.Transfer, r.Prepared.Tokens, t.From.Tokens
	if own := m.CacheIdentity(); t.Identity != own {
		return fmt.Errorf("the pages are of another model, device, setting or version: %.64q; this server has %q", t.Identity, own)
	}
	name := kvtransfer.Name(m.CacheName(prompt, r.Salt, tokens))
	if err := peer.Check(t.From, name); err != nil {
		return err
	}
	return m.ImportCache(ctx, prompt, r.Salt, tokens, func(ctx context.Context, skip int, pages [][]byte) error {
		return peer.Fetch(ctx, t.From, name, skip, pages)
	})
}

// offerTime is how long an answer waits for the steps that copy its prompt's pages to host memory.
const offerTime = 10 * time.Second

// offer offers the pages of r's prompt. It returns nil if that fails: another server then computes
// the prompt again.
func (x *Exchange) offer(ctx context.Context, t *KVTransfer, r *realizar.Request) *kvtransfer.Offer {
	if t == nil || !t.Offer {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, offerTime)
	defer done()
	m, prompt := x.Model(), r.Prepared.Tokens
	pages, err := m.ExportCache(ctx, prompt, r.Salt)
	switch {
	case err != nil:
	case pages.Tokens() == 0:
		pages.Release()
		err = errors.New("the prompt fills no page")
	default:
		n := pages.Bytes()
		var o *kvtransfer.Offer
		if o, err = x.Server.config.Transfer.Offer(pages, m.CacheName(prompt, r.Salt, pages.Tokens()), pages.Tokens()); err == nil {
			x.Note(slog.Int("kv_transfer_tokens", o.Tokens), slog.Int64("kv_transfer_bytes", n))
			return o
		}
		pages.Release()
	}
	x.Note(slog.String("kv_transfer", "nothing is offered: "+err.Error()))
	return nil
}
