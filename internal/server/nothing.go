package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// An Explainer is a [Dialect] that knows why addresses have nothing that clients of its API
// look for there.
type Explainer interface {
	// Explain is why there is nothing at a path, or "".
	Explain(path string) string
}

// version is what paths of many APIs begin with, and clients that were given the address of
// the server alone leave out, or write twice.
const version = "/v1"

// nothing answers a request for what is not there, and says what is.
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
		e.Message = fmt.Sprintf("there is nothing at this address, %.100q; there is %s: the base URL of a client ends in /v1 where the API is OpenAI's, and has no path where it is another", path, there)
		return &e
	}
	e.Message = fmt.Sprintf("there is nothing at this address, %.100q; there are %s", path, strings.Join(s.mains(), ", "))
	return &e
}

// near is what is served at a path that differs by its version, or "".
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

// mains are the endpoints that take a body, in their order.
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
