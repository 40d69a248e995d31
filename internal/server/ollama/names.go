package ollama

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// latest is the tag of a name without one.
const latest = ":latest"

// tagged is a name with its tag, as lists have it.
func tagged(name string) string {
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		return name
	}
	return name + latest
}

// served reports whether the model is called so.
func served(s *server.Server, name string) bool {
	for _, own := range s.Names() {
		if name == own || tagged(name) == tagged(own) {
			return true
		}
	}
	return false
}

// checkModel refuses a name that the model is not served under.
func checkModel(s *server.Server, name string) error {
	switch {
	case name == "":
		return fields.Missing("model")
	case served(s, name):
		return nil
	}
	return &server.Error{Status: http.StatusNotFound, Param: "model", Code: "model_not_found",
		Message: fmt.Sprintf("model %.100q not found: there is %q here", name, s.Names())}
}
