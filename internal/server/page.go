package server

import (
	"net/http"
	"strings"
)

// A Page is the web page at the server's address. It needs no key: it asks for one before it asks
// the model.
type Page interface {
	// Serve answers a GET or HEAD request for one of the page's files: "/", or a path below
	// "/page/". It reports whether the file exists, and writes nothing if it does not.
	Serve(w http.ResponseWriter, r *http.Request) bool
}

// The paths of a page. A dialect may have the first one, too: it then answers clients that do not
// ask for HTML.
const (
	rootPattern  = "GET /{$}"
	filesPattern = "GET /page/{file}"
)

// handlePage registers the page, if there is one. root is the handler of d for clients that do not
// ask for HTML at "/"; nil if d has none.
func (s *Server) handlePage(d Dialect, root Handler) {
	if s.config.Page == nil {
		if root != nil {
			s.handle(d, Route{Pattern: rootPattern, Handle: root})
		}
		return
	}
	s.handleOpen(s.config.Dialects[0], filesPattern, s.page)
	s.handleOpen(d, rootPattern, func(x *Exchange) error {
		if root == nil {
			return s.page(x)
		}
		x.w.Header().Add("Vary", "Accept")
		if acceptsHTML(x.Request) {
			return s.page(x)
		}
		return s.keyed(x, root)
	})
}

// acceptsHTML reports whether a request is a browser's, which gets the page.
func acceptsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

func (s *Server) page(x *Exchange) error {
	if !s.config.Page.Serve(x.w, x.Request) {
		return errNotFound
	}
	return nil
}
