// Package names reads the names that people give models: of repositories on Hugging
// Face's hub, of models of Ollama's registry, of OCI artifacts, of files on web
// servers, and short names of a user's own. It also says which files of a repository
// are the model that a name means.
//
// A name is hostile, and so is a listing of files: what could lead out of a folder, or
// means one thing here and another elsewhere, is an error. The package reads no disk
// and no network.
package names

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Kind is where a name leads.
type Kind int

// The kinds of names.
const (
	Path     Kind = iota // a file or a folder of this machine, or a model in the program
	Hub                  // a repository on Hugging Face's hub or a mirror of it
	Ollama               // a model of Ollama's registry or another of its form
	Registry             // an artifact of an OCI registry
	URL                  // a file of a web server, with its digest
)

// A Name is what a model is called by. The zero Name means nothing.
type Name struct {
	Kind Kind

	Path string // as it was written; of a path alone

	// Of the hub: what is to be taken of which version. An empty Revision means
	// main. Quant is empty, a quantisation such as Q4_K_M, or the path of a file.
	Org, Repo, Quant, Revision string

	// Of registries. Ollama's have a Tag; an artifact has a Tag or a Digest.
	Host, Repository, Tag, Digest string

	URL    string // without the digest
	SHA256 string // of a URL's file, in hexadecimal
}

// Defaults of names that leave something out.
const (
	DefaultRevision  = "main"
	DefaultTag       = "latest"
	OllamaHost       = "registry.ollama.ai"
	ollamaNamespace  = "library"
	maxName          = 2048
	maxPart          = 96  // of a repository's name on the hub
	maxRegistryParts = 255 // bytes of a repository of a registry
)

// Parse reads a name with a prefix: hf:, ollama:, oci:// or https://. Any other text is
// a path; [Parse] does not ask whether it is there. What begins as a name and is none is
// an error that says what would be one.
func Parse(text string) (Name, error) {
	if err := checkText(text); err != nil {
		return Name{}, err
	}
	scheme, rest, found := strings.Cut(text, ":")
	switch {
	case !found:
	case scheme == "hf" && !strings.HasPrefix(rest, "//"):
		return parseHub(text, rest)
	case scheme == "ollama" && !strings.HasPrefix(rest, "//"):
		return parseOllama(text, rest)
	case scheme == "oci" && strings.HasPrefix(rest, "//"):
		return parseRegistry(text, rest[2:])
	case (scheme == "https" || scheme == "http") && strings.HasPrefix(rest, "//"):
		return parseURL(text)
	case strings.HasPrefix(rest, "//") && isScheme(scheme):
		return Name{}, fmt.Errorf("%s: models do not come by %s://; want hf:org/repo, ollama:model, oci://registry/name:tag, https://host/file.gguf#sha256=..., or a path", text, scheme)
	}
	return Name{Kind: Path, Path: text}, nil
}

// ParsePlain reads a repository of the hub that is written without a prefix:
// org/repo[:quant][@revision]. It reports false where the text has another form.
func ParsePlain(text string) (Name, bool) {
	if checkText(text) != nil || strings.ContainsAny(text, `\~`) || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "/") {
		return Name{}, false
	}
	if before, _, _ := strings.Cut(text, ":"); strings.Count(before, "/") != 1 && !strings.Contains(before, "@") {
		return Name{}, false
	}
	n, err := parseHub(text, text)
	return n, err == nil && n.Org != ""
}

// checkText refuses texts that no name is and no path should be.
func checkText(text string) error {
	switch {
	case text == "":
		return fmt.Errorf("the name is empty; want hf:org/repo, ollama:model, oci://registry/name:tag, or a path")
	case len(text) > maxName:
		return fmt.Errorf("%.40q...: a name of %d bytes; want %d at most", text, len(text), maxName)
	case !utf8.ValidString(text):
		return fmt.Errorf("%.80q: the name is not UTF-8; write it in UTF-8", text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%.80q: the name has a control character; write it without", text)
	}
	return nil
}

func isScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		later := i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.')
		if !letter && !later {
			return false
		}
	}
	return s != ""
}

// String is the name as [Parse] reads it.
func (n Name) String() string {
	switch n.Kind {
	case Hub:
		s := "hf:" + n.RepoID()
		if n.Quant != "" {
			s += ":" + n.Quant
		}
		if n.Revision != "" {
			s += "@" + n.Revision
		}
		return s
	case Ollama:
		repository := n.Repository
		if n.Host == OllamaHost {
			return "ollama:" + strings.TrimPrefix(repository, ollamaNamespace+"/") + ":" + n.Tag
		}
		return "ollama:" + n.Host + "/" + repository + ":" + n.Tag
	case Registry:
		return "oci://" + n.Reference()
	case URL:
		return n.URL + "#sha256=" + n.SHA256
	}
	return n.Path
}

// RepoID is the repository's name on the hub: org/repo, or repo alone.
func (n Name) RepoID() string {
	if n.Org == "" {
		return n.Repo
	}
	return n.Org + "/" + n.Repo
}

// Reference is an artifact's name as registries write it: host/name:tag or
// host/name@digest.
func (n Name) Reference() string {
	if n.Digest != "" {
		return n.Host + "/" + n.Repository + "@" + n.Digest
	}
	return n.Host + "/" + n.Repository + ":" + n.Tag
}
