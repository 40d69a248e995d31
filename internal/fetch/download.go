package fetch

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// A File describes a file to download.
type File struct {
	URL    string
	Doer   Doer // nil for the client's own
	Size   int64
	Digest Digest
}

// Download downloads f to place. It calls progress with the number of bytes received, first with
// those already present from an earlier attempt, and with a negative number if bytes turn out to be
// wrong. No other process may download to the same place at the same time.
//
// Only a complete, verified file appears at place. Partial data is kept next to it for the next
// attempt, unless the digest was wrong twice.
func (c *Client) Download(ctx context.Context, f File, place string, progress func(int64)) error {
	if f.Doer == nil {
		f.Doer = c.HTTP
	}
	p, err := openPartial(place, f.Size)
	if err != nil {
		return err
	}
	d := &download{c: c, f: f, p: p, progress: progress, ranges: true}
	for again := false; ; again = true {
		sum, err := d.run(ctx)
		switch {
		case err != nil:
			return errors.Join(err, p.close())
		case f.Digest.Is(sum):
			return p.publish(c.options.Sync)
		case again:
			u, _ := url.Parse(f.URL)
			return errors.Join(&DigestError{Where: where(u), Want: string(f.Digest), Got: string(f.Digest.Of(sum))}, p.discard())
		}
		if err := p.forget(f.Size); err != nil {
			return errors.Join(err, p.close())
		}
		progress(-f.Size)
	}
}

// A download is a file being downloaded.
type download struct {
	c        *Client
	f        File
	p        *partial
	progress func(int64)
	told     bool // progress knows of the bytes from an earlier attempt
	ranges   bool // the server supports ranges, as far as is known

	direct atomic.Pointer[string] // the address that the server redirects to
	sync   chan struct{}          // requests a sync of what was written
}

// run fetches the missing bytes and computes the digest of the whole file.
func (d *download) run(ctx context.Context) (hash.Hash, error) {
	if !d.told {
		d.progress(d.p.have.size())
		d.told = true
	}
	d.p.end(false)
	d.sync = make(chan struct{}, 1)
	sum := d.f.Digest.New(d.f.Size)
	var helpers sync.WaitGroup
	var hashing error
	helpers.Go(func() { hashing = d.hash(sum) })
	helpers.Go(func() {
		for range d.sync {
			_ = d.c.options.Sync(d.p.file) // leaves less to sync at the end, where errors count
		}
	})
	err := d.fill(ctx)
	close(d.sync)
	d.p.end(true)
	helpers.Wait()
	return sum, errors.Join(err, hashing)
}

// hash adds the file to sum, following its contiguous prefix as that grows.
func (d *download) hash(sum hash.Hash) error {
	buf := make([]byte, min(d.f.Size, 1<<20))
	for at := int64(0); at < d.f.Size; {
		there := d.p.waitPrefix(at)
		if there <= at {
			return nil // fill has failed
		}
		for at < there {
			n, err := d.p.file.ReadAt(buf[:min(int64(len(buf)), there-at)], at)
			if n == 0 {
				return err
			}
			sum.Write(buf[:n])
			at += int64(n)
		}
	}
	return nil
}

// errNoRanges reports that a server sends only whole files.
var errNoRanges = fmt.Errorf("%wthe server does not support ranges", errPermanent)

// fill fetches the missing bytes.
func (d *download) fill(ctx context.Context) error {
	if d.ranges {
		err := d.fillByRanges(ctx)
		if !errors.Is(err, errNoRanges) {
			return err
		}
		d.ranges = false
	}
	return d.fillByStream(ctx)
}

// fillByRanges fetches the missing bytes in parallel pieces, starting from the front.
func (d *download) fillByRanges(ctx context.Context) error {
	pieces := make(chan span)
	work, ctx := errgroup.WithContext(ctx)
	gaps := d.p.gaps(d.f.Size)
	size := d.c.options.Piece
	if size <= 0 {
		size = min(max(d.f.Size/128, 4<<20), 32<<20) // small pieces let the digest keep up
	}
	work.Go(func() error {
		defer close(pieces)
		for _, g := range gaps {
			for g.size() > 0 {
				piece := span{g.from, min(g.to, g.from+size)}
				select {
				case pieces <- piece:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				g.from = piece.to
			}
		}
		return nil
	})
	for range cap(d.c.slots) {
		work.Go(func() error {
			for piece := range pieces {
				if err := d.fetch(ctx, piece); err != nil {
					return err
				}
				select {
				case d.sync <- struct{}{}:
				default:
				}
			}
			return nil
		})
	}
	return work.Wait()
}

// fetch fetches one piece, retrying as needed.
func (d *download) fetch(ctx context.Context, piece span) error {
	a := attempts{c: d.c}
	for piece.size() > 0 {
		n, err := d.attempt(ctx, piece)
		piece.from += n
		if n > 0 {
			a.failed = 0
		}
		switch {
		case piece.size() == 0:
			return nil
		case errors.Is(err, errNoRanges):
			return err
		case err == nil:
			err = io.ErrUnexpectedEOF
		}
		if err := a.next(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

var contentRange = regexp.MustCompile(`^bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)$`)

// attempt requests a piece once and returns how many leading bytes of it arrived.
func (d *download) attempt(ctx context.Context, piece span) (int64, error) {
	r, err := d.ask(ctx, http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", piece.from, piece.to-1)}})
	if err != nil {
		return 0, err
	}
	defer d.release(r)
	if r.StatusCode == http.StatusOK {
		if piece.size() < d.f.Size {
			return 0, errNoRanges
		}
		return d.take(ctx, r, piece, r.ContentLength)
	}
	m := contentRange.FindStringSubmatch(r.Header.Get("Content-Range"))
	if m == nil {
		return 0, fmt.Errorf("%s: a partial response without a valid range: Content-Range %.60q", where(r.Request.URL), r.Header.Get("Content-Range"))
	}
	from, _ := strconv.ParseInt(m[1], 10, 64) // at most 18 digits: cannot fail
	total := d.f.Size
	if m[3] != "*" {
		total, _ = strconv.ParseInt(m[3], 10, 64)
	}
	if from != piece.from {
		return 0, fmt.Errorf("%s: the response begins at byte %d, not at byte %d as requested", where(r.Request.URL), from, piece.from)
	}
	return d.take(ctx, r, piece, total)
}

// ask requests the file and returns a response of status 200 or 206.
func (d *download) ask(ctx context.Context, header http.Header) (*http.Response, error) {
	select {
	case d.c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	address, doer := d.f.URL, d.f.Doer
	direct := d.direct.Load()
	if direct != nil {
		address, doer = *direct, d.c.HTTP // without credentials
	}
	r, err := d.c.send(ctx, doer, address, header)
	if err != nil {
		<-d.c.slots
		d.direct.CompareAndSwap(direct, nil)
		return nil, err
	}
	if r.StatusCode != http.StatusOK && r.StatusCode != http.StatusPartialContent {
		err := newStatusError(r)
		d.release(r)
		if direct != nil {
			// Redirected addresses expire; the server has a new one.
			d.direct.CompareAndSwap(direct, nil)
		}
		if r.Request.URL.Host != hostOf(d.f.URL) && !err.temporary() {
			return nil, errors.New(err.Error()) // hides the status, so that the next attempt asks for a new address
		}
		if err.Status == http.StatusRequestedRangeNotSatisfiable {
			return nil, &lengthError{Where: err.Where, Want: d.f.Size, Got: -1}
		}
		return nil, err
	}
	if direct == nil && r.Request.URL.Host != hostOf(d.f.URL) {
		final := r.Request.URL.String()
		d.direct.Store(&final)
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		d.release(r)
		return nil, fmt.Errorf("%s: the response has the encoding %.20q, which was not requested", where(r.Request.URL), e)
	}
	return r, nil
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

func (d *download) release(r *http.Response) {
	_ = r.Body.Close()
	<-d.c.slots
}

// take writes the received bytes of a piece. total is the file's size in bytes as the server
// reports it, or negative.
func (d *download) take(ctx context.Context, r *http.Response, piece span, total int64) (int64, error) {
	if total >= 0 && total != d.f.Size {
		return 0, &lengthError{Where: where(r.Request.URL), Want: d.f.Size, Got: total}
	}
	return d.copy(ctx, r.Body, piece)
}

// copy writes the bytes of a piece from body as they arrive, and records them.
func (d *download) copy(ctx context.Context, body io.Reader, piece span) (n int64, err error) {
	buf := make([]byte, min(piece.size(), 256<<10))
	noted, sum := piece.from, uint32(0)
	at := piece.from
	for at < piece.to && err == nil {
		var k int
		k, err = body.Read(buf[:min(int64(len(buf)), piece.to-at)])
		if k > 0 {
			if _, failed := d.p.file.WriteAt(buf[:k], at); failed != nil {
				err = fmt.Errorf("%w%w", errPermanent, failed)
				break
			}
			sum = crc32.Update(sum, castagnoli, buf[:k])
			at += int64(k)
			d.progress(int64(k))
		}
		if at-noted >= d.c.options.Record || at == piece.to || err != nil {
			if failed := d.p.note(span{noted, at}, sum); failed != nil {
				return noted - piece.from, fmt.Errorf("%w%w", errPermanent, failed)
			}
			noted, sum = at, 0
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return noted - piece.from, err
}

// fillByStream fetches the file from the beginning, and keeps only the missing bytes.
func (d *download) fillByStream(ctx context.Context) error {
	a := attempts{c: d.c}
	for {
		gaps := d.p.gaps(d.f.Size)
		if len(gaps) == 0 {
			return nil
		}
		n, err := d.stream(ctx, gaps)
		if n > 0 {
			a.failed = 0
		}
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		if len(d.p.gaps(d.f.Size)) == 0 {
			return nil
		}
		if err := a.next(ctx, err); err != nil {
			return err
		}
	}
}

// stream reads the file once and returns how many missing bytes arrived.
func (d *download) stream(ctx context.Context, gaps []span) (n int64, err error) {
	r, err := d.ask(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer d.release(r)
	if r.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s sent a part of the file, though all of it was requested", where(r.Request.URL))
	}
	if r.ContentLength >= 0 && r.ContentLength != d.f.Size {
		return 0, &lengthError{Where: where(r.Request.URL), Want: d.f.Size, Got: r.ContentLength}
	}
	at := int64(0)
	for _, g := range gaps {
		if _, err := io.CopyN(io.Discard, r.Body, g.from-at); err != nil {
			return n, err
		}
		k, err := d.copy(ctx, r.Body, g)
		n += k
		at = g.to
		if err != nil || k < g.size() {
			return n, err
		}
	}
	return n, nil
}
