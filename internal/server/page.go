package server

import "net/http"

// A Page is what browsers are shown at the server's address. It wants no key: it asks for
// one before it asks the model.
type Page interface {
	// Serve answers a request of GET or HEAD for one of its files: that at "/", or one
	// below "/page/". It reports whether there is such a file, and writes nothing where
	// there is none.
	Serve(w http.ResponseWriter, r *http.Request) bool
}

// The paths of a page.
var pagePatterns = []string{"GET /{$}", "GET /page/{file}"}

func (s *Server) handlePage(d Dialect) {
	if s.config.Page == nil {
		return
	}
	for _, pattern := range pagePatterns {
		s.handleOpen(d, pattern, s.page)
	}
}

func (s *Server) page(x *Exchange) error {
	if !s.config.Page.Serve(x.w, x.Request) {
		return errNotFound
	}
	return nil
}
