package server

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A pipe keeps what is written, until it breaks.
type pipe struct {
	header http.Header
	text   strings.Builder
	broken error
}

func (p *pipe) Header() http.Header { return p.header }
func (p *pipe) WriteHeader(int)     {}
func (p *pipe) FlushError() error   { return nil }

func (p *pipe) Write(b []byte) (int, error) {
	if p.broken != nil {
		return 0, p.broken
	}
	return p.text.Write(b)
}

func newStream(contentType string) (*Stream, *pipe) {
	p := &pipe{header: http.Header{}}
	x := &Exchange{w: p}
	return x.Stream(contentType, nil), p
}

// A stream of events that is silent has comments, as often as is wanted, and none after its end.
func TestStreamComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newStream(Events)
		done := s.keepAlive(10*time.Second, func(err error) { t.Error(err) })
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if got := p.text.String(); got != ":\n\n:\n\n" || p.header.Get("Content-Type") != Events || !s.begun {
			t.Errorf("got %q, %v", got, p.header)
		}
		_ = s.SendEvent("", []byte("1"))
		time.Sleep(9 * time.Second)
		synctest.Wait()
		_ = s.SendEvent("", []byte("2"))
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got := p.text.String()[6:]; got != "data: 1\n\ndata: 2\n\n:\n\n" {
			t.Errorf("got %q", got)
		}
		done()
		_ = s.SendEvent("", []byte("3"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := p.text.String(); !strings.HasSuffix(got, "data: 3\n\n") {
			t.Errorf("got %q", got)
		}
	})
	for _, contentType := range []string{Lines, Events} {
		synctest.Test(t, func(t *testing.T) {
			s, p := newStream(contentType)
			every := 10 * time.Second
			if contentType == Events {
				every = 0
			}
			defer s.keepAlive(every, func(err error) { t.Error(err) })()
			time.Sleep(time.Hour)
			synctest.Wait()
			if p.text.Len() > 0 || s.begun {
				t.Errorf("%s every %v has %q", contentType, every, p.text.String())
			}
		})
	}
	(*Stream)(nil).keepAlive(time.Second, nil)()
}

// A client that does not take a comment ends its request.
func TestStreamCommentUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newStream(Events)
		p.broken = errors.New("broken pipe")
		var got []error
		defer s.keepAlive(time.Second, func(err error) { got = append(got, err) })()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(got) != 1 || !errors.Is(got[0], errUnread) {
			t.Errorf("got %v", got)
		}
	})
}
