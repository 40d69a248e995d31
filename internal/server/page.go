package server

import (
	"net/http"
	"strings"
)

// A Page is what browsers are shown at the server's address. It wants no key: it asks for
// one before it asks the model.
type Page interface {
	// Serve answers a request of GET or HEAD for one of its files: that at "/", or one
	// below "/page/". It reports whether there is such a file, and writes nothing where
	// there is none.
	Serve(w http.ResponseWriter, r *http.Request) bool
}

// The paths of a page. A dialect may have the first one, too: it then answers whoever does
// not ask for HTML.
const (
	rootPattern  = "GET /{$}"
	filesPattern = "GET /page/{file}"
)

// handlePage registers the page, where there is one, and root, what d answers those who want
// another thing of "/"; nil where it has nothing.
func (s *Server) handlePage(d Dialect, root Handler) {
	if s.config.Page == nil {
		if root != nil {
			s.handle(d, Route{rootPattern, root})
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

// acceptsHTML reports whether a request is a browser's, which shall see the page.
func acceptsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

func (s *Server) page(x *Exchange) error {
	if !s.config.Page.Serve(x.w, x.Request) {
		return errNotFound
	}
	return nil
}
