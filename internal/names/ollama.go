package names

import (
	"fmt"
	"strings"
)

// hubHosts are the hosts by which Ollama's clients name a repository of the hub.
var hubHosts = []string{"hf.co/", "huggingface.co/"}

// ParseOllama reads a name as clients of Ollama write it: [host/][namespace/]model[:tag],
// where the host hf.co means the hub. A name with a prefix is read as [Parse] reads it. No
// text is a path.
func ParseOllama(text string) (Name, error) {
	if err := checkText(text); err != nil {
		return Name{}, err
	}
	for _, host := range hubHosts {
		if rest, ok := strings.CutPrefix(text, host); ok {
			return parseHub(text, strings.TrimSuffix(rest, ":"+DefaultTag))
		}
	}
	n, err := Parse(text)
	if err == nil && n.Kind == Path {
		return parseOllama(fmt.Sprintf("%.200q", text), text)
	}
	return n, err
}

// Ollama is the name as [ParseOllama] reads it, and with its tag.
func (n Name) Ollama() string {
	switch n.Kind {
	case Ollama:
		return strings.TrimPrefix(n.String(), "ollama:")
	case Hub:
		s := hubHosts[0] + n.RepoID() + ":" + n.Quant
		if n.Quant == "" {
			s += DefaultTag
		}
		if n.Revision != "" {
			s += "@" + n.Revision
		}
		return s
	}
	return n.String()
}
