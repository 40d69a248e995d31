package main

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/realizar/realizar/internal/server"
	filesettings "github.com/realizar/realizar/internal/settings"
)

// A certificate is one of TLS that can be read again.
type certificate struct {
	cert, key string // files
	loaded    atomic.Pointer[tls.Certificate]
}

// certificate is what the flags name; nil for none.
func (c *serveCommand) certificate() (*certificate, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	own := &certificate{cert: c.TLSCert, key: c.TLSKey}
	return own, own.reload()
}

func readPair(cert, key string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", cert, err)
	}
	return &pair, nil
}

// reload reads the files again. The certificate stays where they are not as they
// should be.
func (c *certificate) reload() error {
	pair, err := readPair(c.cert, c.key)
	if err == nil {
		c.loaded.Store(pair)
	}
	return err
}

// set replaces the files and what they hold.
func (c *certificate) set(cert, key string, pair *tls.Certificate) {
	c.cert, c.key = cert, key
	c.loaded.Store(pair)
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.loaded.Load(), nil }}
}

// A reloader has a server go by its files as they are now: the file of settings when it has
// changed, and that, keys and certificate on SIGHUP.
type reloader struct {
	a           *app
	running     *serveCommand // whose settings hold
	config      server.Config // what they come to
	alone       bool          // the address is one of the machine's own alone
	certificate *certificate  // nil for none
	server      *server.Server

	tried string // the file that was read last
	seen  string // the file as it was a moment ago
}

// watchEvery is how often the file of settings is looked at. It counts when it is the same
// twice, as whoever writes it may not be done. Its bytes are compared: it may be on a disk
// that tells nobody of changes, be replaced, or be behind a link that then leads elsewhere.
const watchEvery = time.Second

// hangups are the SIGHUPs that come until stop is called. Where no file would be read again
// the signal means what it always does.
func (r *reloader) hangups() (signals <-chan os.Signal, stop func()) {
	if r.running.settings.file == "" && r.config.Keys == nil && r.certificate == nil {
		return nil, func() {}
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// start reloads until stop is called.
func (r *reloader) start(hangups <-chan os.Signal) (stop func()) {
	var changes <-chan time.Time
	end := func() {}
	if r.running.settings.file != "" {
		tick := time.NewTicker(watchEvery)
		changes, end = tick.C, tick.Stop
		r.tried = r.running.settings.content
	}
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer end()
		for {
			select {
			case <-hangups:
				r.hangup()
			case <-changes:
				r.look()
			case <-stopped:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stopped)
		<-done
	})
}

// hangup reads all files again.
func (r *reloader) hangup() {
	if r.running.settings.file != "" {
		r.tried = r.file()
		r.reload()
	}
	if r.config.Keys != nil {
		r.note("keys", r.config.Keys.Reload())
	}
	if r.certificate != nil {
		r.note("certificates", r.certificate.reload())
	}
}

func (r *reloader) note(what string, err error) {
	if err != nil {
		r.config.Logger.Error(what+" stay as they were", slog.Any("error", err))
		return
	}
	r.config.Logger.Info(what + " were read again")
}

// look reads the file of settings again if it has changed, and is not being written.
func (r *reloader) look() {
	now := r.file()
	if before := r.seen; now == r.tried || now != before {
		r.seen = now
		return
	}
	r.tried = now
	r.reload()
}

// file is the file of settings as it is, or why it cannot be read.
func (r *reloader) file() string {
	data, err := filesettings.Read(r.running.settings.file)
	if err != nil {
		return "\x00" + err.Error() // which no file is that can be parsed
	}
	return string(data)
}

// reload reads the file of settings again, and sets what can be set while the server runs.
// After an error all is as it was.
func (r *reloader) reload() {
	next, err := r.running.reread(r.a)
	if err != nil {
		r.note("settings", err)
		return
	}
	set, held := r.running.changes(next)
	if err := r.apply(next); err != nil {
		r.note("settings", err)
		return
	}
	r.running = next
	for _, attrs := range set {
		r.config.Logger.Info("a setting was changed", attrs...)
	}
	for _, attrs := range held {
		r.config.Logger.Warn("a setting cannot change while the server runs: restart it", attrs...)
	}
	r.note("settings", nil)
}

// reread is the command as its arguments, the environment and the file now have it.
func (c *serveCommand) reread(a *app) (*serveCommand, error) {
	g := &grammar{}
	parser, err := newParser(g, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	if err == nil {
		_, err = parser.Parse(a.args)
	}
	return &g.Serve, err
}

// changes are the settings that are others in next, for the log: those that can be set while
// the server runs, and those that cannot, which next then has as c does.
func (c *serveCommand) changes(next *serveCommand) (set, held [][]any) {
	for i, was := range c.settings.list {
		is := next.settings.list[i]
		if reflect.DeepEqual(was.Target.Interface(), is.Target.Interface()) {
			continue
		}
		attrs := []any{
			slog.String("setting", is.Name), slog.String("old", was.text()), slog.String("new", is.text()),
			slog.String("from", cmp.Or(is.place, string(is.from))),
		}
		if was.live == liveYes || was.live == liveFile && was.text() != "" && is.text() != "" {
			set = append(set, attrs)
			continue
		}
		is.Target.Set(was.Target)
		held = append(held, attrs)
	}
	return set, held
}

// apply has the server go by next.
func (r *reloader) apply(next *serveCommand) error {
	config := r.config
	next.setLive(&config)
	config.Hosts = hostsOf(config.Hosts, r.alone)
	var err error
	if next.APIKeyFile != r.running.APIKeyFile {
		if config.Keys, err = server.ReadKeys(next.APIKeyFile); err != nil {
			return err
		}
	}
	replaced := next.TLSCert != r.running.TLSCert || next.TLSKey != r.running.TLSKey
	var pair *tls.Certificate
	if replaced {
		if pair, err = readPair(next.TLSCert, next.TLSKey); err != nil {
			return err
		}
	}
	if err := r.server.Reload(config); err != nil {
		return err
	}
	if replaced {
		r.certificate.set(next.TLSCert, next.TLSKey, pair)
	}
	r.config = config
	return config.Connections.Bound(next.connectionLimits())
}
