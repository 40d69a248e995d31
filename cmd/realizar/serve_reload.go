package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/realizar/realizar/internal/server"
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

// reload reads the files again. The certificate stays where they are not as they
// should be.
func (c *certificate) reload() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", c.cert, err)
	}
	c.loaded.Store(&pair)
	return nil
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.loaded.Load(), nil }}
}

// reloadOnHangup reads keys and certificate again on SIGHUP, until the function that it
// returns is called. Without any the signal means what it always does.
func reloadOnHangup(keys *server.Keys, c *certificate, log *slog.Logger) (stop func()) {
	if keys == nil && c == nil {
		return func() {}
	}
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-signals:
				reload(keys, c, log)
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

func reload(keys *server.Keys, c *certificate, log *slog.Logger) {
	note := func(what string, err error) {
		if err != nil {
			log.Error(what+" stay as they were", slog.Any("error", err))
			return
		}
		log.Info(what + " were read again")
	}
	if keys != nil {
		note("keys", keys.Reload())
	}
	if c != nil {
		note("certificates", c.reload())
	}
}
