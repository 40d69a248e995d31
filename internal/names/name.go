// Package names parses model names: repositories on the Hugging Face hub, models in Ollama's
// registry, OCI artifacts, files on web servers, and the user's own short names. It also selects
// the files of a repository that make up the model.
//
// Names and file listings are untrusted. Anything that could lead out of a folder, or that systems
// interpret differently, is an error. The package accesses neither the disk nor the network.
package names

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Kind is the kind of place that a name refers to.
type Kind int

// The kinds of names.
const (
	Path     Kind = iota // a local file or folder, or a model built into the program
	Hub                  // a repository on the Hugging Face hub or a mirror
	Ollama               // a model in Ollama's registry or one with the same protocol
	Registry             // an artifact in an OCI registry
	URL                  // a file on a web server, with its digest
)

// A Name is a parsed model name. The zero Name refers to nothing.
type Name struct {
	Kind Kind

	Path string // as written; Path names only

	// For Hub names. An empty Revision means main. Quant is empty, a quantization such as Q4_K_M,
	// or the path of a file.
	Org, Repo, Quant, Revision string

	// For Ollama and Registry names. Ollama names have a Tag; artifacts have a Tag or a Digest.
	Host, Repository, Tag, Digest string

	URL    string // without the digest
	SHA256 string // of the URL's file, in hexadecimal
}

// Defaults for omitted parts of names, and limits.
const (
	DefaultRevision  = "main"
	DefaultTag       = "latest"
	OllamaHost       = "registry.ollama.ai"
	ollamaNamespace  = "library"
	maxName          = 2048
	maxPart          = 96  // bytes of an organization or repository name on the hub
	maxRegistryParts = 255 // bytes of a repository name in a registry
)

// Parse parses a name with one of the prefixes hf:, ollama:, oci:// and https://. Any other text is
// a path, whether or not the file exists. The error of a malformed name says what a valid one looks
// like.
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
		return Name{}, fmt.Errorf("%s: %s:// is not supported; want hf:org/repo, ollama:model, oci://registry/name:tag, https://host/file.gguf#sha256=..., or a path", text, scheme)
	}
	return Name{Kind: Path, Path: text}, nil
}

// ParsePlain parses a hub repository written without a prefix: org/repo[:quant][@revision]. It
// returns false if text has another form.
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

// checkText returns an error if text can be neither a name nor a path.
func checkText(text string) error {
	switch {
	case text == "":
		return fmt.Errorf("the name is empty; want hf:org/repo, ollama:model, oci://registry/name:tag, or a path")
	case len(text) > maxName:
		return fmt.Errorf("%.40q...: a name of %d bytes; want %d at most", text, len(text), maxName)
	case !utf8.ValidString(text):
		return fmt.Errorf("%.80q: the name is not UTF-8; write it in UTF-8", text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%.80q: the name has a control character; remove it", text)
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

// String returns the name in the form that [Parse] reads.
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

// RepoID returns the repository's name on the hub: org/repo, or repo alone.
func (n Name) RepoID() string {
	if n.Org == "" {
		return n.Repo
	}
	return n.Org + "/" + n.Repo
}

// Reference returns an artifact's name in the form that registries use: host/name:tag or
// host/name@digest.
func (n Name) Reference() string {
	if n.Digest != "" {
		return n.Host + "/" + n.Repository + "@" + n.Digest
	}
	return n.Host + "/" + n.Repository + ":" + n.Tag
}
