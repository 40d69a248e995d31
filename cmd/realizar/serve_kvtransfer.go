package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strconv"

	"github.com/realizar/realizar/internal/kvtransfer"
)

// kvTransferFlags say how other servers reach pages of the KV cache.
type kvTransferFlags struct {
	KVTransfer        string `name:"kv-transfer" placeholder:"ADDRESS" group:"network" help:"Send the KV cache of prompts to other servers that answer them, and take theirs, at this address, such as tcp://10.0.0.7:7777 or tcp://*:7777. It needs --kv-transfer-key-file and --kv-host."`
	KVTransferKeyFile string `name:"kv-transfer-key-file" placeholder:"FILE" group:"network" help:"The secret that all servers of --kv-transfer share: 32 random bytes or more."`
	KVTransferServer  string `name:"kv-transfer-server" placeholder:"HOST:PORT" group:"network" help:"With --kv-transfer, the address and port by which other servers reach it. Default: the address; for tcp://* the first one of the machine."`
}

func (f *kvTransferFlags) validTransfer(c *serveCommand) error {
	switch {
	case f.KVTransfer == "" && f.KVTransferKeyFile != "":
		return errors.New("--kv-transfer-key-file needs --kv-transfer")
	case f.KVTransfer == "" && f.KVTransferServer != "":
		return errors.New("--kv-transfer-server needs --kv-transfer")
	case f.KVTransfer == "":
		return nil
	case f.KVTransferKeyFile == "":
		return errors.New("--kv-transfer needs --kv-transfer-key-file, the secret that the servers share")
	case c.KVHost == 0:
		return errors.New("--kv-transfer needs --kv-host, the memory for pages that leave and arrive")
	case len(c.Models) > 1 || c.ModelsFrom != "":
		return errors.New("--kv-transfer is for one model; serve a single model")
	}
	if _, _, err := f.server("", 1); err != nil {
		return wrongFlag("kv-transfer-server", f.KVTransferServer, "an address and a port, such as 10.0.0.7:7777")
	}
	return nil
}

// server returns the address of --kv-transfer-server, or the given one if there is none.
func (f *kvTransferFlags) server(host string, port int) (string, int, error) {
	if f.KVTransferServer == "" {
		return host, port, nil
	}
	host, text, err := net.SplitHostPort(f.KVTransferServer)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return host, int(n), cmp.Or(err, noHost(host, n))
}

func noHost(host string, port uint64) error {
	if host == "" || port == 0 {
		return errors.New("no host, or no port")
	}
	return nil
}

// transfers begins to transfer the KV cache of the loader's only model. It returns nil if no flag
// asks for it.
func (f *kvTransferFlags) transfers(l *modelLoader, model string, c *certificate, log *slog.Logger) (*kvtransfer.Peer, error) {
	if f.KVTransfer == "" {
		return nil, nil
	}
	key, err := kvtransfer.ReadKey(f.KVTransferKeyFile)
	if err != nil {
		return nil, &flagError{flag: "kv-transfer-key-file", err: err}
	}
	listener, err := kvtransfer.Listen(f.KVTransfer)
	if err != nil {
		return nil, &flagError{flag: "kv-transfer", err: err}
	}
	config := kvtransfer.Config{Key: key, Logger: log}
	host, text, err := net.SplitHostPort(reachable(listener.Addr()))
	if err == nil {
		config.Port, err = strconv.Atoi(text)
	}
	if err == nil {
		config.Host, config.Port, err = f.server(host, config.Port)
	}
	if err != nil {
		return nil, errors.Join(&flagError{flag: "kv-transfer", err: err}, listener.Close())
	}
	if c != nil {
		config.TLS = c.config()
		config.TLS.MinVersion = tls.VersionTLS13
	}
	log.Info("transfer of the KV cache", slog.String("address", listener.Addr().String()), slog.String("server", net.JoinHostPort(config.Host, strconv.Itoa(config.Port))), slog.Bool("tls", c != nil))
	l.transferred = model
	return kvtransfer.New(listener, config), nil
}
