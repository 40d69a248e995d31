package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/kvevents"
)

// kvEventFlags say where routers learn what the KV cache holds.
type kvEventFlags struct {
	KVEvents       string `name:"kv-events" placeholder:"ADDRESS" group:"network" help:"Tell routers what the KV cache of a single model holds, over ZeroMQ at this address, such as tcp://127.0.0.1:5557 or tcp://*:5557. Whoever can connect reads the tokens of prompts."`
	KVEventsServer string `name:"kv-events-server" placeholder:"HOST:PORT" group:"network" help:"With --kv-events, the address and port by which routers know this server. Default: those of the server; for --host 0.0.0.0 the first address of the machine."`
}

func (f *kvEventFlags) validate(c *serveCommand) error {
	switch {
	case f.KVEventsServer != "" && f.KVEvents == "":
		return errors.New("--kv-events-server needs --kv-events")
	case f.KVEvents != "" && (len(c.Models) > 1 || c.ModelsFrom != ""):
		return errors.New("--kv-events tells what the cache of one model holds; serve a single model")
	case strings.Contains(f.KVEventsServer, "@"):
		return wrongFlag("kv-events-server", f.KVEventsServer, "an address and a port, such as 10.0.0.7:8080")
	}
	return nil
}

// publish starts to publish the events of the loader's only model, which the server at address
// serves. It returns nil if no flag asks for it.
func (f *kvEventFlags) publish(l *modelLoader, model string, address net.Addr, log *slog.Logger) (*kvevents.Publisher, error) {
	if f.KVEvents == "" {
		return nil, nil
	}
	if strings.Contains(model, "@") {
		return nil, fmt.Errorf("events of the KV cache cannot name the model %q, because of its @; --served-model-name gives it another name", model)
	}
	listener, err := kvevents.Listen(f.KVEvents)
	if err != nil {
		return nil, &flagError{flag: "kv-events", err: err}
	}
	topic := kvevents.Topic(cmp.Or(f.KVEventsServer, reachable(address)), model)
	log.Info("events of the KV cache", slog.String("address", listener.Addr().String()), slog.String("topic", topic))
	p := kvevents.New(listener, topic, log)
	l.published, l.events = model, p.Add
	return p, nil
}

// reachable returns address, or if that is all addresses of the machine, its first one that others
// can reach, with the same port.
func reachable(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return address.String()
	}
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if network, ok := a.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return net.JoinHostPort(network.IP.String(), strconv.Itoa(tcp.Port))
		}
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}
