package main

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server"
	filesettings "github.com/realizar/realizar/internal/settings"
)

// A certificate is a TLS certificate that can be read again.
type certificate struct {
	cert, key string // files
	loaded    atomic.Pointer[tls.Certificate]
}

// certificate returns the certificate that the flags name; nil for none.
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

// reload reads the files again. After an error the certificate stays.
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

// A reloader applies changed files to a running server: the file of settings and the models of
// --models when they change, and these, keys and certificate on SIGHUP.
type reloader struct {
	a           *app
	running     *serveCommand // whose settings hold
	config      server.Config // what they come to
	alone       bool          // the address is one of the machine's own alone
	certificate *certificate  // nil for none
	named       []servedModel // by the arguments
	list        []servedModel // with those of --models
	loader      *modelLoader  // of list
	server      *server.Server

	settings, models watched

	now   chan chan struct{} // asks for models to be read again; what is sent is closed when they are
	ended chan struct{}      // closed when nothing is read again any more
}

// modelsNow reads the list of models again, and returns when it applies.
func (r *reloader) modelsNow() {
	done := make(chan struct{})
	select {
	case r.now <- done:
		<-done
	case <-r.ended:
	}
}

// A watched is a file or a folder that is read again when it has changed.
type watched struct {
	text   func() string // what it is now
	reread func()        // nil: nothing is watched
	tried  string        // what was read last
	seen   string        // what it was a moment ago
}

// watchEvery is how often a watched file is looked at. A change counts when it is the same twice, as the writer
// may not be done. Contents are compared: a file may be on a disk that tells nobody of changes, be
// replaced, or be behind a link that then leads elsewhere.
const watchEvery = time.Second

// look rereads after a change, once the writer is done.
func (w *watched) look() {
	if w.reread == nil {
		return
	}
	now := w.text()
	if before := w.seen; now == w.tried || now != before {
		w.seen = now
		return
	}
	w.again()
}

// again rereads in any case.
func (w *watched) again() {
	if w.reread != nil {
		w.tried = w.text()
		w.reread()
	}
}

// hangups returns the SIGHUPs until stop is called. If there is no file to read again, the signal
// keeps its default action.
func (r *reloader) hangups() (signals <-chan os.Signal, stop func()) {
	if r.running.settings.file == "" && r.running.ModelsFrom == "" && r.config.Keys == nil && r.certificate == nil {
		return nil, func() {}
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// start reloads until stop is called.
func (r *reloader) start(hangups <-chan os.Signal) (stop func()) {
	if r.running.settings.file != "" {
		r.settings = watched{text: r.file, reread: r.reload, tried: r.running.settings.content}
	}
	if r.running.ModelsFrom != "" {
		r.models = watched{text: r.modelsText, reread: r.rereadModels, tried: fmt.Sprint(specsOf(r.list))}
	}
	tick := time.NewTicker(watchEvery)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer close(r.ended)
		defer tick.Stop()
		for {
			select {
			case <-hangups:
				r.hangup()
			case <-tick.C:
				r.settings.look()
				r.models.look()
			case done := <-r.now:
				r.models.again()
				close(done)
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
	r.settings.again()
	r.models.again()
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

// file returns the contents of the file of settings, or why it cannot be read.
func (r *reloader) file() string {
	data, err := filesettings.Read(r.running.settings.file)
	if err != nil {
		return "\x00" + err.Error() // which no file is that can be parsed
	}
	return string(data)
}

// reload reads the file of settings again, and applies what can change while the server runs. After
// an error nothing changes.
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
	was := r.running
	r.running = next
	if was.ModelsFrom != next.ModelsFrom || was.KeepAlive != next.KeepAlive {
		r.rereadModels()
	}
	for _, attrs := range set {
		r.config.Logger.Info("a setting was changed", attrs...)
	}
	for _, attrs := range held {
		r.config.Logger.Warn("a setting cannot change while the server runs: restart it", attrs...)
	}
	r.note("settings", nil)
}

// reread returns the command with the present arguments, environment and file.
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

// apply makes the server use next.
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

// modelsText returns the present list of models, or why there is none.
func (r *reloader) modelsText() string {
	list, err := r.running.withListed(r.named)
	if err != nil {
		return "\x00" + err.Error()
	}
	return fmt.Sprint(specsOf(list))
}

// rereadModels reads the list of models again. After an error it stays as it was.
func (r *reloader) rereadModels() {
	err := r.setModels()
	if err != nil {
		r.config.Logger.Error("the models stay as they were", slog.Any("error", err))
	}
}

func (r *reloader) setModels() error {
	list, err := r.running.withListed(r.named)
	if err != nil {
		return err
	}
	loader, config := r.loader.with(list), r.config
	if err := r.server.Models().Set(specsOf(list), loader); err != nil {
		return err
	}
	if !r.running.alone() {
		config.Parallel = parallelOf(list)
	}
	added, removed, changed := differ(r.list, list)
	r.list, r.loader, r.config = list, loader, config
	if err := r.server.Reload(config); err != nil {
		return err
	}
	r.config.Logger.Info("the models were read again", slog.Any("added", added), slog.Any("removed", removed), slog.Any("changed", changed))
	return nil
}

// differ returns the names of the models that only the new list has, those that only the old list
// has, and those that changed.
func differ(old, list []servedModel) (added, removed, changed []string) {
	was := map[string]pool.Spec{}
	for _, m := range old {
		was[m.name] = m.spec()
	}
	for _, m := range list {
		before, ok := was[m.name]
		delete(was, m.name)
		switch {
		case !ok:
			added = append(added, m.name)
		case !reflect.DeepEqual(before, m.spec()):
			changed = append(changed, m.name)
		}
	}
	return added, slices.Sorted(maps.Keys(was)), changed
}
