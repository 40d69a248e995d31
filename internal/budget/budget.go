// Package budget counts the memory that requests hold, so that no number of them holds more
// than there is for all: bodies, texts, tokens, and answers that are not sent yet.
//
// Who waits for its client gives way. Where there is no room for a request, one that waits
// for the rest of its body, or for its answer to be read, loses what it holds: the one that
// holds the most. Before these go accounts that are spare, of what is of use to later requests
// and needed by none.
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

// An Error is a request for which there is no room.
type Error struct {
	Wanted  int64 // bytes, beside what it held
	Held    int64 // by the request itself
	Others  int64 // held by others
	Limit   int64 // for all
	Evicted bool  // it held memory, and gave way while it waited for its client
}

// Alone reports whether there would be no room even if nobody else held any.
func (e *Error) Alone() bool { return e.Held+e.Wanted > e.Limit }

func (e *Error) Error() string {
	switch {
	case e.Evicted:
		return fmt.Sprintf("%v: it gave way to another while it waited for its client; all requests share %d bytes", ErrFull, e.Limit)
	case e.Alone():
		return fmt.Sprintf("%v: it takes %d bytes and wants %d more, and all requests share %d", ErrFull, e.Held, e.Wanted, e.Limit)
	}
	return fmt.Sprintf("%v now: it takes %d bytes and wants %d more, others take %d, and all requests share %d", ErrFull, e.Held, e.Wanted, e.Others, e.Limit)
}

// Unwrap is [ErrFull].
func (e *Error) Unwrap() error { return ErrFull }

// A Budget is memory that requests share.
type Budget struct {
	limit int64

	mu       sync.Mutex
	used     int64
	spare    int64                 // of used
	accounts map[*Account]struct{} // that hold some
	refused  int64
	evicted  int64
}

// New makes one of limit bytes.
func New(limit int64) *Budget {
	return &Budget{limit: limit, accounts: map[*Account]struct{}{}}
}

// Stats say how a budget stands.
type Stats struct {
	Limit, Used      int64 // bytes
	Spare            int64 // of Used, which gives way to any request
	Refused, Evicted int64 // requests
}

// Stats is how b stands.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Limit: b.limit, Used: b.used, Spare: b.spare, Refused: b.refused, Evicted: b.evicted}
}

// An Account is what one request holds. It may be used by many goroutines at once. A nil
// Account has no limit.
type Account struct {
	budget  *Budget
	owner   string
	spare   bool
	held    int64 // guarded by the budget's mu
	gone    *Error
	closed  bool
	evict   func()
	waiting atomic.Int32
	sending atomic.Int64 // since when, in nanoseconds of Unix; 0 where it does not
}

// Open begins one for a request of that client. evict is called, once at most, when the
// request shall end its waiting with an error; it must not block, and not call the budget.
func (b *Budget) Open(owner string, evict func()) *Account {
	return &Account{budget: b, owner: owner, evict: evict}
}

// OpenSpare begins one that has the room that requests leave, and gives way to any of them.
// evict is called then, as that of [Budget.Open].
func (b *Budget) OpenSpare(evict func()) *Account {
	return &Account{budget: b, spare: true, evict: evict}
}

// Owner is the client that the request is of; empty where nobody knows.
func (a *Account) Owner() string {
	if a == nil {
		return ""
	}
	return a.owner
}

// Fits says whether there is room for n bytes, without taking them: beside what those hold
// that do not wait for their clients.
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

// Wait notes that the request waits for its client from now on, or goes on.
func (a *Account) Wait(waits bool) {
	switch {
	case a == nil:
	case waits:
		a.waiting.Add(1)
	default:
		a.waiting.Add(-1)
	}
}

// sendGrace is how long a client may take to read a piece of its answer before its request
// counts as one that waits: what is cut off then cannot be told why.
const sendGrace = 500 * time.Millisecond

// Send notes that a piece of the answer is sent from now on, or that it was.
func (a *Account) Send(sends bool) {
	switch {
	case a == nil:
	case sends:
		a.sending.Store(time.Now().UnixNano())
	default:
		a.sending.Store(0)
	}
}

// refuse is the error that there is no room for n bytes more of a.
func (b *Budget) refuse(a *Account, n int64) error {
	if !a.spare {
		b.refused++
	}
	return &Error{Wanted: n, Held: a.held, Others: b.used - a.held, Limit: b.limit}
}

// waits reports whether the request waits for its client, or there is none.
func (a *Account) waits(now time.Time) bool {
	since := a.sending.Load()
	return a.spare || a.waiting.Load() > 0 || since != 0 && now.UnixNano()-since > int64(sendGrace)
}

// Evicted is why the request gave way, or nil.
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

// Reserve takes n bytes, or gives -n back, which never fails. The error is an [*Error].
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
	case a.closed: // nobody would give it back
		return &Error{Wanted: n, Others: b.used, Limit: b.limit}
	case n < 0:
		n = max(n, -a.held)
	case a.held+n > b.limit:
		return b.refuse(a, n)
	}
	for n > 0 && b.used+n > b.limit {
		other := b.idler(a)
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

// add notes that a holds n bytes more.
func (b *Budget) add(a *Account, n int64) {
	b.used += n
	if a.spare {
		b.spare += n
	}
	a.held += n
}

// idler is the account beside a that gives way to it: a spare one, or the one that waits for
// its client and holds the most; where a waits too, one that holds more: requests that wait
// alike do not take turns in giving way. None gives way to a spare one.
func (b *Budget) idler(a *Account) *Account {
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

// remove takes from an account what it holds.
func (b *Budget) remove(a *Account) {
	if !a.spare {
		b.evicted++
	}
	b.add(a, -a.held)
	a.gone = &Error{Limit: b.limit, Evicted: true}
	delete(b.accounts, a)
	a.evict()
}

// Held is how many bytes the request holds.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.held
}

// Close gives back all that the request holds, which can take no more.
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

// With is ctx for the work of a request that holds memory in a.
func With(ctx context.Context, a *Account) context.Context { return context.WithValue(ctx, key{}, a) }

// Of is the account of the request that ctx is of, or nil.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(key{}).(*Account)
	return a
}

// ReserveInt is [Account.Reserve] for those who count in int.
func (a *Account) ReserveInt(n int) error { return a.Reserve(int64(n)) }
