package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// An Explainer is a [Dialect] that explains why an address of its API has no endpoint.
type Explainer interface {
	// Explain returns why there is no endpoint at a path, or "".
	Explain(path string) string
}

// version is the prefix of many APIs' paths. Clients that were given the server's bare address
// leave it out, or write it twice.
const version = "/v1"

// nothing answers a request for an unknown address and names endpoints that exist.
func (s *Server) nothing(x *Exchange) error {
	path := x.URL.Path
	e := *errNotFound
	for _, d := range s.config.Dialects {
		if d, ok := d.(Explainer); ok {
			if why := d.Explain(path); why != "" {
				e.Message = fmt.Sprintf("there is nothing at this address, %.100q: %s", path, why)
				return &e
			}
		}
	}
	if there := s.near(path); there != "" {
		e.Message = fmt.Sprintf("there is nothing at this address, %.100q; there is %s: the base URL of a client of OpenAI's API ends in /v1, and that of other clients has no path", path, there)
		return &e
	}
	e.Message = fmt.Sprintf("there is nothing at this address, %.100q; there are %s", path, strings.Join(s.mains(), ", "))
	return &e
}

// near returns an endpoint whose path differs only by the version prefix, or "".
func (s *Server) near(path string) string {
	tail := path
	for range strings.Count(path, version) {
		tail = strings.TrimPrefix(tail, version)
	}
	for _, there := range []string{version + tail, tail} {
		if there == path {
			continue
		}
		if methods, ok := s.methods[there]; ok && there != "/{$}" {
			return methods[0] + " " + there
		}
	}
	return ""
}

// mains returns the paths that take a POST, sorted.
func (s *Server) mains() []string {
	all := []string{}
	for path, methods := range s.methods {
		if slices.Contains(methods, http.MethodPost) && !strings.Contains(path, "{") {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}
