package manage

import (
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/server"
)

// parse reads the name that a client gives a model. It is never a path.
func parse(text string) (names.Name, error) {
	n, err := names.ParseOllama(text)
	if err != nil {
		return names.Name{}, fault(server.NotAName, "%v", err)
	}
	return n, nil
}

// remote reads a name that leads to a host which clients may have the server talk to.
func (m *Manager) remote(text string) (names.Name, error) {
	n, err := parse(text)
	if err != nil {
		return n, err
	}
	host := n.Host
	switch {
	case n.Kind == names.Hub, n.Kind == names.Ollama && host == names.OllamaHost:
		return n, nil
	case n.Kind == names.URL:
		host = n.URLHost()
	}
	if !slices.ContainsFunc(m.config.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return n, fault(server.NotAllowed, "clients may not have this server talk to %.200q; realizar serve --allow-registry %s lets them", host, host)
	}
	return n, nil
}

// destination reads a name that a model of this machine can be given.
func destination(text string) (names.Name, error) {
	n, err := parse(text)
	switch {
	case err != nil:
		return n, err
	case n.Kind == names.Ollama, n.Kind == names.Registry && n.Tag != "":
		return n, nil
	}
	return n, fault(server.NotAName, "%.200q: a model can be called name, name:tag, namespace/name:tag or host/namespace/name:tag", text)
}

// target is where a model of that name is pushed to.
func (m *Manager) target(text string) (names.Name, error) {
	n, err := m.remote(text)
	if err != nil {
		return n, err
	}
	if n.Kind == names.Ollama && n.Host != names.OllamaHost {
		if n, err = names.Parse("oci://" + n.Host + "/" + n.Repository + ":" + n.Tag); err != nil {
			return n, fault(server.NotAName, "%v", err)
		}
	}
	if n.Kind != names.Registry || n.Tag == "" {
		return n, fault(server.NotAName, "%.200q: models are pushed to OCI registries; copy it to host/namespace/name:tag, and push that", text)
	}
	return n, nil
}
