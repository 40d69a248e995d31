package kvtransfer

import (
	"sync/atomic"
	"time"
)

// Stats are the counters of a [Peer].
type Stats struct {
	Held     int    // offers that no peer has wanted yet
	Offers   uint64 // made
	Refused  uint64 // offers that were not made, because there were too many
	Expired  uint64 // offers whose lease ended
	Sent     Transfers
	Received Transfers
}

// Transfers count transfers in one direction.
type Transfers struct {
	Done, Failed uint64
	Bytes        uint64        // of the transfers in Done
	Time         time.Duration // the sum over the transfers in Done
}

type counters struct {
	offers, refused, expired atomic.Uint64
	sent, received           transfers
}

type transfers struct {
	done, failed, bytes atomic.Uint64
	nanoseconds         atomic.Int64
}

// add counts a transfer that ended with err or has moved n bytes.
func (t *transfers) add(n int64, d time.Duration, err error) {
	if err != nil {
		t.failed.Add(1)
		return
	}
	t.done.Add(1)
	t.bytes.Add(uint64(n))
	t.nanoseconds.Add(int64(d))
}

func (t *transfers) stats() Transfers {
	return Transfers{Done: t.done.Load(), Failed: t.failed.Load(), Bytes: t.bytes.Load(), Time: time.Duration(t.nanoseconds.Load())}
}

// Stats returns the counters.
func (p *Peer) Stats() Stats {
	p.mu.Lock()
	held := len(p.offers)
	p.mu.Unlock()
	return Stats{
		Held: held, Offers: p.counters.offers.Load(), Refused: p.counters.refused.Load(), Expired: p.counters.expired.Load(),
		Sent: p.counters.sent.stats(), Received: p.counters.received.stats(),
	}
}
