// Package budget bounds the memory that all requests hold together: bodies, texts, tokens, and
// answers that are not yet sent.
//
// A request that waits for its client can be evicted. If there is no room for a request, the budget
// evicts one that waits for the rest of its body or for its answer to be read: the one that holds
// the most. Before that it evicts spare accounts, which hold memory that later requests may reuse
// but none needs.
package budget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrFull is wrapped by the errors of this package.
var ErrFull = errors.New("there is no memory for the request")

// An Error reports that there is no room for a request.
type Error struct {
	Wanted  int64 // bytes, in addition to Held
	Held    int64 // by the request itself
	Others  int64 // by other requests
	Limit   int64 // for all requests
	Evicted bool  // it held memory, and was evicted while it waited for its client
}

// Alone reports whether there would be no room even without other requests.
func (e *Error) Alone() bool { return e.Held+e.Wanted > e.Limit }

func (e *Error) Error() string {
	switch {
	case e.Evicted:
		return fmt.Sprintf("%v: it was evicted while it waited for its client; all requests share %d bytes", ErrFull, e.Limit)
	case e.Alone():
		return fmt.Sprintf("%v: it holds %d bytes and needs %d more, but all requests share %d; send a smaller one", ErrFull, e.Held, e.Wanted, e.Limit)
	}
	return fmt.Sprintf("%v now: it holds %d bytes and needs %d more, and others hold %d of the %d that all share; try again later", ErrFull, e.Held, e.Wanted, e.Others, e.Limit)
}

// Unwrap returns [ErrFull].
func (e *Error) Unwrap() error { return ErrFull }

// A Budget is an amount of memory that requests share.
type Budget struct {
	limit int64

	mu       sync.Mutex
	used     int64
	spare    int64                 // part of used
	accounts map[*Account]struct{} // accounts that hold memory
	refused  int64
	evicted  int64
}

// New returns a budget of limit bytes.
func New(limit int64) *Budget {
	return &Budget{limit: limit, accounts: map[*Account]struct{}{}}
}

// Stats are the figures of a budget.
type Stats struct {
	Limit, Used      int64 // bytes
	Spare            int64 // part of Used, in spare accounts
	Refused, Evicted int64 // numbers of requests
}

// Stats returns the budget's figures.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Limit: b.limit, Used: b.used, Spare: b.spare, Refused: b.refused, Evicted: b.evicted}
}

// An Account is the memory that one request holds. It is safe for concurrent use. A nil Account has
// no limit.
type Account struct {
	budget  *Budget
	owner   string
	spare   bool
	held    int64 // guarded by budget.mu
	gone    *Error
	closed  bool
	evict   func()
	waiting atomic.Int32
	sending atomic.Int64 // start of the write in Unix nanoseconds; 0: no write
}

// Open returns an account for a request of the client owner. evict is called at most once, if the
// request is evicted; it must end the request's wait with an error. It must not block or call the
// budget.
func (b *Budget) Open(owner string, evict func()) *Account {
	return &Account{budget: b, owner: owner, evict: evict}
}

// OpenSpare returns a spare account. It holds memory that requests leave free, and any request can
// evict it. evict is as in [Budget.Open].
func (b *Budget) OpenSpare(evict func()) *Account {
	return &Account{budget: b, spare: true, evict: evict}
}

// Owner returns the request's client; empty if unknown.
func (a *Account) Owner() string {
	if a == nil {
		return ""
	}
	return a.owner
}

// Fits returns an error if n bytes could not be reserved now. It counts as free what can be
// evicted, and reserves nothing.
func (a *Account) Fits(n int64) error {
	if a == nil {
		return nil
	}
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	busy, now := b.used, time.Now()
	for other := range b.accounts {
		if other.waits(now) && (other.spare || other.held > n) {
			busy -= other.held
		}
	}
	if a.held+n > b.limit || busy+n > b.limit {
		return b.refuse(a, n)
	}
	return nil
}

// Wait says that the request now waits for its client, or no longer does.
func (a *Account) Wait(waits bool) {
	switch {
	case a == nil:
	case waits:
		a.waiting.Add(1)
	default:
		a.waiting.Add(-1)
	}
}

// sendGrace is how long a client may take to read a piece of its answer before its request counts
// as waiting. A request evicted during a write cannot tell its client why.
const sendGrace = 500 * time.Millisecond

// Send says that a write to the client begins or ends.
func (a *Account) Send(sends bool) {
	switch {
	case a == nil:
	case sends:
		a.sending.Store(time.Now().UnixNano())
	default:
		a.sending.Store(0)
	}
}

// refuse returns the error for n bytes that a cannot have.
func (b *Budget) refuse(a *Account, n int64) error {
	if !a.spare {
		b.refused++
	}
	return &Error{Wanted: n, Held: a.held, Others: b.used - a.held, Limit: b.limit}
}

// waits reports whether the account can be evicted: the request waits for its client, or the
// account is spare.
func (a *Account) waits(now time.Time) bool {
	since := a.sending.Load()
	return a.spare || a.waiting.Load() > 0 || since != 0 && now.UnixNano()-since > int64(sendGrace)
}

// Evicted returns the error of the request's eviction, or nil.
func (a *Account) Evicted() error {
	if a == nil {
		return nil
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if a.gone != nil {
		return a.gone
	}
	return nil
}

// Reserve adds n bytes to the account, which may fail with an [*Error], or frees -n bytes, which
// never fails.
func (a *Account) Reserve(n int64) error {
	if a == nil || n == 0 {
		return nil
	}
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case n < 0 && (a.gone != nil || a.closed):
		return nil
	case a.gone != nil:
		return a.gone
	case a.closed: // they would never be freed
		return &Error{Wanted: n, Others: b.used, Limit: b.limit}
	case n < 0:
		n = max(n, -a.held)
	case a.held+n > b.limit:
		return b.refuse(a, n)
	}
	for n > 0 && b.used+n > b.limit {
		other := b.victim(a)
		if other == nil {
			return b.refuse(a, n)
		}
		b.remove(other)
	}
	b.add(a, n)
	if a.held > 0 {
		b.accounts[a] = struct{}{}
	} else {
		delete(b.accounts, a)
	}
	return nil
}

// add adds n bytes to a.
func (b *Budget) add(a *Account, n int64) {
	b.used += n
	if a.spare {
		b.spare += n
	}
	a.held += n
}

// victim returns the account to evict for a: a spare one, or the waiting one that holds the most.
// If a waits too, that one must hold more than a, so that waiting requests do not evict each other
// in turn. A spare account evicts none.
func (b *Budget) victim(a *Account) *Account {
	if a.spare {
		return nil
	}
	var most *Account
	now := time.Now()
	waits := a.waits(now)
	for other := range b.accounts {
		switch {
		case other == a || !other.waits(now):
		case other.spare:
			return other
		case (!waits || other.held > a.held) && (most == nil || other.held > most.held):
			most = other
		}
	}
	return most
}

// remove evicts an account.
func (b *Budget) remove(a *Account) {
	if !a.spare {
		b.evicted++
	}
	b.add(a, -a.held)
	a.gone = &Error{Limit: b.limit, Evicted: true}
	delete(b.accounts, a)
	a.evict()
}

// Held returns how many bytes the request holds.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.held
}

// Close frees all that the request holds. Later reservations fail.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.budget.add(a, -a.held)
	a.closed = true
	delete(a.budget.accounts, a)
}

type key struct{}

// With returns a copy of ctx that carries a, the account of the request that ctx belongs to.
func With(ctx context.Context, a *Account) context.Context { return context.WithValue(ctx, key{}, a) }

// Of returns the account that ctx carries, or nil.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(key{}).(*Account)
	return a
}

// ReserveInt is [Account.Reserve] for an int.
func (a *Account) ReserveInt(n int) error { return a.Reserve(int64(n)) }
